"""The time that hosts live in, as a protocol: what happens when, and in which order within a cycle."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, Protocol

__all__ = ["Rank", "Timekeeper"]


class Rank(IntEnum):
    """The order of what happens in one cycle: ticks, arrivals, what cards do about them, timers, ends of work.

    Hosts and processors add their numbers, less than 4096, so that things of one kind come in the order of hosts. Then
    no result depends on the order in which they were asked for.
    """

    TICK = 0
    OUTSIDE = 1 << 12
    CARD = 2 << 12
    TIMER = 3 << 12
    END = 4 << 12


class Timekeeper(Protocol):
    """Time in cycles of `hz`."""

    @property
    def cycle(self) -> int:
        """Cycles since the start: now."""

    @property
    def hz(self) -> int:
        """Cycles a second."""

    def call_at(self, cycle: int, rank: int, function: Callable[[int], None], argument: int) -> None:
        """Call `function(argument)` in a cycle: now or later. Within a cycle the lower rank comes first, a `Rank` and
        the number of a host; then who asked first."""

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine that awaits what the simulation has."""
