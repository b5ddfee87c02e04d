"""Time by events alone, in plain Python: stretches in which nothing happens cost nothing."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["EventTime"]


class EventTime:
    """A `Timekeeper` of `hz`. `events`: how many have happened."""

    def __init__(self, hz: int) -> None:
        self.cycle = 0
        self.hz = hz
        self.events = 0
        self._agenda: list[tuple[int, int, int, Callable[[int], None], int]] = []
        self._asked = 0

    def call_at(self, cycle: int, rank: int, function: Callable[[int], None], argument: int) -> None:
        """Call `function(argument)` in a cycle. Raises ValueError for one that is over."""
        if cycle < self.cycle:
            raise ValueError(f"cycle {cycle} is over: it is {self.cycle}")
        self._asked += 1
        heapq.heappush(self._agenda, (cycle, rank, self._asked, function, argument))

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine that waits for nothing. Raises TypeError for one that waits."""
        try:
            coroutine.send(None)
        except StopIteration:
            return
        raise TypeError(f"{name} waits for something outside: there is nothing outside of time by events")

    def run(self, done: Callable[[], bool], *, limit: int) -> bool:
        """Let time pass until `done()`, until nothing is left to happen, or until cycle `limit`. Returns `done()`."""
        agenda, pop = self._agenda, heapq.heappop
        while agenda and not done():
            if agenda[0][0] > limit:
                self.cycle = limit
                break
            self.cycle, _, _, function, argument = pop(agenda)
            self.events += 1
            function(argument)
        return done()
