"""A failure in the user's own code, as the user wants to see it: file, line and text, without the frames of ours."""

from __future__ import annotations

import gc
import inspect
import linecache
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import cocotb

from ..errors import SimulationError

__all__ = ["not_begun", "remember_calls", "user_lines", "watch_awaits"]

_SIM = Path(__file__).resolve().parents[1]
_OURS = tuple(f"{folder}/" for folder in (_SIM, *(_SIM.parent / name for name in ("hdl", "firmware", "api"))))
_LIBRARY = f"{sysconfig.get_path('stdlib')}/"
_COCOTB = f"{Path(cocotb.__file__).resolve().parent}/"


def user_lines(error: BaseException) -> list[str]:
    """The frames of an exception, and of those that it was raised from, that are the user's; none if there are none."""
    frames: list[traceback.FrameSummary] = []
    left: BaseException | None = error
    seen: set[int] = set()
    # Whoever writes `raise error from error` makes a circle.
    while left is not None and id(left) not in seen:
        seen.add(id(left))
        own = [frame for frame in traceback.extract_tb(left.__traceback__) if _is_own(frame.filename)]
        # The cause failed first, and in the inner frames.
        frames, left = own or frames, left.__cause__
    return [line for text in traceback.format_list(frames) for line in text.rstrip("\n").split("\n")]


_NEVER_AWAITED = re.compile(r"coroutine '(?P<name>[^']+)' was never awaited")
"""Python's warning, at the line that drops the coroutine."""
_MADE_AT = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)
"""A line of the warning that says where the coroutine was made, the innermost call last."""


def remember_calls() -> None:
    """From now on each coroutine knows the line that made it, for `watch_awaits` and `not_begun`.

    It costs about 1 us a coroutine. One line and no more: a call of ours has lines of the user's further out.
    """
    sys.set_coroutine_origin_tracking_depth(1)


def not_begun() -> list[str]:
    """Lines on the coroutines that the user's code has made, holds, and has not awaited; needs `remember_calls`."""
    found = []
    for thing in gc.get_objects():
        if inspect.iscoroutine(thing) and inspect.getcoroutinestate(thing) == inspect.CORO_CREATED:
            found += [
                (name, line, thing.__name__) for name, line, _ in thing.cr_origin or () if _is_own(name)
            ]
    return [
        text
        for name, line, call in sorted(set(found))
        for text in (f"{call}() has not begun: was `await` forgotten?", *_place(name, line))
    ]


def _place(name: str, line: int) -> list[str]:
    """A line of the user's, as tracebacks show it."""
    text = linecache.getline(name, line).strip()
    return [f'  File "{name}", line {line}', *([f"    {text}"] if text else [])]


def watch_awaits(fail: Callable[[BaseException], None]) -> None:
    """From now on call `fail` when a coroutine that the user's code has made is dropped without having been awaited.

    Python itself only warns. The call then does nothing, and whoever waits for its effect waits for ever.
    """
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        before(message, category, filename, lineno, file, line)
        found = _NEVER_AWAITED.match(str(message))
        # A call that a name holds is dropped with the name, by any line; that of the call is in the warning, then.
        made = _MADE_AT.search(str(message))
        name, line_number = (made["file"], int(made["line"])) if made else (filename, lineno)
        if found and _is_own(name):
            call = found["name"].rpartition(".")[2]
            error = SimulationError(f"{call}() was called without await, so it did nothing")
            error.lines = _place(name, line_number)
            fail(error)

    warnings.showwarning = show


def _is_own(name: str) -> bool:
    return not (name.startswith((*_OURS, _COCOTB, _LIBRARY, "<frozen")) or "/site-packages/" in name)
