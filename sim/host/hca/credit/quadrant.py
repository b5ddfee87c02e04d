"""A queue of credits for each quadrant, as a mesh's minimal routes see it."""

from __future__ import annotations

from .policy import CreditPolicy

__all__ = ["QuadrantCredits"]

EAST, WEST, NORTH, SOUTH = range(4)


class QuadrantCredits(CreditPolicy):
    """Four completion queues (yum-2006 4.3), by the coordinates of source and destination.

    The document does not say where destinations on an axis belong. Quadrants are turned by one axis each, so that every
    destination is in one, and the four are as large as they can be alike:

    - east: x greater, y at least as large; west: x smaller, y at most as large;
    - north: y greater, x at most as large; south: y smaller, x at least as large.

    A node in a corner or on an edge reaches fewer than four. Queues that it cannot use have no credits; they are dealt
    out among those that it can.
    """

    def queues(self) -> int:
        """The quadrants that have a node."""
        found = {
            self._quadrant(destination)
            for destination in range(len(self.coordinates))
            if destination != self.node
        }
        self._numbers = {quadrant: number for number, quadrant in enumerate(sorted(found))}
        return max(1, len(found))

    def queue(self, destination: int) -> int:
        """The destination's quadrant. Raises ValueError for the own node."""
        if destination == self.node:
            raise ValueError(f"destination = {destination}: another node than the own one")
        return self._numbers[self._quadrant(destination)]

    def _quadrant(self, destination: int) -> int:
        (x, y), (to_x, to_y) = self.coordinates[self.node], self.coordinates[destination]
        if to_x > x and to_y >= y:
            return EAST
        if to_x <= x and to_y > y:
            return NORTH
        if to_x < x:
            return WEST
        return SOUTH
