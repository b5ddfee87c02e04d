"""Status outputs of a router: what injection control of the adapters goes by (yum-2006 7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth import Module, Signal, Value
from amaranth.lib.wiring import Out

from ..config import RouterConfig
from .receive import ReceiveStage
from .transmit import TransmitStage
from .vl_allocation import VlAllocationStage
from .vl_selection import VlSelectionStage

__all__ = ["add_status", "status_members"]


def status_members(config: RouterConfig) -> dict[str, Any]:
    """Members of a router with `RouterConfig.status_outputs` (P ports; of data VLs alone); {} without.

    - `none_free` (out, P): no VL of this output is free.
    - `some_taken` (out, P): not all VLs of this output are free.
    - `full_buffers` (out): full input buffers, each of a port and a VL.

    A VL of an output is free if no packet owns it, its output buffer is empty, and its receiver has room. All follow
    from registers in the same cycle, and are 0 while the router is `quiet`: it is not quiet while a VL is taken.
    """
    if not config.status_outputs:
        return {}
    return {
        "none_free": Out(1).array(config.ports),
        "some_taken": Out(1).array(config.ports),
        "full_buffers": Out(range(config.ports * config.data_vls + 1)),
    }


def add_status(
    m: Module,
    router: Any,
    receivers: Sequence[ReceiveStage],
    allocation: VlAllocationStage | VlSelectionStage,
    transmitters: Sequence[TransmitStage],
) -> list[Value]:
    """Adds the logic of a router's `status_members`. Returns what keeps the router from being quiet."""
    config: RouterConfig = router.config
    if not config.status_outputs:
        return []
    ports = range(config.ports)
    for p, transmit in enumerate(transmitters):
        taken = Signal(config.data_vls, name=f"taken_{p}")
        if isinstance(allocation, VlSelectionStage):
            owned: Value = allocation.busy[p]
        else:
            owned = reduce(or_, [allocation.holds[i][p] for i in ports])
        m.d.comb += [
            taken.eq(owned | transmit.non_empty | transmit.blocked),
            router.none_free[p].eq(taken.all()),
            router.some_taken[p].eq(taken.any()),
        ]
    counts = [sum(receive.full[vl] for vl in range(config.data_vls)) for receive in receivers]
    m.d.comb += router.full_buffers.eq(sum(counts))
    return list(router.some_taken)
