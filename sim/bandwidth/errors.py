"""Errors of the bandwidth manager: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

from ..errors import UserError

__all__ = [
    "AlreadyHeldError",
    "BadRequestError",
    "BandwidthError",
    "ManagerSilentError",
    "MasterConflictError",
    "NotHeldError",
    "RefusedError",
]


class BandwidthError(UserError):
    """A call to the bandwidth manager failed. Nothing that the caller or anybody else held has changed, except by a
    release or leave that ends in ManagerSilentError."""


class BadRequestError(BandwidthError):
    """The request cannot be granted by any cluster: its bandwidth, weight, node or port is none."""


class AlreadyHeldError(BandwidthError):
    """The flow has a reservation, or has joined the best-effort flows, already."""


class NotHeldError(BandwidthError):
    """A release of something that is not held (any more)."""


class RefusedError(BandwidthError):
    """An admission criterion (gulati-thesis-2001 3.3.1) does not hold. `where`: the node or switch port that
    refused; `left_mb_per_s`: how much this flow could still be given there."""

    def __init__(self, message: str, *, where: str, left_mb_per_s: float) -> None:
        super().__init__(message)
        self.where, self.left_mb_per_s = where, left_mb_per_s


class ManagerSilentError(BandwidthError):
    """A manager that is needed does not answer.

    A request or join is not in force. If it has left something behind at the master, the local manager takes that back
    as soon as the master answers again. After a release or leave the flow has no standing, and the master is told
    later.
    """


class MasterConflictError(BandwidthError):
    """The master does not have the votes of most nodes, as when two managers were both started as master: it
    may not grant."""
