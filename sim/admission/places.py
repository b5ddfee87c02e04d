"""Places of a network as agents and hosts see them: the next hop of a connection, routes of control packets."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lanikai.hdl.network import Network
from lanikai.hdl.router.routing import routing_class

__all__ = ["Hop", "HostPlace", "RouterPlace"]


class Hop(NamedTuple):
    """The next step of a connection: the port it leaves by, and the router and port that it comes to, -1 for a node."""

    out_port: int
    router: int
    in_port: int
    vl: int


class RouterPlace:
    """Router `number` of a network."""

    def __init__(self, network: Network, number: int) -> None:
        self._network, self.number = network, number
        self.ports, self.nodes = network.router.ports, len(network.nodes)
        self.link = network.router.link
        function = routing_class(network.router)

        @cache
        def hop(in_port: int, vl: int, destination: int) -> Hop:
            out_port, out_vl = function.next_port(network, number, in_port, vl, destination)
            assert out_port is not None, "a network has a way to each of its nodes"
            if (number, out_port) == network.nodes[destination]:
                return Hop(out_port, -1, -1, out_vl)
            return Hop(out_port, *network.neighbours[number, out_port], out_vl)

        self.hop = hop
        """The data's next hop from an input port and VL to a node, by the routers' own routing function."""

    def route_to(self, node: int) -> int:
        """The route field of a packet that the agent sends towards a node."""
        return self._network.route_from(self.number, node)


class HostPlace:
    """Node `number` of a network."""

    def __init__(self, network: Network, number: int) -> None:
        self._network, self.number = network, number
        self.router, self.in_port = network.nodes[number]
        self.link, self.nodes = network.router.link, len(network.nodes)

    def route_to(self, node: int) -> int:
        """The route field of a packet that the node sends to another."""
        return self._network.source_route(self.number, node)
