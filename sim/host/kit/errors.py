"""Errors of the host kit: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

from ...errors import UserError

__all__ = ["DeadQueueError", "KitError", "OverrunError", "QueueFullError", "RefusedError", "ResourceError"]


class KitError(UserError):
    """A call of the kit, or a message, failed. Other processes are not touched by it."""


class RefusedError(KitError):
    """The card refused a write into the process' page: its subject is not the process'."""


class ResourceError(KitError):
    """The card or the host has no more of the resource that was asked for."""


class QueueFullError(KitError):
    """A work queue has no free descriptor."""


class OverrunError(KitError):
    """A completion queue was overrun: its consumer was too slow, and entries are lost."""


class DeadQueueError(KitError):
    """A completion queue's ring could not be written: the bus answered with an error, and entries are lost."""
