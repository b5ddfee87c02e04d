"""The plain ones: one router, routers in a row, a tree."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from .shape import Links, Places, Shape

__all__ = ["MOST_NODES", "Chain", "Single", "Tree"]

MOST_NODES = 1024
"""Most nodes: as many as traffic is made for (`TrafficConfig.nodes`)."""


class Single(Shape):
    """One router, with node i at port i."""

    label: ClassVar[str] = "router"
    ranges: ClassVar[str] = "router2 to router64"

    nodes: int = Field(ge=2, le=64, description="nodes of the router")

    @property
    def ports(self) -> int:
        """A node each."""
        return self.nodes

    @property
    def router_count(self) -> int:
        """One."""
        return 1

    def homes(self) -> Places:
        """Node i at port i."""
        return [(0, port) for port in range(self.nodes)]

    def joined(self) -> Links:
        """None."""
        return []

    @property
    def diameter(self) -> int:
        """No link."""
        return 0


class Chain(Shape):
    """Routers in a row with a node each: port 0 leads to the node, 1 to the next router, 2 to the one before."""

    label: ClassVar[str] = "chain"
    ranges: ClassVar[str] = "chain2 to chain64"

    routers: int = Field(ge=2, le=64, description="routers, a node on each")

    @property
    def ports(self) -> int:
        """A node and two neighbours."""
        return 3

    @property
    def router_count(self) -> int:
        """`routers`."""
        return self.routers

    def joined(self) -> Links:
        """Router i to router i + 1."""
        return [((router, 1), (router + 1, 2)) for router in range(self.routers - 1)]

    @property
    def diameter(self) -> int:
        """From end to end."""
        return self.routers - 1

    @property
    def bisection(self) -> int:
        """One link."""
        return 1


class Tree(Shape):
    """A tree of `levels` levels of routers with `fan_out` children each.

    Each router of the last level has `fan_out` nodes. Ports 0 to `fan_out - 1` lead down, port `fan_out` up. Routers
    are numbered from the root, level by level.
    """

    label: ClassVar[str] = "tree"
    ranges: ClassVar[str] = "tree2x2 to tree16x2 or tree2x10"

    fan_out: int = Field(ge=2, le=16, description="children of a router")
    levels: int = Field(ge=1, le=10, description="levels of routers")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.fan_out**self.levels > MOST_NODES:
            raise ValueError(f"{self.fan_out}^{self.levels} nodes: at most {MOST_NODES}")
        return self

    @property
    def ports(self) -> int:
        """Children and a parent."""
        return self.fan_out + 1

    @property
    def router_count(self) -> int:
        """Those of all levels."""
        return self._start(self.levels)

    def _start(self, level: int) -> int:
        """The first router of a level."""
        return sum(self.fan_out**i for i in range(level))

    def homes(self) -> Places:
        """Nodes of the last level's routers."""
        leaves = range(self._start(self.levels - 1), self._start(self.levels))
        return [(leaf, child) for leaf in leaves for child in range(self.fan_out)]

    def joined(self) -> Links:
        """Parents to children, level by level."""
        found: Links = []
        for level in range(self.levels - 1):
            first, following = self._start(level), self._start(level + 1)
            found += [
                ((parent, child), (following + (parent - first) * self.fan_out + child, self.fan_out))
                for parent in range(first, following)
                for child in range(self.fan_out)
            ]
        return found

    @property
    def diameter(self) -> int:
        """Up to the root and down again."""
        return 2 * (self.levels - 1)

    @property
    def bisection(self) -> int | None:
        """Half of the root's links, where they are an even number."""
        return self.fan_out // 2 if self.levels > 1 and self.fan_out % 2 == 0 else None
