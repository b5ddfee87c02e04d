"""A lock for coroutines, granted in the order of asking, so that a run is deterministic."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Self

from .ports import Flag

__all__ = ["Lock"]


class Lock:
    """A lock with one holder at a time, in the order of asking: `async with lock:`, or `acquire` and `release`.

    `new_flag`: makes a flag (`Scheduler.flag`). `held`: whether somebody has the lock. `waiting`: how many wait.
    """

    def __init__(self, new_flag: Callable[[], Flag]) -> None:
        self._new_flag = new_flag
        self._waiting: deque[Flag] = deque()
        self.held = False

    @property
    def waiting(self) -> int:
        """The number of coroutines that have asked for the lock and not got it yet."""
        return len(self._waiting)

    async def acquire(self) -> None:
        """Return when the caller holds the lock; at once if nobody does."""
        if self.held:
            turn = self._new_flag()
            self._waiting.append(turn)
            await turn.wait()  # whoever sets it hands the lock over: it stays held
        self.held = True

    def release(self) -> None:
        """Hand the lock to the one that has waited longest, if any waits. Raises RuntimeError if nobody holds it."""
        if not self.held:
            raise RuntimeError("a lock was released that nobody holds")
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self.held = False

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()
