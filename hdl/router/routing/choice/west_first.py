"""West-first routing on a 2-D mesh (Glass and Ni 1992)."""

from __future__ import annotations

from amaranth import Const, Module, Value

from ..function import Arrival
from .turns import TurnRouting

__all__ = ["WestFirstRouting"]


class WestFirstRouting(TurnRouting):
    """A packet to a lower x goes there first. Any other one takes x + 1 or either way along y, whichever is nearer.

    No packet turns from y to x - 1. So it is in order to lower columns, and adaptive to higher ones.
    """

    @classmethod
    def allowed_axes(cls, x: int, y: int, arrival: Arrival, came: int) -> tuple[bool, bool]:
        """Along y only when no way to x - 1 is left."""
        return True, x >= arrival.position["x"]

    def allow(self, m: Module, x: Value, y: Value) -> tuple[Value, Value]:
        """Along y only when no way to x - 1 is left."""
        return Const(1), x >= self.position.x
