"""Periodic Boost with timestamps (nagar-thesis-2001 6.1.5)."""

from __future__ import annotations

from ..arrival import LatestFirst
from ..strategy import Strategy
from ..waiting import BusyWait

__all__ = ["Pbt"]


class Pbt(Strategy):
    """The kernel boosts the process with the latest message every 10 ms."""

    title = "PBT"
    waiting = BusyWait()
    arrival = LatestFirst()
