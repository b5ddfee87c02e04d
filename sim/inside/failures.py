"""A failure in the user's own code, as the user wants to see it: file, line and text, without the frames of ours."""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import cocotb

from ..errors import SimulationError

__all__ = ["user_lines", "watch_awaits"]

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


def watch_awaits(fail: Callable[[BaseException], None]) -> None:
    """From now on call `fail` when a line of the user's drops a coroutine that it has not awaited.

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
        if found and _is_own(filename):
            call = found["name"].rpartition(".")[2]
            error = SimulationError(f"{call}() was called without await, so it did nothing")
            text = linecache.getline(filename, lineno).strip()
            error.lines = [f'  File "{filename}", line {lineno}', *([f"    {text}"] if text else [])]
            fail(error)

    warnings.showwarning = show


def _is_own(name: str) -> bool:
    return not (name.startswith((*_OURS, _COCOTB, _LIBRARY, "<frozen")) or "/site-packages/" in name)
