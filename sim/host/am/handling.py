"""The handlers that run: so that a call knows whether it is made from inside one."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any

from .token import Token

__all__ = ["call", "running"]

_running: list[Token] = []


def running() -> Token | None:
    """The message whose handler the caller is inside of; None outside of handlers.

    Threads are coroutines: another thread that goes on while a handler waits is not inside of it.
    """
    return _running[-1] if _running else None


class _Inside:
    """Awaits what a handler has returned; `running` is its message whenever it goes on."""

    def __init__(self, awaitable: Any, token: Token) -> None:
        self._awaitable, self._token = awaitable, token

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._awaitable.__await__()
        try:
            sent: Any = None
            failure: BaseException | None = None
            while True:
                _running.append(self._token)
                try:
                    step = steps.send(sent) if failure is None else steps.throw(failure)
                except StopIteration:
                    return
                finally:
                    _running.pop()
                sent, failure = None, None
                try:
                    sent = yield step
                except Exception as error:
                    failure = error
        finally:
            steps.close()


async def call(function: Any, token: Token, *arguments: Any) -> None:
    """Call a handler, a function or a coroutine function, of a message."""
    _running.append(token)
    try:
        found = function(*arguments)
    finally:
        _running.pop()
    if inspect.isawaitable(found):
        await _Inside(found, token)
