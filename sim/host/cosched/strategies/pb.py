"""Periodic Boost (nagar-thesis-2001 6.1.5)."""

from __future__ import annotations

from ..arrival import RoundRobinBoost
from ..strategy import Strategy
from ..waiting import BusyWait

__all__ = ["Pb"]


class Pb(Strategy):
    """The kernel boosts a process with a message every 10 ms, in turn."""

    title = "PB"
    waiting = BusyWait()
    arrival = RoundRobinBoost()
