"""EP: embarrassingly parallel, after the NAS benchmark: computing, and a few global sums at the end."""

from __future__ import annotations

from random import Random

from ..rank import Rank
from .program import Program, uneven

__all__ = ["Ep"]

PIECE_CYCLES = 1_670_000
"""A piece of computing, 10 ms: an iteration."""
SUMS = 3


class Ep(Program):
    """EP."""

    @property
    def iteration_cycles(self) -> int:
        """Cycles that a rank computes in an iteration."""
        return PIECE_CYCLES

    async def iteration(self, rank: Rank, number: int, chance: Random) -> None:
        """Compute a piece."""
        await rank.compute(uneven(PIECE_CYCLES, chance))

    async def finish(self, rank: Rank) -> None:
        """Sum the results."""
        for _ in range(SUMS):
            await rank.Allreduce(1.0)
