"""Odd-even routing on a 2-D mesh (Chiu 2000)."""

from __future__ import annotations

from amaranth import Const, Module, Value

from ..function import Arrival
from .turns import TurnRouting

__all__ = ["OddEvenRouting"]


class OddEvenRouting(TurnRouting):
    """In even columns no packet turns from x + 1 to y, and in odd ones none from y to x - 1. Ways are minimal.

    So the last column of a cycle's right side cannot be there, and no two columns are treated much better than others.

    - A packet to a higher column turns to y in odd columns, or before it has moved along x. It does not enter an even
      column that is its destination's with rows left to go.
    - A packet to a lower column turns to y in even columns, as it must come back to x - 1 there.
    """

    @classmethod
    def allowed_axes(cls, x: int, y: int, arrival: Arrival, came: int) -> tuple[bool, bool]:
        """The rule of the class. A packet that came by the port from x - 1 has moved along x."""
        here = arrival.position
        if x > here["x"]:
            return (
                y == here["y"] or x % 2 == 1 or x - here["x"] > 1,
                here["x"] % 2 == 1 or came != 2,
            )
        return True, x == here["x"] or here["x"] % 2 == 0

    def allow(self, m: Module, x: Value, y: Value) -> tuple[Value, Value]:
        """The rule of the class. Input port 2 from the node's on is the one from x - 1."""
        here, odd = self.position, self.position.x[0]
        moved = Const(self.in_port - self.first_port(self.config) == 2, 1)
        along_x = (x <= here.x) | (y == here.y) | x[0] | (x - here.x != 1)
        higher, lower = (x > here.x) & (odd | ~moved), (x < here.x) & ~odd
        return along_x, higher | lower | (x == here.x)
