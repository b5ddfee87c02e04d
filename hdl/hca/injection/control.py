"""The injection control of an adapter: a policy, and the energy budget in series with it."""

from __future__ import annotations

from typing import Any

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config.base import ConfigError
from ...config.hca import HcaConfig
from .base import InjectionSignature
from .policy import SETUP_LAYOUT, InjectionPolicy, SetupKind
from .power import PowerBudget
from .registry import INJECTION

__all__ = ["InjectionControl", "injection_class", "setup_kinds"]


def injection_class(config: HcaConfig) -> type[InjectionPolicy]:
    """The class of the policy `HcaConfig.injection`. Raises ConfigError with the valid names."""
    if config.injection not in INJECTION:
        raise ConfigError(
            f"HcaConfig.injection = {config.injection!r}: one of {', '.join(sorted(INJECTION))}"
        )
    return INJECTION[config.injection]


def setup_kinds(config: HcaConfig) -> tuple[SetupKind, ...]:
    """The words of set-up that an adapter takes. Raises ConfigError for a policy that does not exist."""
    ports = (SetupKind.OUTPUT_PORT,) if injection_class(config).output_ports else ()
    return ports + (PowerBudget.kinds if config.power_control else ())


class InjectionControl(wiring.Component):
    """The policy `HcaConfig.injection`, and with `power_control` a `PowerBudget`: a message needs leave of both.

    Raises ConfigError for a policy that does not exist.

    Members:

    - `control` (in, `InjectionSignature`): the scheduler.
    - `setup_valid` (in), `setup` (in, `SETUP_LAYOUT`): a word of set-up, always taken.
    - `side` (in, `side_bits` of the policy; absent if 0): what the network brings to the adapter.
    - `held_cycles` (out, 32): cycles in which the message asked for might not begin, modulo 2^32.
    - `never_fits` (out, 32): messages refused as they take more than the whole energy budget, modulo 2^32.
    - `energy_used` (out, 32), only with `power_control`: energy that is taken.
    - `quiet` (out): no register changes but by an input.

    Latency: `control.allow` and `control.never` in the same cycle; counters and set-up in the next. Throughput: a
    message and a word of set-up a cycle.
    """

    def __init__(self, config: HcaConfig) -> None:
        self.config = config
        self.side_bits = injection_class(config).side_bits(config)
        members: dict[str, Any] = {
            "control": In(InjectionSignature(vls=config.link.vls)),
            "setup_valid": In(1),
            "setup": In(SETUP_LAYOUT),
            "held_cycles": Out(32),
            "never_fits": Out(32),
            "quiet": Out(1),
        }
        if self.side_bits:
            members["side"] = In(self.side_bits)
        if config.power_control:
            members["energy_used"] = Out(32)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control = self.control
        m.submodules.policy = policy = injection_class(self.config)(self.config)
        parts: list[Any] = [policy]
        if self.side_bits:
            m.d.comb += policy.side.eq(self.side)
        m.d.comb += self.quiet.eq(1)
        if self.config.power_control:
            m.submodules.power = power = PowerBudget(self.config)
            m.d.comb += [self.energy_used.eq(power.used), self.quiet.eq(power.quiet)]
            parts.append(power)
        allow, never = parts[0].control.allow, parts[0].control.never
        for part in parts:
            m.d.comb += [part.setup_valid.eq(self.setup_valid), part.setup.eq(self.setup)]
            m.d.comb += [
                getattr(part.control, name).eq(getattr(control, name))
                for name, member in InjectionSignature(vls=self.config.link.vls).members.items()
                if member.flow == Out
            ]
        for part in parts[1:]:
            allow, never = allow & part.control.allow, never | part.control.never
        m.d.comb += [control.never.eq(never), control.allow.eq(allow & ~never)]
        with m.If(control.ask_valid & ~control.allow):
            m.d.sync += self.held_cycles.eq(self.held_cycles + 1)
        with m.If(control.refuse & control.never):
            m.d.sync += self.never_fits.eq(self.never_fits + 1)
        return m
