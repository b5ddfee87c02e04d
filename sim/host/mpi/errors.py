"""Errors of the MPI layer: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

from ...errors import UserError

__all__ = [
    "AbortError",
    "ArgumentError",
    "AttributeKeyError",
    "BufferKindError",
    "CollectiveError",
    "CommunicatorError",
    "DatatypeError",
    "DeadlockError",
    "LengthError",
    "MpiError",
    "OperationError",
    "QosError",
    "RankBusyError",
    "RankError",
    "RankFailedError",
    "RecordError",
    "RequestError",
    "TagError",
    "TraceError",
    "TransportError",
    "TruncationError",
]


class MpiError(UserError):
    """An MPI call failed. A call that is refused for its arguments has changed nothing."""


class RankError(MpiError):
    """The communicator has no such rank."""


class TagError(MpiError):
    """No such tag can be sent, or asked for."""


class CommunicatorError(MpiError):
    """The communicator cannot be used: it has been freed, or the ranks do not agree on it."""


class LengthError(MpiError):
    """A length that a buffer does not have, or that a message cannot have."""


class BufferKindError(MpiError):
    """An object that is no buffer of bytes, or one that cannot be written."""


class TruncationError(MpiError):
    """The message that matched is longer than the receive's buffer, which holds its first bytes now."""


class RequestError(MpiError):
    """A request of another rank, or none at all."""


class AttributeKeyError(MpiError):
    """The attribute is not set, or cannot be set to that."""


class CollectiveError(MpiError):
    """Ranks gave a collective operation arguments that do not go together."""


class ArgumentError(MpiError):
    """An argument of another Python type than the call takes."""


class DatatypeError(MpiError):
    """An element type that does not exist."""


class OperationError(MpiError):
    """No operation, or one that the type of the elements does not have."""


class DeadlockError(MpiError):
    """All ranks wait for one another: each rank, its call, and whom it waits for."""


class RankFailedError(MpiError):
    """A rank's program has raised an exception."""


class AbortError(MpiError):
    """A rank has called Abort."""


class QosError(AttributeKeyError):
    """A bandwidth that cannot be asked for."""


class RankBusyError(MpiError):
    """A rank is one thread (gulati-thesis-2001 4.4.1): it is inside another MPI call already."""


class TransportError(MpiError):
    """A message was lost below the MPI layer; it says how."""


class RecordError(MpiError):
    """A call cannot be written into a trace, or the trace cannot be written."""


class TraceError(MpiError):
    """A trace file with a bad line: the file, the line, what is wrong with it."""
