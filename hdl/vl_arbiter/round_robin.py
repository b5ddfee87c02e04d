"""Round robin among virtual lanes."""

from __future__ import annotations

from amaranth import Module, Signal

from .base import VlArbiter, rotating_pick

__all__ = ["RoundRobinVlArbiter"]


class RoundRobinVlArbiter(VlArbiter):
    """Turns go round in the order of the VL numbers, flit by flit, starting after the last one served.

    This is what weighted round robin becomes for best-effort traffic (yum-2006 3.3). VLs have equal shares of flits.
    Memory: a bit a VL. Longest wait: `wait_bound`, each of the other data VLs once. Reset: VL 0 is the first.
    """

    weighs = False
    rests = True

    @staticmethod
    def wait_bound(data_vls: int) -> int:
        """The most flits of others between two flits of a VL that keeps asking."""
        return data_vls - 1

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        above = Signal(self.vls)
        m.d.comb += grant.eq(rotating_pick(m, requests, above))
        with m.If(advance & requests.any()):
            # -(2 * grant) has all bits above the granted one; after the last number, none.
            m.d.sync += above.eq(~(grant << 1) + 1)
