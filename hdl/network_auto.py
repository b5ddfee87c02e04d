"""The routing function of a network whose routers have `routing` `auto`: by the source where its routes fit."""

from __future__ import annotations

from typing import Protocol

from .config import RouterConfig
from .router.routing import Topology, routing_class

__all__ = ["fits_source_routes", "why_by_destination", "with_routing"]


class Measured(Topology, Protocol):
    """A network and its longest path: members as in `lanikai.hdl.network.Network`."""

    @property
    def longest_path(self) -> int: ...


def fits_source_routes(network: Measured) -> bool:
    """Whether a header holds every route between two nodes."""
    return network.longest_path <= network.router.link.max_hops


def with_routing(network: Measured) -> RouterConfig:
    """The network's routers, with the routing function that `auto` stands for."""
    router, sides = network.router, [0, 0]
    if len(network.coordinates) != network.routers:
        return router.replace(routing="source")
    wraps = False
    for (here, _), (there, _) in network.links:
        apart = [
            abs(a - b) for a, b in zip(network.coordinates[here], network.coordinates[there], strict=True)
        ]
        wraps = wraps or max(apart) > 1
        sides = [max(side, 1 + distance) for side, distance in zip(sides, apart, strict=True)]
    if wraps and max(sides) > 3:
        # Source routes round a ring of more than 3 could deadlock.
        selection = "routing" if router.vl_selection == "same" else router.vl_selection
        return router.replace(routing="torus", vl_selection=selection)
    return router.replace(routing="source" if fits_source_routes(network) else "dimension_order")


def why_by_destination(network: Measured) -> str:
    """One line: routers choose the way by the destination, and why. Empty if source routes could lead it."""
    name, most = network.router.routing, network.router.link.max_hops
    if routing_class(network.router).strips:
        return ""
    if network.longest_path > most:
        why = f"the longest way has {network.longest_path} routers and a source route holds {most}"
    elif name == "torus":
        why = "source routes round a ring of more than 3 routers could deadlock"
    else:
        return ""
    return f"routing {name}: by destination, as {why}"
