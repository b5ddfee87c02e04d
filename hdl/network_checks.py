"""The check of a network for deadlock: all packets are followed by the routing function, over (port, VL) channels."""

from __future__ import annotations

from collections.abc import Iterator

from .router.routing import Topology, routing_class

__all__ = ["Channel", "dependency_cycle", "find_cycle", "next_channel"]

Channel = tuple[int, int, int]
"""A router, one of its output ports, and a VL of that."""


def next_channel(network: Topology, router: int, in_port: int, vl: int, destination: int) -> Channel | None:
    """The channel that a packet to node `destination`, which came on VL `vl` of `in_port`, goes on to.

    None if the router has no port for it. Raises ValueError for a port that does not exist or leads nowhere.
    """
    function = routing_class(network.router)
    port, out_vl = function.next_port(network, router, in_port, vl, destination)
    if port is None:
        return None
    fault = ""
    if vl == network.router.control_vl:
        out_vl = vl
    elif out_vl != vl and not function.changes_vl:
        fault = f"from VL {vl} on VL {out_vl}, without `changes_vl`"
    elif function.changes_vl and not 0 <= out_vl < network.router.data_vls:
        fault = f"on VL {out_vl}: data VLs are 0 to {network.router.data_vls - 1}"
    place = (router, port)
    if place not in network.neighbours and place != network.nodes[destination]:
        fault = f"to port {port}, which does not lead there"
    if fault:
        name = network.router.routing
        raise ValueError(f"routing {name!r}: router {router} sends packets to node {destination} {fault}")
    return router, port, out_vl


def dependency_cycle(network: Topology) -> str | None:
    """A cycle of the channel dependency graph in words, or None.

    A wormhole network whose graph has no cycle cannot deadlock (Dally and Seitz 1987).

    Packets start at every node on every VL, and with management at every router's agent on the control VL. Where the
    VL plays no part in the routes, a channel is a port: the graph is the same for each VL. If it is free of cycles, it
    stays so whatever VLs a packet changes to.

    Raises ValueError as `next_channel`, and for a node that a packet finds no way to.
    """
    by_vl = routing_class(network.router).depends_on_vl()
    needs: dict[Channel, set[Channel]] = {}
    starts = list(_starts(network, by_vl))
    for destination in range(len(network.nodes)):
        walked: set[Channel] = set()
        for start, from_node in starts:
            at, before = start, None
            while at not in walked:
                walked.add(at)
                channel = next_channel(network, *at, destination)
                if channel is None:
                    if from_node or before is not None:
                        raise ValueError(
                            f"routing {network.router.routing!r}: router {at[0]} has no port for node {destination}"
                        )
                    break
                if before is not None:
                    needs.setdefault(before, set()).add(channel)
                router, port, vl = before = channel
                if (router, port) == network.nodes[destination]:
                    break
                at = (*network.neighbours[router, port], vl)
    cycle = find_cycle(needs)
    if not cycle:
        return None
    return " -> ".join(
        f"router {router} port {port}" + (f" VL {vl}" if by_vl else "")
        for router, port, vl in [*cycle, cycle[0]]
    )


def _starts(network: Topology, by_vl: bool) -> Iterator[tuple[Channel, bool]]:
    """The input ports and VLs where packets enter, and whether a node sends them, or else an agent."""
    router = network.router
    for place in network.nodes:
        for vl in range(router.link.vls if by_vl else 1):
            yield (*place, vl), True
    if router.management and router.control_vl is not None:
        for number in range(network.routers):
            yield (number, 0, router.control_vl if by_vl else 0), False


def find_cycle(needs: dict[Channel, set[Channel]]) -> list[Channel] | None:
    """A cycle of a directed graph, or None: a depth-first search that keeps its own stack."""
    finished: set[Channel] = set()
    for start in sorted(needs):
        if start in finished:
            continue
        trail, on_trail = [start], {start}
        pending = [iter(sorted(needs[start]))]
        while trail:
            following = next(pending[-1], None)
            if following is None:
                pending.pop()
                on_trail.remove(trail[-1])
                finished.add(trail.pop())
            elif following in on_trail:
                return trail[trail.index(following) :]
            elif following not in finished:
                trail.append(following)
                on_trail.add(following)
                pending.append(iter(sorted(needs.get(following, ()))))
    return None
