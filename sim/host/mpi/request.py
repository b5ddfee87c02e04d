"""Requests of communication that has begun, and buffers as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .errors import BufferKindError, LengthError, MpiError

__all__ = ["NO_STATUS", "Request", "Status", "bytes_of"]


@dataclass(frozen=True)
class Status:
    """A message that has been received: its `source` in the communicator, `tag`, and `length` in bytes. Of a send,
    and of communication with PROC_NULL, source and tag are -1."""

    source: int
    tag: int
    length: int


NO_STATUS = Status(-1, -1, 0)
"""The status of a request that is not done."""


class Request:
    """A send or a receive that has begun: `done` once its buffer is the caller's again. Then `status` is what it was,
    or `error` what it failed with. `owner`: the process that it belongs to."""

    def __init__(self, owner: object, description: str) -> None:
        self.owner = owner
        self.description = description
        self.done = False
        self.error: MpiError | None = None
        self.status = NO_STATUS

    def complete(self, status: Status, error: MpiError | None = None) -> None:
        """It has ended."""
        self.status, self.error, self.done = status, error, True

    def result(self) -> Status:
        """The status of a request that is done. Raises the error that it failed with."""
        if self.error is not None:
            raise self.error
        return self.status


def bytes_of(buffer: Any, length: int | None, what: str, *, writable: bool = False) -> memoryview:
    """The first `length` bytes (all, by default) of a buffer: bytes, bytearray, memoryview, numpy array. Raises
    BufferKindError, LengthError, both beginning with `what`."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise BufferKindError(
            f"{what}: {type(buffer).__name__} is no buffer; give bytes, a bytearray or a numpy array"
        ) from None
    if not view.c_contiguous:
        raise BufferKindError(f"{what}: the buffer is not contiguous; give a copy of it")
    if writable and view.readonly:
        raise BufferKindError(f"{what}: the buffer cannot be written; give a bytearray or a numpy array")
    if length is not None and not 0 <= length <= view.nbytes:
        raise LengthError(f"{what}: length = {length}: 0 to the buffer's {view.nbytes} bytes")
    if not view.nbytes:
        return memoryview(bytearray())
    return view.cast("B")[:length]
