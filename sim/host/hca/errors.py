"""Errors of an adapter's host software: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

from ...errors import UserError

__all__ = ["HcaError", "QueueFullError"]


class HcaError(UserError):
    """A call cannot be done."""


class QueueFullError(HcaError):
    """A ring has no room for another work queue element."""
