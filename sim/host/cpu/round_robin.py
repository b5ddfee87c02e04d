"""The simplest scheduler: every process in turn, for a slice of the same length."""

from __future__ import annotations

from collections import deque

from .process import HostProcess
from .scheduler import HostScheduler, Why

__all__ = ["RoundRobin"]


class RoundRobin(HostScheduler):
    """One queue, and slices of `slice_ms`."""

    def __init__(self, slice_ms: int = 20) -> None:
        self.slice_ticks = slice_ms * 1000 // self.tick_us
        self._queue: deque[HostProcess] = deque()

    def ready(self, process: HostProcess, why: Why) -> None:
        """Take a process in, at the end."""
        process.ticks_left = self.slice_ticks
        self._queue.append(process)

    def take(self) -> HostProcess | None:
        """Take the first one."""
        return self._queue.popleft() if self._queue else None

    def passes(self, process: HostProcess, *, equal: bool) -> bool:
        """All are as urgent."""
        return equal and bool(self._queue)

    def expired(self, process: HostProcess) -> None:
        """Begin another slice."""
        process.ticks_left = self.slice_ticks
