"""Sizes of messages and bursts, checked."""

from __future__ import annotations

from .errors import BadRequestError

__all__ = ["MAX_SIZE", "check_size"]

MAX_SIZE = (1 << 31) - 1
"""Bytes of a message, or of a burst."""


def check_size(name: str, size: int | None) -> None:
    """Check a size of messages, or none. Raises BadRequestError."""
    if size is not None and (type(size) is not int or not 1 <= size <= MAX_SIZE):
        raise BadRequestError(f"{name} = {size!r}: a whole number of bytes, 1 to {MAX_SIZE}")
