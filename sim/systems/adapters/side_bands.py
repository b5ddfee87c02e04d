"""Side bands of an adapter network: what injection control hears of the network, besides of flits and credits.

A side band is a wire of its own, as yum-2006 7.2 assumes. It takes a cycle from its sources to the adapters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Member, Out
from lanikai.hdl.config import ConfigError, HcaConfig
from lanikai.hdl.hca.injection.control import injection_class
from lanikai.hdl.hca.injection.self_tuned import COUNT_BITS, DELIVERED_BITS, SelfTuner
from lanikai.hdl.network import Network

from ...build.composition import Output

__all__ = ["SIDE_BANDS", "SideBand", "side_band"]


class SideBand(ABC):
    """A side band of `network` with adapters `hca`.

    It has parts in the top module, in the routers' and adapters' outputs, and in each adapter's node.
    """

    def __init__(self, network: Network, hca: HcaConfig) -> None:
        self.network, self.hca = network, hca

    @abstractmethod
    def top_members(self) -> dict[str, Member]:
        """Members of the top module: its inputs from routers and adapters, and its outputs to adapters."""

    @abstractmethod
    def add(self, m: Module, top: Any) -> None:
        """Add the side band's logic to the top module."""

    @abstractmethod
    def router_outputs(self) -> dict[str, Output]:
        """Outputs of every router that go to the top module."""

    @abstractmethod
    def adapter_outputs(self) -> dict[str, Output]:
        """Outputs of every adapter that go to the top module."""

    @abstractmethod
    def node_inputs(self) -> dict[str, Member]:
        """Inputs of every adapter's node that the top module drives, by its outputs' names."""

    @abstractmethod
    def side(self, node: Any, router: Value) -> Value:
        """The adapter's `side`, from the inputs of its node, whose router has the number `router`."""


class ThrottleBand(SideBand):
    """All adapters hear one bit of one `SelfTuner`, which hears of all full buffers and of all flits delivered. Raises
    ConfigError for more buffers than it counts."""

    def __init__(self, network: Network, hca: HcaConfig) -> None:
        super().__init__(network, hca)
        router, most = network.router, (1 << COUNT_BITS - 1) - 1
        self.buffers = router.data_vls * (router.ports * network.routers + len(network.nodes))
        if self.buffers > most:
            raise ConfigError(
                f"hca.injection = {hca.injection!r}: {self.buffers} VL buffers of routers and adapters: at most {most}"
            )

    def top_members(self) -> dict[str, Member]:
        """Numbers of full buffers, and of flits; the bit."""
        return {
            "router_full": In(32),
            "adapter_full": In(32),
            "delivered": In(32),
            "throttle": Out(1),
        }

    def add(self, m: Module, top: Any) -> None:
        """The tuner."""
        m.submodules.tuner = tuner = SelfTuner(buffers=self.buffers, adapters=len(self.network.nodes))
        full, delivered = Signal(COUNT_BITS, name="full_now"), Signal(DELIVERED_BITS, name="delivered_now")
        m.d.sync += [full.eq(top.router_full + top.adapter_full), delivered.eq(top.delivered)]
        m.d.comb += [tuner.full.eq(full), tuner.delivered.eq(delivered), top.throttle.eq(tuner.throttle)]

    def router_outputs(self) -> dict[str, Output]:
        """Their full buffers."""
        return {"full_buffers": Output(input="router_full", kind="sum", bits=32)}

    def adapter_outputs(self) -> dict[str, Output]:
        """Their full buffers, and whether a flit arrives."""
        return {
            "full_buffers": Output(input="adapter_full", kind="sum", bits=32),
            "delivered": Output(input="delivered", kind="sum", bits=32),
        }

    def node_inputs(self) -> dict[str, Member]:
        """The bit."""
        return {"throttle": In(1)}

    def side(self, node: Any, router: Value) -> Value:
        """The bit."""
        return node.throttle


class RouterStatusBand(SideBand):
    """An adapter hears of the VLs of its own router's outputs."""

    @property
    def _names(self) -> list[str]:
        ports = range(self.network.router.ports)
        return [f"{kind}_{port}" for kind in ("none_free", "some_taken") for port in ports]

    def top_members(self) -> dict[str, Member]:
        """For each port a bit a router, from the routers and to the adapters."""
        routers = self.network.routers
        return {name: In(routers) for name in self._names} | {
            f"{name}_known": Out(routers) for name in self._names
        }

    def add(self, m: Module, top: Any) -> None:
        """A register each."""
        for name in self._names:
            m.d.sync += getattr(top, f"{name}_known").eq(getattr(top, name))

    def router_outputs(self) -> dict[str, Output]:
        """The status of their outputs."""
        return {name: Output(input=name, kind="bit", bits=self.network.routers) for name in self._names}

    def adapter_outputs(self) -> dict[str, Output]:
        """None."""
        return {}

    def node_inputs(self) -> dict[str, Member]:
        """The status of all routers' outputs."""
        return {f"{name}_known": In(self.network.routers) for name in self._names}

    def side(self, node: Any, router: Value) -> Value:
        """The bits of its own router, each kind in 2^hop_bits of them."""
        ports = 1 << self.hca.link.hop_bits
        bits: list[Value] = []
        for kind in ("none_free", "some_taken"):
            for port in range(ports):
                name = f"{kind}_{port}_known"
                bits.append(
                    getattr(node, name).bit_select(router, 1)
                    if port < self.network.router.ports
                    else Const(0, 1)
                )
        return Cat(*bits)


SIDE_BANDS: Mapping[str, type[SideBand]] = {"throttle": ThrottleBand, "router_status": RouterStatusBand}
"""The side bands by the names that policies of injection control give them (`InjectionPolicy.side_name`)."""


def side_band(network: Network, hca: HcaConfig) -> SideBand | None:
    """The side band that the adapters' injection control needs, None for none. Raises ConfigError for an unknown
    policy."""
    name = injection_class(hca).side_name
    return SIDE_BANDS[name](network, hca) if name else None
