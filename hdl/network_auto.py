"""The routing that `auto` stands for: by the source where a network's routes fit, and never with a deadlock."""

from __future__ import annotations

from typing import Protocol

from .config import ConfigError, RouterConfig
from .router.routing import ADAPTIVE, AUTO, Topology, choices, routing_class
from .topologies import TOPOLOGIES, topology_named
from .up_down import up_down_tables

__all__ = ["GIVEN", "fits_source_routes", "in_topology", "up_down", "why_by_destination", "with_routing"]


GIVEN = ("source", "table")
"""The routing functions of which `auto` takes one where there are no coordinates."""


class Measured(Topology, Protocol):
    """A network and its longest path: members as in `lanikai.hdl.network.Network`."""

    @property
    def longest_path(self) -> int: ...


def fits_source_routes(network: Measured) -> bool:
    """Whether a header holds every route between two nodes."""
    return network.longest_path <= network.router.link.max_hops


def with_routing(network: Measured) -> RouterConfig:
    """The network's routers, with the routing function that `auto` stands for. Raises ConfigError for pipelined
    routers in a torus, which have none there."""
    router = network.router
    own, fault = _own_routing(network)
    if own and not fault:
        return own
    if len(network.coordinates) != network.routers:
        if fits_source_routes(network) and not router.multicast_nodes:
            return router.replace(routing="source")
        rows = max(router.forwarding_entries, len(network.nodes))
        return router.replace(routing="table", forwarding_entries=rows)
    if _longest_link(network) > 2:
        # Source routes round a ring of more than 3 could deadlock.
        if router.pipelined:
            raise ConfigError(
                "pipelined = True: in a torus with a ring of more than 3 routers packets must change their VL, and in "
                "a pipelined router they keep it: take a mesh, or pipelined = False"
            )
        selection = "routing" if router.vl_selection == "same" else router.vl_selection
        return router.replace(routing="torus", vl_selection=selection)
    by_source = fits_source_routes(network) and not router.multicast_nodes
    return router.replace(routing="source" if by_source else "dimension_order")


def _longest_link(network: Topology) -> int:
    """The most that coordinates of routers with a link are apart: 1 in a mesh, a side less 1 in a torus."""
    at = network.coordinates
    return max(
        (
            abs(a - b)
            for (here, _), (there, _) in network.links
            for a, b in zip(at[here], at[there], strict=True)
        ),
        default=0,
    )


def in_topology(network: Topology) -> RouterConfig:
    """The network's routers, with the function that a name of `ADAPTIVE` stands for in its topology, and `node_ports`.

    Raises ValueError where there is none.
    """
    router = network.router
    if router.routing in ADAPTIVE:
        kind, name = "mesh", network.topology
        if name:
            kind = topology_named(name).label
        elif len(network.coordinates) == network.routers and _longest_link(network) > 1:
            kind, name = "torus", "a torus"
        if kind != "mesh":
            if router.routing not in choices(kind):
                kinds = [label for label in TOPOLOGIES if router.routing in choices(label)]
                raise ValueError(
                    f"routing {router.routing!r} is for {', '.join(kinds)}: this network is {name}"
                )
            router = router.replace(routing=f"{kind}_{router.routing}")
    if routing_class(router).rewrites_at(router):
        first = 1 if router.management else 0
        router = router.replace(node_ports=max(1, 1 + max(port for _, port in network.nodes) - first))
    return router


def _own_routing(network: Topology) -> tuple[RouterConfig | None, str]:
    """The routers with the function of the network's topology, None without one; and why they cannot have it."""
    name = topology_named(network.topology).routing if network.topology else ""
    if not name:
        return None, ""
    router = network.router.replace(routing=AUTO)
    try:
        wanted = router.replace(routing=name)
        if routing_class(wanted).changes_vl and router.vl_selection == "same":
            wanted = wanted.replace(vl_selection="routing")
        router = wanted
        routing_class(router).check_config(router)
    except ConfigError as error:
        return router, str(error)
    return router, ""


def why_by_destination(network: Measured) -> str:
    """One line: routers choose the way by the destination, or go up*/down*, and why. Empty for source routes along
    shortest paths, and for a way that they could lead."""
    name, most = network.router.routing, network.router.link.max_hops
    ways = ""
    if name in GIVEN and network.tables and network.tables == up_down(network):
        ways = "ways go up*/down*, as shortest ones could deadlock"
        fault = _own_routing(network)[1]
        if fault:
            ways += f" and routers cannot have {network.topology}'s own routing ({fault})"
    if routing_class(network.router).strips:
        return f"routing {name}: {ways}" if ways else ""
    if name not in GIVEN and network.topology:
        why = f"{network.topology} has a routing function of its own"
    elif network.longest_path > most:
        why = f"the longest way has {network.longest_path} routers and a source route holds {most}"
    elif name == "torus":
        why = "source routes round a ring of more than 3 routers could deadlock"
    else:
        return ""
    return f"routing {name}: by destination, as {why}" + (f"; {ways}" if ways else "")


def up_down(network: Measured) -> tuple[tuple[int, ...], ...]:
    """The tables of up*/down* routing in the network."""
    return up_down_tables(network.neighbours, network.routers, network.router.ports, network.nodes)
