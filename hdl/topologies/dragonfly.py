"""Dragonflies (Kim, Dally, Scott, Abts 2008): groups of routers, and a link between any two groups."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from .shape import Links, Places, Shape

__all__ = ["Dragonfly"]

MOST_NODES = 1024


class Dragonfly(Shape):
    """a h + 1 groups of a routers; a router has p nodes, a link to each other one of its group, and h to other groups.

    Router r of group g has number g * a + r. Its ports from 0 on lead to its nodes, then to the others of its group in
    their order, then to other groups. Port j of these leads from group g to group g + 1 + r * h + j, counted round.
    """

    label: ClassVar[str] = "dragonfly"
    ranges: ClassVar[str] = "dragonfly(2,1,1) to dragonfly(8,3,5)"
    routing: ClassVar[str] = "dragonfly"
    lanes: ClassVar[str] = "pairs: the upper VL from the link between groups on"
    wanted_vls: ClassVar[int] = 2

    a: int = Field(ge=2, le=31, description="routers of a group")
    p: int = Field(ge=1, le=31, description="nodes of a router")
    h: int = Field(ge=1, le=31, description="links of a router to other groups")

    @model_validator(mode="after")
    def _check(self) -> Self:
        nodes = self.router_count * self.p
        if nodes > MOST_NODES:
            raise ValueError(f"{nodes} nodes: at most {MOST_NODES}")
        return self

    @property
    def groups(self) -> int:
        """As many as there are links out of a group, and one."""
        return self.a * self.h + 1

    @property
    def ports(self) -> int:
        """Nodes, others of the group, other groups."""
        return self.p + self.a - 1 + self.h

    @property
    def router_count(self) -> int:
        """Those of all groups."""
        return self.groups * self.a

    @property
    def first_global(self) -> int:
        """The first port to another group."""
        return self.p + self.a - 1

    def homes(self) -> Places:
        """Nodes router by router, each at the port of its number there."""
        return [(router, port) for router in range(self.router_count) for port in range(self.p)]

    def joined(self) -> Links:
        """Links in groups, then those between groups."""
        inside = [
            ((group * self.a + low, self.p + high - 1), (group * self.a + high, self.p + low))
            for group in range(self.groups)
            for low in range(self.a)
            for high in range(low + 1, self.a)
        ]
        between = []
        for group in range(self.groups):
            for way in range(self.groups - 1):
                there, back = (group + 1 + way) % self.groups, self.groups - 2 - way
                if group < there:
                    between.append((self._outward(group, way), self._outward(there, back)))
        return inside + between

    def _outward(self, group: int, way: int) -> tuple[int, int]:
        """The place of the link that leads from a group to the one `way + 1` further."""
        router, port = divmod(way, self.h)
        return group * self.a + router, self.first_global + port

    @property
    def diameter(self) -> int:
        """A link in the source's group, one to the destination's, one there."""
        return 3
