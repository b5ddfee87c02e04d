"""Least recently served first: an arbiter for few requesters whose grant comes early in the cycle."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value

from .arbiter import Arbiter

__all__ = ["LeastRecentArbiter"]


class LeastRecentArbiter(Arbiter):
    """The requester whose last used grant is the longest ago.

    Algorithm: for each pair of requesters a bit says which of the two goes first. A requester that no other one goes
    before is granted. It then goes after all others. Memory: `size * (size - 1) / 2` bits, and the grant used last,
    which the bits follow a cycle later. Longest wait: each of the others is served at most once before a requester
    that keeps asking. So it is granted after at most `size - 1` used grants of others.

    The shares are equal, as with round robin; only the order of the turns may differ.

    Latency: none from `requests` to `grant`, two levels of LUT4s for up to 5 requesters, where round robin takes
    five. Throughput: a grant a cycle. Reset: number 0 goes first, then 1, and so on.
    """

    def __init__(self, *, size: int) -> None:
        super().__init__(size=size)
        self._served = Signal(size, name="served")
        self._kept = {
            (i, j): Signal(init=1, name=f"{i}_before_{j}") for i in range(size) for j in range(i + 1, size)
        }

    def _before(self, i: int, j: int) -> Value:
        """Whether `i` goes before `j`, the last grant counted in."""
        if i > j:
            return ~self._before(j, i)
        return (self._kept[i, j] | self._served[j]) & ~self._served[i]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self._served.eq(Mux(self.advance, self.grant, 0))
        m.d.sync += [kept.eq(self._before(i, j)) for (i, j), kept in self._kept.items()]
        for j in range(self.size):
            others = [self.requests[i] & self._before(i, j) for i in range(self.size) if i != j]
            m.d.comb += self.grant[j].eq(self.requests[j] & ~Cat(others).any())
        return m
