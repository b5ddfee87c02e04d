"""A ping-pong of short messages between two ranks, for the one-way latency."""

from __future__ import annotations

from random import Random

from ..rank import Rank
from .program import Program

__all__ = ["PingPong"]


class PingPong(Program):
    """A message of `length` bytes there, and one back, an iteration. Other ranks than the first two do nothing."""

    def __init__(self, length: int = 0) -> None:
        self.length = length

    @property
    def iteration_cycles(self) -> int:
        """Nothing is computed."""
        return 0

    async def iteration(self, rank: Rank, number: int, chance: Random) -> None:
        """There and back."""
        data = bytes(self.length)
        if rank.rank == 0:
            await rank.Send(data, 1)
            await rank.Recv(1)
        elif rank.rank == 1:
            await rank.Recv(0)
            await rank.Send(data, 0)

    async def finish(self, rank: Rank) -> None:
        """Nothing more."""
