"""Spin Yield (nagar-thesis-2001 6.1.7)."""

from __future__ import annotations

from ..arrival import NoReschedule
from ..strategy import Strategy
from ..waiting import SpinYield

__all__ = ["SpinYielding"]


class SpinYielding(Strategy):
    """Spin for a while, then let another process go first that has a message."""

    title = "SY"
    waiting = SpinYield()
    arrival = NoReschedule()
