"""Where routers stand in a drawing of their network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lanikai.hdl.network import Network
from lanikai.hdl.topologies import Shape

from .bisection import graph_of

__all__ = ["layout", "places_of"]

Point = tuple[float, float]
MOST_SPRINGS = 500
"""Routers up to which networkx lays out by springs with numpy alone."""


def layout(network: Network, shape: Shape | None) -> list[Point]:
    """x and y of each router. Topologies without a place of their own are laid out by networkx, as by springs,
    and large ones round a circle."""
    if shape is not None and (own := places_of(shape, network.routers)) is not None:
        return own
    if network.routers == 1:
        return [(0.0, 0.0)]
    import networkx

    graph = graph_of(network)
    start = networkx.circular_layout(graph)
    found = (
        networkx.spring_layout(graph, pos=start, weight=None, seed=1, iterations=200)
        if network.routers < MOST_SPRINGS
        else start
    )
    return [(float(found[router][0]), float(found[router][1])) for router in range(network.routers)]


def places_of(shape: Shape, routers: int) -> list[Point] | None:
    """x and y of each of the routers in the topology's own picture, or None if it has none."""
    make = _PLACES.get(shape.label)
    return None if make is None else [make(shape, router) for router in range(routers)]


def _round(number: int, count: int, radius: float = 1.0) -> Point:
    """A place of a circle, the first one at the top, clockwise."""
    angle = math.pi / 2 - 2 * math.pi * number / count
    return radius * math.cos(angle), radius * math.sin(angle)


def _grid(shape: Any, router: int) -> Point:
    y, x = divmod(router, shape.sides[0])
    return float(x), -float(y)


def _hypercube(shape: Any, router: int) -> Point:
    """Each dimension is a vector: the first two are a square's sides, later pairs are shifted copies."""
    x = y = 0.0
    for bit in range(shape.dimensions):
        if router >> bit & 1:
            size = 2.6 ** (bit // 3)
            step = ((1.0, 0.0), (0.0, 1.0), (0.38, 0.38))[bit % 3]
            x, y = x + size * step[0], y + size * step[1]
    return x, y


def _flattened(shape: Any, router: int) -> Point:
    at = shape.at(router)
    if len(at) == 1:
        return _round(router, shape.router_count)
    z = at[2] if len(at) == 3 else 0
    return at[0] + z * (shape.sizes[0] + 0.8), -float(at[1]) - 0.3 * z


def _kary(shape: Any, router: int) -> Point:
    level, number = divmod(router, shape.row)
    return float(number), -level * max(1.0, shape.row / 5)


def _tree(shape: Any, router: int) -> Point:
    level, first, width = 0, 0, 1
    while router >= first + width:
        level, first, width = level + 1, first + width, width * shape.fan_out
    leaves = shape.fan_out ** (shape.levels - 1)
    span = leaves / width
    return (router - first + 0.5) * span, -level * max(1.0, leaves / 5)


def _dragonfly(shape: Any, router: int) -> Point:
    group, number = divmod(router, shape.a)
    x, y = _round(group, shape.groups)
    near = 0.62 * math.pi / shape.groups
    dx, dy = _round(number, shape.a, near)
    return x + dx, y + dy


_PLACES: Mapping[str, Callable[[Any, int], Point]] = {
    "mesh": _grid,
    "torus": _grid,
    "chain": lambda shape, router: (float(router), 0.0),
    "ring": lambda shape, router: _round(router, shape.routers),
    "hypercube": _hypercube,
    "flattened_butterfly": _flattened,
    "kary_tree": _kary,
    "tree": _tree,
    "dragonfly": _dragonfly,
}
"""The place of a router in each topology that has a picture of its own."""
