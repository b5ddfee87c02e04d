"""A system as small as one can be, made from the base of all systems: the counter of `counter.py` with a watchdog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.sim.build.model import Design, block_design
from lanikai.sim.inside import native_api
from lanikai.sim.inside.watchdog import WATCHDOG_BITS, Probe, Watchdog
from lanikai.sim.systems.base import System, SystemConfig
from pydantic import Field

from support.sim.counter import Counter


class WatchedCounter(wiring.Component):
    """The counter with a watchdog on whether it counts. Members: `enable`, `value`, `watchdog_limit`,
    `watchdog_fired`."""

    def __init__(self, start: int) -> None:
        super().__init__(
            {
                "enable": In(1),
                "value": Out(16),
                "watchdog_limit": In(WATCHDOG_BITS),
                "watchdog_fired": Out(1),
            }
        )
        self._start = start

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter = counter = Counter()
        m.submodules.watchdog = watchdog = Watchdog()
        m.d.comb += [
            counter.enable.eq(self.enable),
            self.value.eq(counter.value + self._start),
            watchdog.activity.eq(self.enable),
            watchdog.limit.eq(self.watchdog_limit),
            self.watchdog_fired.eq(watchdog.fired),
        ]
        return m


class ToyConfig(SystemConfig):
    """The counter, and its starting values."""

    title = "toy"
    inside = "support.sim.toy_system:Toy"
    not_in_design = frozenset({"watchdog_cycles"})
    made: ClassVar[list[str]] = []

    start: int = Field(0, ge=0, lt=1 << 15, description="the value that it starts with")
    watchdog_cycles: int = Field(
        0, ge=0, description="cycles without counting that end the simulation; 0: never"
    )

    def design(self, variant: str = "fast") -> Design:
        """The counter alone; `made` has each variant that was asked for."""
        self.made.append(variant)
        return block_design(WatchedCounter(self.start), name="toy")


class Toy(System[ToyConfig]):
    """The counter inside its simulation."""

    def __init__(self, config: ToyConfig, session: Any) -> None:
        super().__init__(config, session)
        self.limit_watchdog(config.watchdog_cycles)
        self.watch()

    def probes(self) -> list[Probe]:
        """No probe that the model shows: a probe of a signal that is not there is left out."""
        return [Probe("counter", "absent", ("bit 0",))]

    def state(self) -> list[str]:
        """The value besides."""
        return [*super().state(), f"value: {native_api.signal('value').get()}"]


async def count(toy: Toy, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Count for the spec's `cycles`, then stand still for its `rest`. Returns the parts that a coroutine finds in its
    system."""
    native_api.signal("enable").set(1)
    await toy.clock.sleep(spec["cycles"])
    native_api.signal("enable").set(0)
    toy.progress(0.5, "counted")
    if spec["rest"]:
        await toy.clock.sleep(spec["rest"])
    await toy.clock.sample_phase()
    (toy.out_dir / "note").write_text("here")
    return {
        "value": native_api.signal("value").get(),
        "start": toy.config.start,
        "seed": toy.seed,
        "random": toy.random.random(),
    }
