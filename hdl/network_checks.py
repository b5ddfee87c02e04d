"""Checks of a network that its routing function asks for. They raise ValueError, naming the element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .router.routing.dimension_order import DimensionOrderRouting
from .router.routing.function import COORDINATE_BITS

if TYPE_CHECKING:
    from .network import Network, Place

__all__ = ["check_coordinates", "check_tables", "find_cycle"]


def check_coordinates(network: Network) -> None:
    """Dimension order needs every link where it takes it to be, and a node on each router that it goes
    to."""
    limit = (1 << COORDINATE_BITS) - 1
    base = DimensionOrderRouting.first_port(network.router)
    if not network.coordinates:
        raise ValueError(
            "routing 'dimension_order' is for a mesh: routers of this network have no coordinates"
        )
    if len(network.coordinates) != network.routers:
        raise ValueError(f"{len(network.coordinates)} coordinates: one for each of {network.routers} routers")
    at: dict[tuple[int, int], int] = {}
    for router, (x, y) in enumerate(network.coordinates):
        if not (0 <= x <= limit and 0 <= y <= limit):
            raise ValueError(f"router {router}: coordinates {x}, {y}: 0 to {limit}")
        if (x, y) in at:
            raise ValueError(f"router {router}: coordinates {x}, {y} are those of router {at[x, y]}")
        at[x, y] = router
    for (x, y), router in at.items():
        for port, other in enumerate(((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)), base + 1):
            if other in at and network.neighbours.get((router, port), (None,))[0] != at[other]:
                raise ValueError(
                    f"router {router}: port {port} must be linked to router {at[other]}, for dimension order"
                )
    for number, link in enumerate(network.links):
        (x, y), (other_x, other_y) = (network.coordinates[place[0]] for place in link)
        if abs(x - other_x) + abs(y - other_y) != 1:
            raise ValueError(
                f"link {number}: routers {link[0][0]} and {link[1][0]} are no neighbours in the mesh"
            )
    if network.routers != (network.last[0] + 1) * (network.last[1] + 1):
        raise ValueError(
            f"{network.routers} routers do not fill a mesh of {network.last[0] + 1} x {network.last[1] + 1}"
        )
    for node, (router, port) in enumerate(network.nodes):
        if port != base:
            raise ValueError(
                f"node {node}: port {port} of router {router}: dimension order wants it at port {base}"
            )


def check_tables(network: Network) -> None:
    """Every row must lead to a neighbour or to its node."""
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


def find_cycle(needs: dict[Place, set[Place]]) -> list[Place] | None:
    """A cycle of a directed graph, or None: a depth-first search that keeps its own stack."""
    finished: set[Place] = set()
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
