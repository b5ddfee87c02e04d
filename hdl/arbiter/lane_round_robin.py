"""Round robin for many resources at once: one turn for each lane, all worked out bit by bit in parallel."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..working import works_when

__all__ = ["LaneRoundRobin"]


class LaneRoundRobin(wiring.Component):
    """A `RoundRobinArbiter` of `size` requesters for each of `lanes` resources; every grant is used.

    Members, arrays of `size` vectors of `lanes` bits, bit l for lane l:

    - `requests` (in): `requests[i]`, the lanes that requester i asks for.
    - `grant` (out): `grant[i]`, the lanes that requester i is given, in the same cycle. Every lane that is asked for
      goes to exactly one of those who ask.
    - `open` (in), one vector of lanes, only if `gated`: the lanes that are given in this cycle. On the others nobody
      has a grant, and the turns stay as they are. `open` may come late: it passes one gate, not the choice.

    Algorithm: each lane goes to the lowest requester with a number above that of the last one served there; if there
    is none, to the lowest of all. Memory: `size - 1` bits a lane. Longest wait: a requester that asks for a lane
    whenever it is offered gets it after at most `size - 1` others, whatever happens on other lanes.

    Every step is an operation on whole vectors, about 6 for each requester. So 16 lanes cost a simulator no more than
    one. Reset: requester 0 is the first on every lane.

    Latency: none from `requests` to `grant`; a grant counts from the next cycle on. Throughput: a grant a lane and
    cycle.
    """

    def __init__(self, *, size: int, lanes: int, gated: bool = False) -> None:
        self._size, self._lanes, self._gated = size, lanes, gated
        gates = {"open": In(lanes)} if gated else {}
        super().__init__({"requests": In(lanes).array(size), "grant": Out(lanes).array(size)} | gates)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # `above[i]`: lanes where i comes after the last one served, and so before those up to it.
        above = [Signal(self._lanes, name=f"above_{i}") for i in range(self._size)]
        early = Signal(self._lanes)
        works_when(m, *self.requests)
        m.d.comb += early.eq(reduce(or_, [r & mask for r, mask in zip(self.requests, above, strict=True)]))
        # The lowest candidate of each lane wins: `taken` holds the lanes that lower requesters have won.
        taken: Value = Signal(self._lanes, name="taken_0")
        served = Signal(self._lanes)
        for i in range(self._size):
            won = Signal(self._lanes, name=f"won_{i}") if self._gated else self.grant[i]
            m.d.comb += won.eq(self.requests[i] & (above[i] | ~early) & ~taken)
            if self._gated:
                m.d.comb += self.grant[i].eq(won & self.open)
            if i > 0:
                following = (above[i] & ~served) | taken
                if self._gated:
                    following = (above[i] & ~self.open) | (following & self.open)
                m.d.sync += above[i].eq(following)
            after = Signal(self._lanes, name=f"taken_{i + 1}")
            m.d.comb += after.eq(taken | won)
            taken = after
        m.d.comb += served.eq(taken)
        return m
