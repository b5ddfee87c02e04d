"""Local scheduling (nagar-thesis-2001 6.1.1)."""

from __future__ import annotations

from ..arrival import NoReschedule
from ..strategy import Strategy
from ..waiting import BusyWait

__all__ = ["Local"]


class Local(Strategy):
    """Every node by itself: spin, and reschedule nothing."""

    title = "Local"
    waiting = BusyWait()
    arrival = NoReschedule()
