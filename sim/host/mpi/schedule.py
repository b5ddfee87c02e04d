"""Work of several messages that goes on beside the program: non-blocking collective operations.

The work is a coroutine. Where it needs a request to be done it awaits `wait_for`, which hands the request to the
`Schedule`. It awaits everything else (time, the transport) as part of the call that it goes on in.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

from .data.request import Request
from .data.status import Status

__all__ = ["Schedule", "wait_for"]


class _Pause:
    """An awaitable: the work goes on when `request` is done."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def __await__(self) -> Generator[_Pause, None, None]:
        yield self


async def wait_for(request: Request) -> None:
    """Return when `request` is done. Only within the work of a Schedule."""
    if not request.done:
        await _Pause(request)


class Schedule:
    """`work`, whose end completes `request`."""

    def __init__(self, work: Coroutine[Any, Any, None], request: Request) -> None:
        self._work, self.request = work, request
        self._paused: _Pause | None = None

    @property
    def ready(self) -> bool:
        """Whether it can go on."""
        return self._paused is None or self._paused.request.done

    async def step(self) -> bool:
        """Go on as far as it goes now. Returns whether that was its end. An error that it raises is the request's."""
        try:
            self._paused = await _Step(self._work)
        except Exception as error:
            self.request.complete(Status(), error)
            return True
        if self._paused is None:
            self.request.complete(Status())
            return True
        return False


class _Step:
    """An awaitable that runs a coroutine up to its next pause, which it returns; None at its end."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, _Pause | None]:
        act, value = self._work.send, None
        while True:
            try:
                awaited = act(value)
            except StopIteration:
                return None
            if isinstance(awaited, _Pause):
                return awaited
            try:
                act, value = self._work.send, (yield awaited)
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:
                act, value = self._work.throw, error
