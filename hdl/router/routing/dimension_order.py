"""Dimension order on a 2-D mesh: x first, then y."""

from __future__ import annotations

from amaranth import Cat, Module

from ...config import ConfigError, RouterConfig
from .function import COORDINATE_BITS, RoutingFunction

__all__ = ["DimensionOrderRouting"]


class DimensionOrderRouting(RoutingFunction):
    """The route holds the destination's coordinates: x in the low 5 bits, y in the next 5.

    Ports: the node at 0, x + 1 at 1, x - 1 at 2, y + 1 at 3, y - 1 at 4; with a management port each one
    higher. A destination outside the mesh has no port. Raises ConfigError for a router with fewer ports.

    A packet never turns from y to x, so that no cycle of channels can wait for each other, whatever the size
    of the mesh.
    """

    uses_position = True

    @classmethod
    def check(cls, config: RouterConfig) -> None:
        """Raises ConfigError if there are fewer ports than a node and four neighbours need."""
        least = cls.first_port(config) + 5
        if config.ports < least:
            raise ConfigError(
                f"RouterConfig.ports = {config.ports}: dimension_order routing needs {least}"
                f"{', port 0 being for management' if config.management else ''}"
            )

    @staticmethod
    def first_port(config: RouterConfig) -> int:
        """The node's port."""
        return 1 if config.management else 0

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
