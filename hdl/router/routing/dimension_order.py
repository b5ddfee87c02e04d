"""Dimension order on a 2-D mesh: x first, then y."""

from __future__ import annotations

from typing import Any

import numpy as np
from amaranth import Cat, Module

from ...config import RouterConfig
from .function import Arrival
from .grid import COORDINATE_BITS, GridRouting
from .topology import Topology

__all__ = ["DimensionOrderRouting"]


class DimensionOrderRouting(GridRouting):
    """The packet goes to the destination's column along x, then along y.

    Ports and route are those of `GridRouting`. A destination outside the mesh has no port.

    A packet never turns from y to x. So no cycle of channels can wait for each other, whatever the size of the mesh.
    """

    by_place = True

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The port along x, then the port along y, then the node's."""
        x, y = arrival.route % (1 << COORDINATE_BITS), arrival.route >> COORDINATE_BITS
        here, base = arrival.position, cls.first_port(config)
        if x > here["last_x"] or y > here["last_y"]:
            return None, arrival.vl
        if x != here["x"]:
            return base + (1 if x > here["x"] else 2), arrival.vl
        if y != here["y"]:
            return base + (3 if y > here["y"] else 4), arrival.vl
        return base, arrival.vl

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """As `decide`."""
        (x, y), (to_x, to_y) = cls.coordinates_of(network, routers, destinations)
        along_y = np.where(to_y == y, 0, np.where(to_y > y, 3, 4))
        return cls.first_port(network.router) + np.where(to_x == x, along_y, np.where(to_x > x, 1, 2)), vls

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x, y = self.route[:COORDINATE_BITS], self.route[COORDINATE_BITS:]
        here, base = self.position, self.first_port(self.config)
        with m.If((x <= here.last_x) & (y <= here.last_y)):
            same = x == here.x
            m.d.comb += self.port[base : base + 5].eq(
                Cat(
                    same & (y == here.y),
                    x > here.x,
                    x < here.x,
                    same & (y > here.y),
                    same & (y < here.y),
                )
            )
        return m
