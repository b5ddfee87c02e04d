"""First come, first served among virtual lanes."""

from __future__ import annotations

from typing import Any, Literal

from amaranth import Cat, Module, Signal

from ..config import ConfigError
from .base import VlArbiter

__all__ = ["FcfsVlArbiter", "PacketFcfsVlArbiter"]


class FcfsVlArbiter(VlArbiter):
    """The VL that has waited longest goes.

    Parameter beside those of `VlArbiter`: `unit` is "flit" or "packet", the thing that stands in the line.

    An arbiter sees arrival as a request. A VL joins the line in the first cycle in which it asks. A VL with more to
    send joins it again in the cycle after its flit (with "packet": the tail) has gone. VLs that join in one cycle
    stand in the order of their numbers. A VL that stops asking (no credit, or a packet whose next flit is not there
    yet) leaves the line, and the others go on.

    Memory: a bit for each pair of VLs, which says who is older, and a bit a VL. The oldest is found without a search:
    a VL goes if it asks and nobody who asks is older. Longest wait: `wait_bound`. Reset: nobody waits.
    """

    def __init__(
        self,
        *,
        vls: int,
        control_vl: int | None = None,
        flit_bytes: int = 16,
        entries: int = 64,
        unit: Literal["flit", "packet"] = "flit",
    ) -> None:
        if unit not in ("flit", "packet"):
            raise ConfigError(f"FcfsVlArbiter: unit = {unit!r}: one of flit, packet")
        self.unit = unit
        super().__init__(vls=vls, control_vl=control_vl, flit_bytes=flit_bytes, entries=entries)

    @staticmethod
    def wait_bound(data_vls: int, *, packet_flits: int = 1) -> int:
        """The most flits of others between two flits of a VL that keeps asking: each of them has its turn once.

        `packet_flits`: the longest packet with unit "packet", 1 with "flit".
        """
        return (data_vls - 1) * packet_flits

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        vls = self.vls
        waiting = Signal(vls)  # stood in the line before this cycle
        # older[u, v] for u < v: u stands before v, as it does if both join together.
        older = {(u, v): Signal(name=f"older_{u}_{v}", init=1) for v in range(vls) for u in range(v)}
        before = {(u, v): Signal(name=f"before_{u}_{v}") for v in range(vls) for u in range(v)}
        for (u, v), order in before.items():
            # A VL that has just come stands behind those that were there.
            m.d.comb += order.eq((older[u, v] & waiting[u]) | ~waiting[v])
        for v in range(vls):
            ahead = [requests[u] & before[u, v] for u in range(v)]
            ahead += [requests[u] & ~before[v, u] for u in range(v + 1, vls)]
            m.d.comb += grant[v].eq(requests[v] & ~Cat(*ahead).any())
        leaves = Signal(vls)
        m.d.comb += leaves.eq(~requests)
        with m.If(advance):
            m.d.comb += leaves.eq(~requests | (grant & tails if self.unit == "packet" else grant))
        m.d.sync += waiting.eq(~leaves)
        m.d.sync += [older[pair].eq(order) for pair, order in before.items()]


class PacketFcfsVlArbiter(FcfsVlArbiter):
    """`FcfsVlArbiter` with packets in the line."""

    whole_packets = True

    def __init__(self, **parameters: Any) -> None:
        super().__init__(unit="packet", **parameters)
