"""Spin Block (nagar-thesis-2001 6.1.2)."""

from __future__ import annotations

from ..arrival import NoReschedule
from ..strategy import Strategy
from ..waiting import SpinBlock

__all__ = ["SpinBlocking"]


class SpinBlocking(Strategy):
    """Spin for a while, then sleep; the wake-up itself is the boost."""

    title = "SB"
    waiting = SpinBlock()
    arrival = NoReschedule()
