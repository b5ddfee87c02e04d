"""Routes that are given: by the tables of a network, or else by its shortest paths."""

from __future__ import annotations

from typing import Any

from .function import RoutingFunction
from .topology import Topology

__all__ = ["GivenRouting"]


class GivenRouting(RoutingFunction):
    """Base of the functions that follow any routes (`Topology.given_port`); packets keep their VL.

    Nothing in them keeps routes from deadlock: `Network` checks those that it is given or gives out.
    """

    @classmethod
    def check(cls, network: Topology) -> None:
        """Every row of a table must lead to a neighbour or to its node."""
        if not network.tables:
            return
        if len(network.tables) != network.routers:
            raise ValueError(f"{len(network.tables)} tables: one for each of {network.routers} routers")
        homes = {router for router, _ in network.nodes}
        for router, table in enumerate(network.tables):
            if len(table) != len(network.nodes):
                raise ValueError(
                    f"table of router {router}: {len(table)} rows: one for each of {len(network.nodes)} nodes"
                )
            for node, port in enumerate(table):
                if port == -1 and router in homes:
                    raise ValueError(f"table of router {router}: node {node} cannot be reached")
                if (
                    port != -1
                    and (router, port) not in network.neighbours
                    and network.nodes[node] != (router, port)
                ):
                    raise ValueError(f"table of router {router}: port {port} does not lead to node {node}")
        for (router, port), (there, _) in network.neighbours.items():
            for node in range(len(network.nodes)):
                if network.tables[router][node] == port and network.tables[there][node] == -1:
                    raise ValueError(
                        f"table of router {router}: port {port} leads to router {there}, which has no port for "
                        f"node {node}"
                    )

    @classmethod
    def next_port(
        cls, network: Topology, router: int, in_port: int, vl: int, destination: int
    ) -> tuple[int | None, int]:
        """The given port, and the VL as it is."""
        port = network.given_port(router, destination)
        return (None if port < 0 else port), vl

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `next_port`."""
        return network.given_ports[routers, destinations], vls
