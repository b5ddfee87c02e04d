"""The base of topologies that have a name: routers, nodes and links by formulas, and what is known of them."""

from __future__ import annotations

from typing import ClassVar

from ..config import Config

__all__ = ["Links", "Place", "Places", "Shape"]

Place = tuple[int, int]
"""A router's number and one of its ports, counted without the management port."""
Places = list[Place]
Links = list[tuple[Place, Place]]


class Shape(Config):
    """Base of the topologies that have a name, such as `ring(8)`: the fields are its parameters, in their order.

    Attributes that a derived class sets:

    - `label`: its name. `ranges`: the smallest and largest ones, for help and errors.
    - `routing`: the routing function that `auto` stands for, where routers can have it; "" if `auto` goes by shortest
      paths, or up*/down* where those could deadlock.
    - `lanes`: how the routing function uses VLs, in a few words.
    - `wanted_vls`: fewest VLs of its routing function.

    A derived class gives `ports`, `router_count`, `homes` and `joined`. Where a closed form is known, it gives
    `diameter` and `bisection`, which tests hold against counts.
    """

    label: ClassVar[str] = ""
    ranges: ClassVar[str] = ""
    routing: ClassVar[str] = ""
    lanes: ClassVar[str] = "packets keep their VL"
    wanted_vls: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The name with its parameters, as `network_named` takes it."""
        given = []
        for field, about in type(self).model_fields.items():
            value = getattr(self, field)
            if about.is_required():
                given.append("x".join(map(str, value)) if isinstance(value, tuple) else str(value))
            elif value != about.default:
                given.append(f"{field}={value}")
        return f"{self.label}({','.join(given)})"

    @property
    def ports(self) -> int:
        """Ports of every router, without the management port."""
        raise NotImplementedError(f"{type(self).__name__} has no ports")

    @property
    def router_count(self) -> int:
        """Routers."""
        raise NotImplementedError(f"{type(self).__name__} has no router_count")

    def homes(self) -> Places:
        """The place of each node: here a node on each router, at port 0."""
        return [(router, 0) for router in range(self.router_count)]

    def joined(self) -> Links:
        """The two places that each link joins."""
        raise NotImplementedError(f"{type(self).__name__} has no joined()")

    def coordinates(self) -> list[tuple[int, int]]:
        """x and y of each router where the routing functions of grids go by them; else empty."""
        return []

    @property
    def diameter(self) -> int | None:
        """Most links between the routers of two nodes, by the routing function; None if no closed form is known."""
        return None

    @property
    def bisection(self) -> int | None:
        """Fewest two-way links between two halves of the nodes; None if no closed form is known.

        Routers are not divided: the nodes of one are in the same half. The halves differ by the nodes of one router at
        most.
        """
        return None
