"""Search for a simulation in which flits move but nothing is delivered, and the words for what software waits for.

A message to a port that never gets a receive buffer is refused and sent again for ever. The network is never quiet, so
the watchdog in RTL (`watchdog.py`) never fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

__all__ = ["Observed", "describe", "quiet_cycles", "summary"]


class Observed(Protocol):
    """A control program or a host library that the cluster looks at."""

    @property
    def advanced_cycle(self) -> int:
        """The cycle in which it last delivered something."""

    @property
    def pending(self) -> int:
        """The number of things that it has still to do. With 0 everywhere a cluster may well rest."""

    def state(self) -> list[str]:
        """Its state, a line each."""

    def waiting(self) -> list[str]:
        """The things that it waits for, a few words each."""


def quiet_cycles(parts: Sequence[Observed], cycle: int) -> int:
    """Cycles before `cycle` in which none of `parts` delivered anything; 0 if none has anything to do."""
    if not any(part.pending for part in parts):
        return 0
    return cycle - max(part.advanced_cycle for part in parts)


def describe(parts: Iterable[Observed]) -> list[str]:
    """All lines of their state."""
    return [line for part in parts for line in part.state()]


def summary(parts: Iterable[Observed], *, most: int = 4) -> str:
    """The things that `parts` wait for, in one line."""
    waiting = [text for part in parts for text in part.waiting()]
    more = f" and {len(waiting) - most} more" if len(waiting) > most else ""
    return "; ".join(waiting[:most]) + more
