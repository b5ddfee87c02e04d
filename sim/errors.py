"""Errors that a user meets, each with the exit status that `lanikai` ends with.

Every message is one line that says what is wrong, where, and what would be right. A `ConfigError` of
`lanikai.hdl.config` counts as a `UserError`.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_MISSING",
    "EXIT_OK",
    "EXIT_USER",
    "FULL",
    "Ended",
    "LanikaiError",
    "MissingTool",
    "SimulationError",
    "UserError",
]

EXIT_OK = 0
"""Every point with a published value is within its tolerance and every claim holds."""
EXIT_FAILED = 1
"""A point is out of its tolerance, a claim does not hold, or the simulation failed."""
EXIT_USER = 2
"""The user's input was wrong; nothing was built or run."""
EXIT_MISSING = 3
"""A program or library that the command needs is not on this machine."""
EXIT_INTERRUPTED = 130
"""Ended by Ctrl-C: 128 + SIGINT, as shells count."""


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors that the system gives when a disk or a quota is full."""


class LanikaiError(Exception):
    """Base of the errors shown to the user as one line (the first of the message)."""

    exit_status = EXIT_FAILED

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the error whole when it crosses a process, whatever its constructor takes."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[LanikaiError], args: tuple[object, ...], state: dict[str, object]) -> LanikaiError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class UserError(LanikaiError):
    """The user's input was wrong: what, where, and what would be right."""

    exit_status = EXIT_USER


class SimulationError(LanikaiError):
    """A simulation ended without a result: a hang found by the watchdog, or a failure inside it.

    `lines`: the place in the user's own code where a coroutine failed, as a traceback shows it; empty otherwise.
    """

    lines: Sequence[str] = ()


class MissingTool(LanikaiError):
    """Something that has to be installed is not on this machine: its `name`, and the `command` that installs
    it."""

    exit_status = EXIT_MISSING

    def __init__(self, name: str, command: str) -> None:
        self.name, self.command = name, command
        super().__init__(f"{name} is missing; install it with: {command}")


class Ended(BaseException):
    """SIGTERM, as an exception, so that what runs is ended on the way out."""
