"""LIFE: the game of life on a matrix of cells, near-neighbour communication and a barrier an iteration.

nagar-thesis-2001 6.2.1: "each processor communicates with its four nearest neighbors along the boundary of the
sub-matrix assigned to it", with "a barrier separating the iterations". The size of the matrix sets the granularity.
Ranks are a torus of 4 x 2. A cell is an `int`, as in the example program of MPICH.
"""

from __future__ import annotations

from random import Random

from ..rank import Rank
from .program import Program, uneven

__all__ = ["Life"]

CELL_CYCLES = 30
"""Cycles a cell: eight neighbours added, the rule, a store. Assumption."""
CELL_BYTES = 4
ROWS, COLUMNS = 4, 2


class Life(Program):
    """LIFE with `side` x `side` cells a rank."""

    def __init__(self, side: int) -> None:
        self.side = side

    @property
    def iteration_cycles(self) -> int:
        """Cycles that a rank computes in an iteration."""
        return self.side * self.side * CELL_CYCLES

    async def iteration(self, rank: Rank, number: int, chance: Random) -> None:
        """Exchange the edges, compute, meet."""
        row, column = divmod(rank.rank, COLUMNS)
        edge = bytes(self.side * CELL_BYTES)
        neighbours = [
            ((row - 1) % ROWS) * COLUMNS + column,
            ((row + 1) % ROWS) * COLUMNS + column,
            row * COLUMNS + (column - 1) % COLUMNS,
            row * COLUMNS + (column + 1) % COLUMNS,
        ]
        for direction, neighbour in enumerate(neighbours):
            await rank.Send(edge, neighbour, tag=direction)
        for direction, neighbour in enumerate(neighbours):
            # The neighbour sent it in the opposite direction.
            await rank.Recv(neighbour, tag=direction ^ 1)
        await rank.compute(uneven(self.iteration_cycles, chance))
        await rank.Barrier()
