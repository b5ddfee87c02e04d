"""Errors that a user meets, each with the exit status that `lanikai` ends with.

Every message is one line that says what is wrong, where, and what would be right. A `ConfigError` of
`lanikai.hdl.config` counts as a `UserError`.
"""

from __future__ import annotations

__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_MISSING",
    "EXIT_OK",
    "EXIT_USER",
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


class LanikaiError(Exception):
    """Base of the errors shown to the user as one line."""

    exit_status = EXIT_FAILED


class UserError(LanikaiError):
    """The user's input was wrong: what, where, and what would be right."""

    exit_status = EXIT_USER


class SimulationError(LanikaiError):
    """A simulation ended without a result: a hang found by the watchdog, or a failure inside it."""


class MissingTool(LanikaiError):
    """A program or library is not on this machine.

    `tool` is what is missing, `purpose` what needs it, `install` the exact command that installs it.
    """

    exit_status = EXIT_MISSING

    def __init__(self, tool: str, *, purpose: str, install: str) -> None:
        self.tool, self.purpose, self.install = tool, purpose, install
        super().__init__(f"{tool} is missing: {purpose} needs it; install it with: {install}")

    def __reduce__(self) -> tuple[object, ...]:
        """Keyword-only arguments, kept when the error crosses a process."""
        return _missing_tool, (self.tool, self.purpose, self.install)


def _missing_tool(tool: str, purpose: str, install: str) -> MissingTool:
    return MissingTool(tool, purpose=purpose, install=install)
