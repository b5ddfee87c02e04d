"""Flattened butterflies (Kim, Dally, Abts 2007): grids whose rows, columns and so on are joined each to each."""

from __future__ import annotations

from math import prod
from typing import ClassVar, Self

from pydantic import Field, model_validator

from .shape import Links, Places, Shape

__all__ = ["MOST_DIMENSIONS", "FlattenedButterfly"]

MOST_DIMENSIONS = 3
MOST_NODES = 1024


class FlattenedButterfly(Shape):
    """A grid of routers, with a link between any two that differ in one coordinate alone.

    The router at (x, y, z) has number x + y * width + z * width * height. Ports from 0 on lead to its nodes. Then come
    those along x, y and z: in each dimension to the other coordinates, in their order.
    """

    label: ClassVar[str] = "flattened_butterfly"
    ranges: ClassVar[str] = "flattened_butterfly(2) to flattened_butterfly(16x16,nodes=4)"
    routing: ClassVar[str] = "flattened_butterfly"

    sizes: tuple[int, ...] = Field(description="routers in each dimension: 1 to 3 numbers of 2 to 32")
    nodes: int = Field(1, ge=1, le=32, description="nodes on each router")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= len(self.sizes) <= MOST_DIMENSIONS or not all(2 <= size <= 32 for size in self.sizes):
            raise ValueError(f"1 to {MOST_DIMENSIONS} sizes of 2 to 32, such as {self.label}(4x4)")
        if self.router_count * self.nodes > MOST_NODES:
            raise ValueError(f"{self.router_count * self.nodes} nodes: at most {MOST_NODES}")
        if self.ports > 63:
            raise ValueError(f"{self.ports} ports a router: at most 63")
        return self

    @property
    def ports(self) -> int:
        """The nodes, and all others of each dimension."""
        return self.nodes + sum(size - 1 for size in self.sizes)

    @property
    def router_count(self) -> int:
        """The product of `sizes`."""
        return prod(self.sizes)

    def at(self, router: int) -> list[int]:
        """The coordinates of a router."""
        found = []
        for size in self.sizes:
            router, coordinate = divmod(router, size)
            found.append(coordinate)
        return found

    def first(self, dimension: int) -> int:
        """The first port along a dimension; that of the last dimension's successor is `ports`."""
        return self.nodes + sum(size - 1 for size in self.sizes[:dimension])

    def homes(self) -> Places:
        """Nodes router by router, each at the port of its number there."""
        return [(router, port) for router in range(self.router_count) for port in range(self.nodes)]

    def joined(self) -> Links:
        """In each dimension every router to those of higher coordinates."""
        found: Links = []
        for dimension, size in enumerate(self.sizes):
            stride, first = prod(self.sizes[:dimension]), self.first(dimension)
            for router in range(self.router_count):
                here = router // stride % size
                found += [
                    ((router, first + there - 1), (router + (there - here) * stride, first + here))
                    for there in range(here + 1, size)
                ]
        return found

    @property
    def diameter(self) -> int:
        """A link in each dimension."""
        return len(self.sizes)

    @property
    def bisection(self) -> int | None:
        """A quarter of the smallest size times the routers, where that size is even (its spectral bound is met)."""
        size = min(self.sizes)
        return size * self.router_count // 4 if size % 2 == 0 else None
