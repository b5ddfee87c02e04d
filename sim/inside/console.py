"""A console for the user's coroutines in the simulator's process: prints and the debugger go to the program that
started the run, whose terminal or notebook it is.

The simulator has no terminal of its own: it is in a session by itself, so that all of it can be ended.
"""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NoReturn, TextIO

__all__ = ["join_console", "refuse_breakpoints"]

Send = Callable[[Mapping[str, Any]], None]


class _Printed:
    """A text stream: the log, and the console of whoever started the run."""

    def __init__(self, log: TextIO, send: Send) -> None:
        self._log, self._send = log, send
        self.encoding = log.encoding

    def write(self, text: str) -> int:
        """Write to both."""
        self._log.write(text)
        if text:
            self._send({"print": text})
        return len(text)

    def flush(self) -> None:
        """Write what the log still holds."""
        self._log.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal: colours are for the other side to choose."""
        return False


class _Asked:
    """The debugger's input: a line of the console, asked for when it is wanted."""

    def __init__(self, send: Send, channel: int) -> None:
        self._send, self._answers = send, os.fdopen(os.dup(channel), "r", encoding="utf-8")

    def readline(self) -> str:
        """The next line; empty at the end of the input."""
        self._send({"ask": True})
        return self._answers.readline()


class _Debugger(pdb.Pdb):
    """pdb on the console. Quitting it ends the run."""

    def __init__(self, asked: _Asked) -> None:
        super().__init__(stdin=asked, stdout=sys.stdout, nosigint=True)  # type: ignore[arg-type]
        self.use_rawinput = False


def join_console(send: Send, channel: int) -> None:
    """From now on prints go to the console too, and `breakpoint()` opens pdb there.

    `send` sends a message to the program that started the run; `channel`: descriptor of the socket on which its lines
    come.
    """
    sys.stdout = _Printed(sys.stdout, send)  # type: ignore[assignment]
    asked = _Asked(send, channel)

    def stop() -> None:
        caller: FrameType | None = sys._getframe(1)
        _Debugger(asked).set_trace(caller)

    sys.breakpointhook = stop


def refuse_breakpoints() -> None:
    """Have `breakpoint()` say that this run has no console."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            "breakpoint(): this run has no console; run the program by lanikai.Cluster (docs/api.md)"
        )

    sys.breakpointhook = refuse
