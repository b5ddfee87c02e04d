"""Fixed priority among virtual lanes."""

from __future__ import annotations

from amaranth import Module, Signal

from .base import VlArbiter, lowest_bit

__all__ = ["FixedPriorityVlArbiter"]


class FixedPriorityVlArbiter(VlArbiter):
    """The lowest VL that asks goes (after the control VL). No memory.

    Longest wait: none for the lowest data VL; the others have no bound, as any lower VL can keep the link.
    """

    @staticmethod
    def wait_bound(vl: int, *, lowest: int = 0) -> int | None:
        """The most flits of others between two flits of a VL that keeps asking: 0 or, without a bound, None."""
        return 0 if vl == lowest else None

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        m.d.comb += grant.eq(lowest_bit(requests))
