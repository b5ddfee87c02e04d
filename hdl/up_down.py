"""Forwarding tables of any graph that cannot deadlock: up*/down* routing.

Source: Schroeder et al., Autonet: a high-speed, self-configuring local area network using point-to-point links, IEEE
J. Selected Areas in Communications 9(8), 1991.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .network_paths import Paths
from .router.routing import Place

__all__ = ["up_down_order", "up_down_tables"]

_NEVER = 1 << 20
"""More routers than any way has."""


def up_down_order(
    neighbours: Mapping[Place, Place], routers: int, ports: int, nodes: Sequence[Place]
) -> list[int]:
    """The routers in the order of `up_down_tables`, the root first."""
    distances = Paths(neighbours, routers, ports, nodes, ()).distances
    root = int(np.argmin(distances.sum(axis=1)))
    # A place at the root stands for a node, to have the distances from there.
    levels = Paths(neighbours, routers, ports, [(root, 0)], ()).distances[:, 0]
    return sorted(range(routers), key=lambda router: (levels[router], router))


def up_down_tables(
    neighbours: Mapping[Place, Place],
    routers: int,
    ports: int,
    nodes: Sequence[Place],
    order: Sequence[int] | None = None,
) -> tuple[tuple[int, ...], ...]:
    """For each router of a connected graph its port for each node, as `Network.tables`.

    The root is the router nearest to all nodes in sum. A link goes up towards fewer links from the root, or else the
    lower number. `order`: all routers, the root first, if others are to count: a link then goes up towards the router
    that comes earlier. Each but the first has a link to an earlier one, as each way needs one up to the root.

    A router from which links that go down lead to a node takes the shortest such way. Any other takes the
    link up from which it is shortest; of equal ones the lowest port. So no way goes down and up again, and no channels
    can wait for each other in a cycle.
    """
    homes = np.array(nodes, np.int32)
    order = order or up_down_order(neighbours, routers, ports, nodes)
    rank = {router: number for number, router in enumerate(order)}
    links: dict[int, list[tuple[int, int]]] = {router: [] for router in range(routers)}
    for (router, port), (there, _) in sorted(neighbours.items()):
        links[router].append((port, there))

    steps = np.full((routers, len(nodes)), _NEVER, np.int32)
    table = np.full((routers, len(nodes)), -1, np.int32)
    numbers = np.arange(len(nodes))
    steps[homes[:, 0], numbers] = 0
    table[homes[:, 0], numbers] = homes[:, 1]

    def improve(router: int, up: bool) -> None:
        """Have a router go by its links up, or down, where it has no way yet."""
        open_to = table[router] < 0
        for port, there in links[router]:
            if (rank[there] < rank[router]) != up:
                continue
            better = open_to & (steps[there] + 1 < steps[router])
            steps[router] = np.where(better, steps[there] + 1, steps[router])
            table[router] = np.where(better, port, table[router])

    for router in reversed(order):
        improve(router, up=False)
    for router in order:
        improve(router, up=True)
    return tuple(tuple(int(port) for port in row) for row in table)
