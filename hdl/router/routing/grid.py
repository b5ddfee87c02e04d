"""The base of routing functions of 2-D meshes and tori: positions, coordinates, places of links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth import unsigned
from amaranth.lib import data

from ...config import ConfigError, RouterConfig
from .function import NODE_BITS, RoutingFunction
from .topology import Topology

__all__ = ["COORDINATE_BITS", "POSITION", "GridRouting"]

COORDINATE_BITS = NODE_BITS // 2
"""Width of a coordinate: x in the low half of the node bits, y in the high half."""

POSITION = data.StructLayout(
    {name: unsigned(COORDINATE_BITS) for name in ("x", "y", "last_x", "last_y")},
)
"""The coordinates of a router in its mesh or torus, and the largest ones there."""


class GridRouting(RoutingFunction):
    """Base of the functions whose route holds the destination's coordinates: x in the low 5 bits, y in the next 5.

    Ports: the node at 0, x + 1 at 1, x - 1 at 2, y + 1 at 3, y - 1 at 4; with a management port each one higher.
    Raises ConfigError for a router with fewer ports.

    Attributes that a derived class sets:

    - `wraps`: the last router of each row and column is linked to the first one.
    - `shape`: the word for such a network.
    """

    position_layout = POSITION
    wraps = False
    shape = "mesh"

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError if there are fewer ports than a node and four neighbours need."""
        super().check_config(config)
        least = cls.first_port(config) + 5
        if config.ports < least:
            raise ConfigError(
                f"RouterConfig.ports = {config.ports}: {config.routing} routing needs {least}"
                f"{', port 0 being for management' if config.management else ''}"
            )

    @staticmethod
    def first_port(config: RouterConfig) -> int:
        """The node's port."""
        return 1 if config.management else 0

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """Coordinates of the router, and the largest ones."""
        (x, y), (last_x, last_y) = network.coordinates[router], network.last
        return {"x": x, "y": y, "last_x": last_x, "last_y": last_y}

    @classmethod
    def route_field(cls, network: Topology, router: int, in_port: int, destination: int) -> int:
        """The coordinates of the destination's router."""
        x, y = network.coordinates[network.nodes[destination][0]]
        return x | y << COORDINATE_BITS

    @staticmethod
    def coordinates_of(network: Topology, routers: Any, destinations: Any) -> tuple[Any, Any]:
        """Arrays x and y of routers, and of the routers of nodes."""
        at = np.array(network.coordinates, np.int32)
        homes = np.array([router for router, _ in network.nodes])
        return at[routers].T, at[homes[destinations]].T

    @classmethod
    def check(cls, network: Topology) -> None:
        """Every link must be where the function takes it to be, with a node on each router that it goes to."""
        super().check(network)
        at = cls._routers_at(network)
        base = cls.first_port(network.router)
        sides = (network.last[0] + 1, network.last[1] + 1)
        for (x, y), router in at.items():
            for port, (to_x, to_y) in enumerate(((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)), base + 1):
                other = (to_x % sides[0], to_y % sides[1]) if cls.wraps else (to_x, to_y)
                if other == (x, y) or other not in at:
                    continue
                if network.neighbours.get((router, port), (None,))[0] != at[other]:
                    raise ValueError(
                        f"router {router}: port {port} must be linked to router {at[other]}, for dimension order"
                    )
        for number, link in enumerate(network.links):
            apart = 0
            for side, a, b in zip(sides, *(network.coordinates[place[0]] for place in link), strict=True):
                distance = abs(a - b)
                apart += min(distance, side - distance) if cls.wraps else distance
            if apart != 1:
                raise ValueError(
                    f"link {number}: routers {link[0][0]} and {link[1][0]} are no neighbours in the {cls.shape}"
                )
        if network.routers != sides[0] * sides[1]:
            raise ValueError(
                f"{network.routers} routers do not fill a {cls.shape} of {sides[0]} x {sides[1]}"
            )
        for node, (router, port) in enumerate(network.nodes):
            if port != base:
                raise ValueError(
                    f"node {node}: port {port} of router {router}: dimension order wants it at port {base}"
                )

    @classmethod
    def _routers_at(cls, network: Topology) -> dict[tuple[int, int], int]:
        """The router at each pair of coordinates."""
        limit = (1 << COORDINATE_BITS) - 1
        if not network.coordinates:
            raise ValueError(
                f"routing {network.router.routing!r} is for a {cls.shape}: "
                "routers of this network have no coordinates"
            )
        if len(network.coordinates) != network.routers:
            raise ValueError(
                f"{len(network.coordinates)} coordinates: one for each of {network.routers} routers"
            )
        at: dict[tuple[int, int], int] = {}
        for router, (x, y) in enumerate(network.coordinates):
            if not (0 <= x <= limit and 0 <= y <= limit):
                raise ValueError(f"router {router}: coordinates {x}, {y}: 0 to {limit}")
            if (x, y) in at:
                raise ValueError(f"router {router}: coordinates {x}, {y} are those of router {at[x, y]}")
            at[x, y] = router
        return at
