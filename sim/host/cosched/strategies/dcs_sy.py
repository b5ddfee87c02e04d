"""Dynamic Coscheduling with Spin Yield (nagar-thesis-2001 6.1.8)."""

from __future__ import annotations

from ..arrival import InterruptAndBoost
from ..strategy import Strategy
from ..waiting import SpinYield

__all__ = ["DcsSpinYield"]


class DcsSpinYield(Strategy):
    """A message boosts its receiver; one that waits for long lets another go first."""

    title = "DCS-SY"
    waiting = SpinYield()
    arrival = InterruptAndBoost()
