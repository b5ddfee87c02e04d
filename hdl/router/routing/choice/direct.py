"""The base of routing functions that are made from the one way of another function, the direct one."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth import Module, Value

from ....config import RouterConfig
from ..function import RoutingFunction

__all__ = ["DirectBased"]


class DirectBased(RoutingFunction):
    """Base of functions that have a topology's own function inside, as hardware and as twin.

    A derived class derives from the direct function, too, for its ports, header, position and checks.

    Attributes that a derived class sets:

    - `direct`: the direct function. It keeps the VL, or chooses one of a pair.
    - `position_layout`: the direct function's, or one with more fields.
    """

    direct: ClassVar[type[RoutingFunction]]

    changes_vl = True
    in_order = False

    @classmethod
    def lanes(cls) -> int:
        """VLs that packets of a class have in the direct function: 2 if it chooses one of a pair."""
        return 2 if cls.direct.changes_vl else 1

    @staticmethod
    def first_port(config: RouterConfig) -> int:
        """The first port that is not for management."""
        return 1 if config.management else 0

    @classmethod
    def to_bits(cls) -> int:
        """Bits of the direct function's route, which are the lowest ones."""
        return cls.direct.route_bits(RouterConfig())

    def inside(self, m: Module, name: str, *, in_port: int, route: Value, lane: Value) -> tuple[Value, Value]:
        """Adds the direct function to `m`: its port, and the lane that it chooses of the pair (0 without one)."""
        # The configuration with which the direct function is content.
        inside = self.config.replace(
            vl_selection="routing" if self.direct.changes_vl else "same",
            header_lookahead=None,
            routing_seed=1,
        )
        part: Any = self.direct(inside, in_port=in_port)
        m.submodules[name] = part
        m.d.comb += part.route.eq(route)
        if self.direct.position_layout is not None:
            m.d.comb += [
                part.position[field].eq(self.position[field]) for field, _ in self.direct.position_layout
            ]
        if not self.direct.changes_vl:
            return part.port, Value.cast(0)
        m.d.comb += part.vl.eq(lane)
        return part.port, part.out_vl[0]
