"""Meshes and tori of two dimensions."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from .shape import Links, Shape

__all__ = ["MOST_SIDE", "Mesh", "Torus"]

MOST_SIDE = 32
"""Longest side: as far as coordinates reach (`hdl/router/routing/grid.py`)."""


class Mesh(Shape):
    """A grid of routers with a node each; the router at (x, y) has number x + y * width.

    Port 0 leads to the node, 1 to x + 1, 2 to x - 1, 3 to y + 1, 4 to y - 1.
    """

    label: ClassVar[str] = "mesh"
    ranges: ClassVar[str] = "mesh1x2 to mesh32x32"
    routing: ClassVar[str] = "dimension_order"
    wraps: ClassVar[bool] = False

    sides: tuple[int, ...] = Field(description="routers of a row, and of a column: 1 to 32 each")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.sides) != 2 or not all(1 <= side <= MOST_SIDE for side in self.sides):
            raise ValueError(f"two sides of 1 to {MOST_SIDE}, such as {self.label}(4x4)")
        if self.sides == (1, 1):
            raise ValueError(f"1 x 1: at least 2 routers, such as {self.label}(1x2)")
        return self

    @property
    def ports(self) -> int:
        """A node and four neighbours."""
        return 5

    @property
    def router_count(self) -> int:
        """Those of all rows."""
        return self.sides[0] * self.sides[1]

    def coordinates(self) -> list[tuple[int, int]]:
        """x and y, row by row."""
        return [(x, y) for y in range(self.sides[1]) for x in range(self.sides[0])]

    def joined(self) -> Links:
        """Links along x, then those along y."""
        found: Links = []
        for axis in (0, 1):
            for x, y in self.coordinates():
                at, side = (x, y)[axis], self.sides[axis]
                if at + 1 < side or (self.wraps and side > 1):
                    to = [x, y]
                    to[axis] = (at + 1) % side
                    there = to[0] + to[1] * self.sides[0]
                    found.append(((x + y * self.sides[0], 1 + 2 * axis), (there, 2 + 2 * axis)))
        return found

    @property
    def diameter(self) -> int:
        """From corner to corner."""
        return sum(self.sides) - 2

    @property
    def bisection(self) -> int | None:
        """The shorter side, where the longer one is even."""
        return min(self.sides) if max(self.sides) % 2 == 0 else None


class Torus(Mesh):
    """The `Mesh` with the last router of each row and column linked to the first one."""

    label: ClassVar[str] = "torus"
    ranges: ClassVar[str] = "torus1x2 to torus32x32"
    routing: ClassVar[str] = "torus"
    lanes: ClassVar[str] = "pairs: the upper VL from the dateline on"
    wanted_vls: ClassVar[int] = 2
    wraps: ClassVar[bool] = True

    @property
    def diameter(self) -> int:
        """Half way round along x and y."""
        return self.sides[0] // 2 + self.sides[1] // 2

    @property
    def bisection(self) -> int | None:
        """Twice the shorter side, where the longer one is even."""
        return 2 * min(self.sides) if max(self.sides) % 2 == 0 else None
