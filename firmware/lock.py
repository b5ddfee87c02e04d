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
    `asked` is called whenever somebody has to wait.
    """

    def __init__(self, new_flag: Callable[[], Flag], *, asked: Callable[[], None] | None = None) -> None:
        self._new_flag = new_flag
        self._waiting: deque[Callable[[], None]] = deque()
        self._asked = asked
        self.held = False

    @property
    def waiting(self) -> int:
        """The number of coroutines that have asked for the lock and not got it yet."""
        return len(self._waiting)

    async def acquire(self) -> None:
        """Return when the caller holds the lock; at once if nobody does."""
        if self.held:
            turn = self._new_flag()
            self._wait(turn.set)
            await turn.wait()  # whoever sets it hands the lock over: it stays held
        self.held = True

    def take(
        self,
        function: Callable[[], None],
        call_soon: Callable[[Callable[[], None]], None],
        *,
        first: bool = False,
    ) -> None:
        """Call `function` when the lock is the caller's: at once if nobody has it, else when it is handed over.

        Then it is called by `call_soon`, in the place of a coroutine that had called `acquire`. With `first` that is
        before all who wait.
        """
        if self.held:
            self._wait(lambda: call_soon(function), first=first)
        else:
            self.held = True
            function()

    def _wait(self, hand_over: Callable[[], None], *, first: bool = False) -> None:
        if first:
            self._waiting.appendleft(hand_over)
        else:
            self._waiting.append(hand_over)
        if self._asked is not None:
            self._asked()

    def release(self) -> None:
        """Hand the lock to the one that has waited longest, if any waits. Raises RuntimeError if nobody holds it."""
        if not self.held:
            raise RuntimeError("a lock was released that nobody holds")
        if self._waiting:
            self._waiting.popleft()()
        else:
            self.held = False

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()
