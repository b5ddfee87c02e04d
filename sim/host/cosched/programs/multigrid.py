"""MG: a multigrid solver on a cube, after the NAS benchmark: a V-cycle an iteration, faces exchanged at every level.

Ranks are a torus of 2 x 2 x 2, so both neighbours of a dimension are the same rank, which gets both faces. From one
level to the next coarser one a rank has an eighth of the points.
"""

from __future__ import annotations

from random import Random

from ..rank import Rank
from .program import Program, uneven

__all__ = ["Multigrid"]

SIDE = 32
"""Points of an edge of a rank's part of the finest grid: 64 for all, about that of the benchmark's smallest class."""
POINT_BYTES = 8


class Multigrid(Program):
    """MG with `point_cycles` for one smoothing of one point, residual and transfer between levels included."""

    def __init__(self, point_cycles: int) -> None:
        self.point_cycles = point_cycles
        self.sides = [SIDE >> level for level in range(SIDE.bit_length() - 1)]

    @property
    def iteration_cycles(self) -> int:
        """Cycles that a rank computes in an iteration: each level on the way down and up again."""
        return 2 * sum(side**3 for side in self.sides) * self.point_cycles

    async def iteration(self, rank: Rank, number: int, chance: Random) -> None:
        """Go down to the coarsest level and up again, then sum the norm."""
        for side in [*self.sides, *reversed(self.sides)]:
            await rank.compute(uneven(side**3 * self.point_cycles, chance))
            face = bytes(2 * side * side * POINT_BYTES)
            for dimension in range(3):
                other = rank.rank ^ (1 << dimension)
                await rank.Send(face, other, tag=dimension)
                await rank.Recv(other, tag=dimension)
        await rank.Allreduce(1.0)
