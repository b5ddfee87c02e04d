"""The check of a network for deadlock: all packets are followed by the routing function, over (port, VL) channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .network_paths import NO_WAY, link_ends
from .router.routing import Topology, routing_class

__all__ = ["Channel", "channel_needs", "cycle_words", "dependency_cycle", "find_cycle", "next_channel"]

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
    cycle = find_cycle(channel_needs(network))
    return cycle_words(cycle, by_vl) if cycle else None


def cycle_words(cycle: list[Channel], by_vl: bool) -> str:
    """A cycle of channels as one line."""
    return " -> ".join(
        f"router {router} port {port}" + (f" VL {vl}" if by_vl else "")
        for router, port, vl in [*cycle, cycle[0]]
    )


def channel_needs(network: Topology) -> dict[Channel, set[Channel]]:
    """The channel dependency graph: for each channel those that a packet on it may wait for.

    A channel's VL is 0 where the VL plays no part in the routes. Raises ValueError as `dependency_cycle`.
    """
    return _Packets(network, routing_class(network.router).depends_on_vl()).needs()


class _Packets:
    """All packets of a network, followed a step at a time, those to many nodes at once.

    A packet is known by its router, input port, VL and destination. Those that come together go on as one.
    """

    _STATES = 1 << 22
    """States of packets looked at together: so much memory is used, whatever the network's size."""

    def __init__(self, network: Topology, by_vl: bool) -> None:
        self._network, self._by_vl = network, by_vl
        router = network.router
        self._function = routing_class(router)
        self._steps = self._function.steps()
        self._vls = router.link.vls if by_vl else 1
        self._there = link_ends(network.neighbours, network.routers, router.ports)
        self._homes = np.array(network.nodes, np.int32)
        self._found: set[int] = set()

    def needs(self) -> dict[Channel, set[Channel]]:
        """For each channel those that a packet on it may wait for. Raises ValueError as `dependency_cycle`."""
        network, ports = self._network, self._network.router.ports
        nodes = len(network.nodes)
        together = max(1, self._STATES // (network.routers * ports * self._vls))
        pairs: list[np.ndarray] = [np.zeros(0, np.int64)]
        for first in range(0, nodes, together):
            pairs.append(self._follow(first, min(nodes, first + together)))
        found: dict[Channel, set[Channel]] = {}
        channels = network.routers * ports * self._vls
        for pair in np.unique(np.concatenate(pairs)).tolist():
            before, after = divmod(pair, channels)
            found.setdefault(self._channel(before), set()).add(self._channel(after))
        return found

    def _channel(self, number: int) -> Channel:
        place, vl = divmod(number, self._vls)
        router, port = divmod(place, self._network.router.ports)
        return router, port, vl

    def _number(self, router: Any, port: Any, vl: Any) -> Any:
        return (router.astype(np.int64) * self._network.router.ports + port) * self._vls + vl

    def _starts(self) -> tuple[np.ndarray, np.ndarray]:
        """The input ports and VLs where packets enter, a row each, and whether a node sends them, or else an agent."""
        router = self._network.router
        rows = [(*place, vl) for place in self._network.nodes for vl in range(self._vls)]
        agents: list[tuple[int, int, int]] = []
        if router.management and router.control_vl is not None:
            vl = router.control_vl if self._by_vl else 0
            agents = [(number, 0, vl) for number in range(self._network.routers)]
        return np.array(rows + agents, np.int32), np.arange(len(rows) + len(agents)) < len(rows)

    def _follow(self, first: int, last: int) -> np.ndarray:
        """The pairs of channels of packets to the nodes from `first` to before `last`, each as one number."""
        network, ports = self._network, self._network.router.ports
        channels = network.routers * ports * self._vls
        starts, from_node = self._starts()
        to = np.repeat(np.arange(first, last, dtype=np.int32), len(starts))
        router, port, vl = np.tile(starts, (last - first, 1)).T
        sent = np.tile(from_node, last - first)
        begun = True
        seen = np.zeros((last - first) * channels, bool)
        pairs: list[np.ndarray] = []
        while len(to):
            state = (to - first) * channels + self._number(router, port, vl)
            state, kept = np.unique(state, return_index=True)
            kept = np.sort(kept[~seen[state]])
            seen[state] = True
            router, port, vl, to, sent = (one[kept] for one in (router, port, vl, to, sent))
            out, out_vl = self._steps(network, router, port, vl, to)
            out, out_vl = self._checked(router, port, vl, to, out, out_vl, sent)
            if not begun:
                before = self._number(self._there[0][router, port], self._there[1][router, port], vl)
                pair = before * channels + self._number(router, out, out_vl)
                pairs.append(np.unique(pair))
            going = (out >= 0) & ~((router == self._homes[to, 0]) & (out == self._homes[to, 1]))
            router, out, vl, to = router[going], out[going], out_vl[going], to[going]
            router, port = self._there[0][router, out], self._there[1][router, out]
            sent = np.ones(len(to), bool)
            begun = False
        return np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)

    def _checked(
        self, router: Any, port: Any, vl: Any, to: Any, out: Any, out_vl: Any, sent: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ports and VLs that packets go on to, -1 for an agent's that has no way. Raises ValueError as
        `next_channel`."""
        config, changes = self._network.router, self._function.changes_vl
        if config.control_vl is not None:
            out_vl = np.where(vl == config.control_vl, vl, out_vl)
        exists = (out >= 0) & (out < config.ports)
        shown = np.where(exists, out, 0)
        at_home = (router == self._homes[to, 0]) & (out == self._homes[to, 1])
        leads = exists & (at_home | (self._there[0][router, shown] >= 0))
        right = (out_vl == vl) | (np.bool_(changes) & (out_vl >= 0) & (out_vl < config.data_vls))
        wrong = np.where(out == NO_WAY, sent, ~(leads & right))
        if wrong.any():
            one = int(np.argmax(wrong))
            at = [int(values[one]) for values in (router, port, vl, to)]
            if next_channel(self._network, *at) is None:
                raise ValueError(f"routing {config.routing!r}: router {at[0]} has no port for node {at[3]}")
            raise AssertionError(
                f"{self._function.__name__}.next_ports() is not what next_port() is, at {at}"
            )
        return out, out_vl


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
