"""Dynamic Coscheduling with Spin Block (nagar-thesis-2001 6.1.4)."""

from __future__ import annotations

from ..arrival import InterruptAndBoost
from ..strategy import Strategy
from ..waiting import SpinBlock

__all__ = ["DcsSpinBlock"]


class DcsSpinBlock(Strategy):
    """A message boosts its receiver, and wakes it if it sleeps."""

    title = "DCS-SB"
    waiting = SpinBlock()
    arrival = InterruptAndBoost()
