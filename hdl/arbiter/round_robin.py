"""Round robin (yum-2006 3.1: the scheduler of the best-effort router)."""

from __future__ import annotations

from amaranth import Module, Mux, Signal

from ..working import works_when
from .arbiter import Arbiter

__all__ = ["RoundRobinArbiter"]


class RoundRobinArbiter(Arbiter):
    """Turns go round in the order of the numbers, starting after the last one served.

    Algorithm: the lowest requester with a number above that of the last used grant is granted; if there is none, the
    lowest of all. Memory: `size` flip-flops (a mask of the numbers above the last one served, none for `size` 1).
    Longest wait: each of the others goes at most once before a requester that keeps asking. So it is granted after at
    most `size - 1` used grants of others.

    The shares are equal, flit by flit.

    Latency: none from `requests` to `grant`, two subtractions of `size` bits. Throughput: a grant a cycle. Reset:
    number 0 is the first.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.size == 1:
            m.d.comb += self.grant.eq(self.requests)
            return m
        works_when(m, self.requests)
        above = Signal(self.size)
        later = Signal(self.size)
        pick = Signal(self.size)
        m.d.comb += [
            later.eq(self.requests & above),
            pick.eq(Mux(later.any(), later, self.requests)),
            # x & -x leaves the lowest set bit of x.
            self.grant.eq(pick & (~pick + 1)),
        ]
        with m.If(self.advance & self.requests.any()):
            # -(2 * grant) has all bits above the granted one; after the last number, none.
            m.d.sync += above.eq(~(self.grant << 1) + 1)
        return m
