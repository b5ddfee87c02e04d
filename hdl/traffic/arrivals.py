"""Sums of all that comes to a sink, and its last packet: registers that a simulation reads in no time."""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .config import TrafficConfig
from .packet import BORN_BITS, IDENTITY

__all__ = ["SUM_BITS", "Arrivals", "arrival_layout", "watched_signals"]

SUM_BITS = {"flits": 32, "packets": 32, "latency": 64}
"""Width of each sum of a class; `latency` is in cycles. They are modulo 2^32 and 2^64."""


def arrival_layout(config: TrafficConfig) -> data.StructLayout:
    """The last packet that a sink has received whole: its identity, latency (cycles) and length (flits)."""
    return data.StructLayout({"identity": IDENTITY, "latency": BORN_BITS, "flits": config.length_bits})


class Arrivals(wiring.Component):
    """Sums of a sink for each class, and its last packet.

    Members:

    - `flits` (in): flits of good packets that have been recognised in this cycle, in the window or not.
    - `done` (in): a packet has come whole. `packet` (in, `arrival_layout`): that packet; its class is also the flits'.
    - sums (out, `SUM_BITS` a class, class 0 lowest) of flits, packets and latencies: all since reset.
    - `last` (out, `arrival_layout`): the last packet. `toggle` (out): changes with each packet.

    Latency: 1 cycle. Throughput: flits and a packet in every cycle. Reset: sums are 0.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        super().__init__(
            {
                "flits": In(range(config.link.header_flits + 1)),
                "done": In(1),
                "packet": In(arrival_layout(config)),
                **{f"sum_{name}": Out(bits * config.classes) for name, bits in SUM_BITS.items()},
                "last": Out(arrival_layout(config)),
                "toggle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        of_class = self.packet.identity.traffic_class
        amounts: dict[str, Value] = {
            "flits": self.flits,
            "packets": self.done,
            "latency": Value.cast(self.packet.latency) & self.done.replicate(BORN_BITS),
        }
        for name, bits in SUM_BITS.items():
            sums = [Signal(bits, name=f"{name}_of_class_{one}") for one in range(self._config.classes)]
            for number, one in enumerate(sums):
                with m.If((of_class == number) & (self.done | (self.flits != 0))):
                    m.d.sync += one.eq(one + amounts[name])
            m.d.comb += getattr(self, f"sum_{name}").eq(Cat(*sums))
        with m.If(self.done):
            m.d.sync += [self.last.eq(self.packet), self.toggle.eq(~self.toggle)]
        return m


def watched_signals(config: TrafficConfig) -> list[str]:
    """The variables of a traffic node that a simulation reads: `watched_` and the names of `Arrivals`' outputs. None
    unless `config.watched`."""
    names = (*(f"sum_{name}" for name in SUM_BITS), "last", "toggle")
    return [f"watched_{name}" for name in names] if config.watched else []
