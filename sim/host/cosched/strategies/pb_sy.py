"""Periodic Boost with Spin Yield (nagar-thesis-2001 6.1.9)."""

from __future__ import annotations

from ..arrival import RoundRobinBoost
from ..strategy import Strategy
from ..waiting import SpinYield

__all__ = ["PbSpinYield"]


class PbSpinYield(Strategy):
    """The kernel boosts every 10 ms; a process that waits for long lets another go first."""

    title = "PB-SY"
    waiting = SpinYield()
    arrival = RoundRobinBoost()
