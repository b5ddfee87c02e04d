"""The arbiter of a crossbar output: the input that was served least recently, and bursts."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BurstArbiter"]


class BurstArbiter(wiring.Component):
    """Least recently served first, where the one that is served may go on.

    Members (`size` wide):

    - `requests` (in): who asks.
    - `urgent` (in): of those who ask, these come before all others. They may break a burst. None by default.
    - `open` (in, 1 bit, set by default): somebody may be granted in this cycle. It may come late.
    - `grant` (out): one of those who ask, one-hot, in the same cycle; 0 if nobody asks or without `open`.
    - `goes_on` (in): if that one is granted in this cycle, it comes before all others in the next. It may depend on
      `grant`. Otherwise it comes after all others.

    Algorithm: for each pair of requesters a bit says which of the two goes first. Memory: `size * (size - 1) / 2` bits.
    Longest wait: each of the others has at most one burst before a requester that keeps asking. A burst is a row of
    grants with `goes_on`, and one without.

    Latency: none from `requests` to `grant`, two or three levels of LUT4s for up to 5 requesters. Throughput: a grant a
    cycle. Reset: number 0 goes first, then 1, and so on.
    """

    def __init__(self, *, size: int) -> None:
        self.size = size
        super().__init__(
            {
                "requests": In(size),
                "urgent": In(size),
                "open": In(1, init=1),
                "grant": Out(size),
                "goes_on": In(size),
            }
        )
        self._first = {
            (i, j): Signal(init=1, name=f"{i}_before_{j}") for i in range(size) for j in range(i + 1, size)
        }

    def _before(self, i: int, j: int) -> Value:
        return self._first[i, j] if i < j else ~self._first[j, i]

    def _beats(self, i: int, j: int) -> Value:
        return Mux(self.urgent[i] == self.urgent[j], self._before(i, j), self.urgent[i])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for (i, j), first in self._first.items():
            m.d.sync += first.eq(
                Mux(self.grant[i], self.goes_on[i], Mux(self.grant[j], ~self.goes_on[j], first))
            )
        for j in range(self.size):
            others = [self.requests[i] & self._beats(i, j) for i in range(self.size) if i != j]
            m.d.comb += self.grant[j].eq(self.requests[j] & ~Cat(others).any() & self.open)
        return m
