"""Dynamic Coscheduling (nagar-thesis-2001 6.1.3)."""

from __future__ import annotations

from ..arrival import InterruptAndBoost
from ..strategy import Strategy
from ..waiting import BusyWait

__all__ = ["Dcs"]


class Dcs(Strategy):
    """A message boosts its receiver by an interrupt."""

    title = "DCS"
    waiting = BusyWait()
    arrival = InterruptAndBoost()
