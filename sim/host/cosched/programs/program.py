"""A parallel program: what every rank of it does, and how long that takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random

from ..rank import Rank

__all__ = ["IMBALANCE", "Program", "uneven"]

IMBALANCE = 0.04
"""Half of the range, relative, of a rank's time for one piece of computing: caches, cells, daemons. Fitted
(`programs/__init__.py`)."""


def uneven(cycles: int, chance: Random) -> int:
    """A time of computing, which is not the same for all ranks."""
    return round(cycles * (1 + IMBALANCE * (2 * chance.random() - 1)))


class Program(ABC):
    """A program of ranks on 8 nodes."""

    @property
    @abstractmethod
    def iteration_cycles(self) -> int:
        """Cycles that a rank computes in an iteration."""

    @abstractmethod
    async def iteration(self, rank: Rank, number: int, chance: Random) -> None:
        """Carry out an iteration. `chance`: the rank's own."""

    async def finish(self, rank: Rank) -> None:
        """End the program, after the last iteration."""
        await rank.Barrier()
