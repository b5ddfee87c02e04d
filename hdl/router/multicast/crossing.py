"""Stage 4 with multicast: a flit that goes to several outputs, in one cycle or in more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data

from ...config import RouterConfig
from ...packet import HEADER_LAYOUT
from .sets import set_mark

__all__ = ["Crossing", "keep_reached"]


class Crossing:
    """The outputs that the flit of each VL of an input has gone to, and when it has gone to all.

    An input asks for all outputs at once that its flit has not gone to. Each output that it is given takes the flit,
    and `sent` remembers it. The flit leaves the input with the last one. Each turn of its VL at the input ends with an
    output more. So a flit to k outputs takes at most k times the allocator's `turns_bound`.

    Registers: a bit for each VL and output. Latency: none.
    """

    def __init__(self, m: Module, i: int, config: RouterConfig, holds: Sequence[Any]) -> None:
        self._m, self._holds = m, holds
        self.sent = [Signal(config.link.vls, name=f"sent_{i}_{p}") for p in range(config.ports)]
        self.waits = Signal(name=f"waits_{i}")

    def add(self, select: Value, accepted: Value, grants: Sequence[Value]) -> Value:
        """Whether the flit of the VL `select` leaves the input. It is `accepted` by the outputs of `grants`."""
        m = self._m
        rest = [
            (holds & select & ~sent).any() & ~grant
            for holds, sent, grant in zip(self._holds, self.sent, grants, strict=True)
        ]
        m.d.comb += self.waits.eq(Cat(*rest).any())
        for sent, grant in zip(self.sent, grants, strict=True):
            with m.If(accepted & ~self.waits):
                m.d.sync += sent.eq(sent & ~select)
            with m.Elif(grant):
                m.d.sync += sent.eq(sent | select)
        return accepted & ~self.waits


def keep_reached(m: Module, config: RouterConfig, flit: Value, copy: Any, reach: Value) -> None:
    """Takes from the set in a header the nodes that are not behind an output: `copy` is `flit` as it goes there."""
    whole = data.View(copy.shape(), flit)
    start, nodes = HEADER_LAYOUT["route"].offset, config.multicast_nodes
    with m.If(whole.head & whole.data[start + set_mark(config)]):
        m.d.comb += Value.cast(copy.data)[start : start + nodes].eq(whole.data[start : start + nodes] & reach)
