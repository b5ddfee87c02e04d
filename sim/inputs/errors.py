"""The error for a file that a workload cannot be read from."""

from __future__ import annotations

from ..errors import UserError

__all__ = ["InputError"]


class InputError(UserError):
    """A workload's file is wrong: file and line, what is there, and what would be right."""
