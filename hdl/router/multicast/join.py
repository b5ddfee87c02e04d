"""The wires of multicast between the stages of a router."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Module

from ...config import RouterConfig
from ..vl_allocation import VlAllocationStage
from .vl_allocation import MulticastAllocationStage

__all__ = ["add_multicast", "same_vl_allocation", "taken_wires"]


def same_vl_allocation(config: RouterConfig) -> Any:
    """Stage 3 of packets that keep their VL."""
    return MulticastAllocationStage(config) if config.multicast_nodes else VlAllocationStage(config)


def taken_wires(config: RouterConfig, route: Any, allocation: Any, i: int) -> list[Any]:
    """The statements that tell stage 2 of input i what stage 3 has given."""
    if not config.multicast_nodes:
        return [route.taken.eq(allocation.taken[i])]
    return [mine.eq(vls) for mine, vls in zip(route.taken, allocation.taken[i], strict=True)]


def add_multicast(
    m: Module,
    router: Any,
    receivers: Sequence[Any],
    routers: Sequence[Any],
    allocation: Any,
    crossbar: Any,
    transmitters: Sequence[Any],
) -> None:
    """Joins what copies need, with `RouterConfig.multicast_nodes`."""
    if not router.config.multicast_nodes:
        return
    for i, (receive, route, transmit) in enumerate(zip(receivers, routers, transmitters, strict=True)):
        m.d.comb += [
            *(mine.eq(nodes) for mine, nodes in zip(route.reach, router.reach, strict=True)),
            crossbar.reach[i].eq(router.reach[i]),
            allocation.occupied[i].eq(transmit.non_empty),
            receive.again.eq(allocation.again[i]),
        ]
