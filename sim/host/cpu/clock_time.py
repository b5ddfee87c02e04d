"""Time of hosts beside a simulation of RTL, by its clock.

It has an agenda of its own, so that what happens in a cycle has the order that it has by events alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

__all__ = ["ClockTime", "SimulationClock"]


class SimulationClock(Protocol):
    """The part of a simulation's clock that is used (`lanikai.sim.inside.clock.Clock`)."""

    @property
    def cycle(self) -> int:
        """Cycles since the start."""

    def call_later(self, cycles: int, function: Callable[[], None]) -> None:
        """Call a function, at least 1 cycle later."""

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function in this cycle."""

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine beside the caller."""


class ClockTime:
    """A `Timekeeper` on the `clock`, of `hz`, of a simulation."""

    def __init__(self, clock: SimulationClock, hz: int) -> None:
        self.hz = hz
        self._clock = clock
        self._agenda: list[tuple[int, int, int, Callable[[int], None], int]] = []
        self._asked = 0
        self._wake: int | None = None

    @property
    def cycle(self) -> int:
        """Cycles since the start."""
        return self._clock.cycle

    def call_at(self, cycle: int, rank: int, function: Callable[[int], None], argument: int) -> None:
        """Call `function(argument)` in a cycle. Raises ValueError for one that is over."""
        now = self._clock.cycle
        if cycle < now:
            raise ValueError(f"cycle {cycle} is over: it is {now}")
        self._asked += 1
        heapq.heappush(self._agenda, (cycle, rank, self._asked, function, argument))
        self._ask()

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine of the simulation."""
        self._clock.spawn(coroutine, name)

    def _ask(self) -> None:
        """Have the clock call for what is next, unless it will do so in time."""
        first, now = self._agenda[0][0], self._clock.cycle
        if self._wake is not None and now <= self._wake <= first:
            return
        self._wake = first
        if first == now:
            self._clock.call_soon(self._due)
        else:
            self._clock.call_later(first - now, self._due)

    def _due(self) -> None:
        now = self._clock.cycle
        self._wake = now  # nobody asks while it goes on
        while self._agenda and self._agenda[0][0] <= now:
            _, _, _, function, argument = heapq.heappop(self._agenda)
            function(argument)
        self._wake = None
        if self._agenda:
            self._ask()
