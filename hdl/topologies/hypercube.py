"""Binary hypercubes."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from .shape import Links, Shape

__all__ = ["Hypercube"]


class Hypercube(Shape):
    """2^d routers with a node each; two are linked if their numbers differ in one bit.

    Port 0 leads to the node, port 1 + i to the router whose number differs in bit i.
    """

    label: ClassVar[str] = "hypercube"
    ranges: ClassVar[str] = "hypercube(1) to hypercube(10)"
    routing: ClassVar[str] = "hypercube"

    dimensions: int = Field(
        ge=1, le=10, description="bits of a router's number: there are 2^dimensions routers"
    )

    @property
    def ports(self) -> int:
        """A node, and a neighbour in each dimension."""
        return 1 + self.dimensions

    @property
    def router_count(self) -> int:
        """2^dimensions."""
        return 1 << self.dimensions

    def joined(self) -> Links:
        """In each dimension the routers with a 0 there to those with a 1."""
        return [
            ((router, 1 + bit), (router | 1 << bit, 1 + bit))
            for bit in range(self.dimensions)
            for router in range(self.router_count)
            if not router >> bit & 1
        ]

    @property
    def diameter(self) -> int:
        """A link in each dimension."""
        return self.dimensions

    @property
    def bisection(self) -> int:
        """The links of one dimension."""
        return self.router_count // 2
