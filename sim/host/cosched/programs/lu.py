"""LU: after the NAS benchmark, a solver whose sweeps go over planes as a wavefront, with many small messages.

Ranks are a grid of 4 x 2. For every plane a rank waits for its northern and western neighbour, computes, and sends to
its southern and eastern one. The second sweep goes the other way.
"""

from __future__ import annotations

from random import Random

from ..rank import Rank
from .program import Program, uneven

__all__ = ["Lu"]

ROWS, COLUMNS = 4, 2
PLANES = 30
"""Planes of a sweep."""
EDGE_BYTES = 5 * 8 * 16
"""Five unknowns a point, 16 points of an edge."""


class Lu(Program):
    """LU with `plane_cycles` for a plane."""

    def __init__(self, plane_cycles: int) -> None:
        self.plane_cycles = plane_cycles

    @property
    def iteration_cycles(self) -> int:
        """Cycles that a rank computes in an iteration."""
        return 2 * PLANES * self.plane_cycles

    async def iteration(self, rank: Rank, number: int, chance: Random) -> None:
        """Sweep down and up again, then sum the residual."""
        row, column = divmod(rank.rank, COLUMNS)
        edge = bytes(EDGE_BYTES)
        for step in (1, -1):
            behind = [(row - step, column), (row, column - step)]
            ahead = [(row + step, column), (row, column + step)]
            for _ in range(PLANES):
                for other in behind:
                    if _there(*other):
                        await rank.Recv(other[0] * COLUMNS + other[1], tag=1 + step)
                await rank.compute(uneven(self.plane_cycles, chance))
                for other in ahead:
                    if _there(*other):
                        await rank.Send(edge, other[0] * COLUMNS + other[1], tag=1 + step)
        await rank.Allreduce(1.0)


def _there(row: int, column: int) -> bool:
    return 0 <= row < ROWS and 0 <= column < COLUMNS
