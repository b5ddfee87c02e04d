"""Periodic Boost with Spin Block (nagar-thesis-2001 6.1.6)."""

from __future__ import annotations

from ..arrival import RoundRobinBoost
from ..strategy import Strategy
from ..waiting import SpinBlock

__all__ = ["PbSpinBlock"]


class PbSpinBlock(Strategy):
    """The kernel boosts every 10 ms, sleeping processes first; messages wake those that sleep."""

    title = "PB-SB"
    waiting = SpinBlock()
    arrival = RoundRobinBoost()
