"""Work in a child of this process: what it has imported is there at once, and what the child does to it stays there."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["ChildFailed", "TimedOut", "in_child"]


class TimedOut(Exception):
    """The child took longer than it may, or more processor time. It is gone, with all that it started."""


class ChildFailed(Exception):
    """The child ended without a result; the message names its log."""


def in_child(work: Callable[[], Any], *, log: Path, timeout_s: float) -> Any:
    """The result of `work` (JSON values), run in a child whose output goes to `log`. Raises TimedOut, ChildFailed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _run(work, log, reader, writer)
    os.close(writer)
    try:
        text = _read(reader, timeout_s)
    finally:
        os.close(reader)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:  # it has not come as far as to lead a group
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if text is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        raise TimedOut
    if not text:
        raise ChildFailed(f"the run ended without a result; its output is {log}")
    return json.loads(text)


def _run(work: Callable[[], Any], log: Path, reader: int, writer: int) -> None:
    """Run `work` in the child; never return."""
    try:
        # A group of its own, which can be ended whole. A session of its own would be one of another priority.
        os.setpgid(0, 0)
        os.close(reader)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", 1, closefd=False) for stream in (1, 2))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # The pipe stays open while a failure is told: when it is closed, the parent ends this process.
        text = json.dumps(work())
        with os.fdopen(writer, "w") as pipe:
            pipe.write(text)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def _read(reader: int, timeout_s: float) -> str | None:
    """All that comes from the pipe; None if it takes too long."""
    text, end = b"", time.monotonic() + timeout_s
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return None
        part = os.read(reader, 1 << 16)
        if not part:
            return text.decode()
        text += part
