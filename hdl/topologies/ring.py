"""Rings of routers."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from .shape import Links, Shape

__all__ = ["Ring"]


class Ring(Shape):
    """A ring of routers with a node each: port 0 leads to the node, 1 to the next router, 2 to the one before."""

    label: ClassVar[str] = "ring"
    ranges: ClassVar[str] = "ring(3) to ring(1024)"
    routing: ClassVar[str] = "ring"
    lanes: ClassVar[str] = "pairs: the upper VL from the dateline on"
    wanted_vls: ClassVar[int] = 2

    routers: int = Field(ge=3, le=1024, description="routers, a node on each")

    @property
    def ports(self) -> int:
        """A node and two neighbours."""
        return 3

    @property
    def router_count(self) -> int:
        """`routers`."""
        return self.routers

    def joined(self) -> Links:
        """Router i to router i + 1, the last one to the first one."""
        return [((router, 1), ((router + 1) % self.routers, 2)) for router in range(self.routers)]

    @property
    def diameter(self) -> int:
        """Half way round."""
        return self.routers // 2

    @property
    def bisection(self) -> int:
        """Two: a ring that is cut falls apart at two places."""
        return 2
