"""The header in front of everything that one rank sends another: 32 bytes, little-endian.

| bytes | field | meaning |
|---|---|---|
| 0 | `kind` | EAGER: a message with its payload; ANNOUNCE: a message that waits for its receive; GRANT: the \
receive is found, send; DATA: a fragment of a granted message; CREDIT: nothing but `credits` |
| 2..3 | `credits` | buffers that the sender of this has freed: so many fragments more may be sent to it |
| 4..7 | `context` | the communicator, and whether it is one of its collective operations (EAGER, ANNOUNCE) |
| 8..11 | `source` | the sender's rank in the communicator (EAGER, ANNOUNCE) |
| 12..15 | `tag` | (EAGER, ANNOUNCE) |
| 16..19 | `length` | bytes of the message; of a GRANT: how many of them the receiver wants |
| 20..23 | `offset` | where in the message the payload begins (DATA); `signature`: in collective operations which one \
it is, its operation and element type, 8, 8 and 16 bits (EAGER, ANNOUNCE) |
| 24..27 | `send` | the sender's number of the message (ANNOUNCE, GRANT) |
| 28..31 | `receive` | the receiver's number of it (GRANT, DATA); `elements`: of that type (EAGER, ANNOUNCE) |

EAGER, ANNOUNCE and DATA are the *fragments*: they need a credit, and those of a pair of ranks stay in order. GRANT
and CREDIT are *control*: they have buffers of their own, and nothing depends on their order.
"""

from __future__ import annotations

import struct
from dataclasses import astuple, dataclass, replace
from enum import IntEnum

__all__ = ["HEADER_BYTES", "MAX_LENGTH", "MAX_TAG", "Envelope", "Kind"]

HEADER_BYTES = 32
_FORMAT = struct.Struct("<BxHIIIIIII")
MAX_LENGTH = (1 << 32) - 1
"""Longest message, bytes."""
MAX_TAG = (1 << 31) - 1
"""Largest tag, as MPI's 32-bit int."""


class Kind(IntEnum):
    """Kind of a header."""

    EAGER = 1
    ANNOUNCE = 2
    GRANT = 3
    DATA = 4
    CREDIT = 5

    @property
    def control(self) -> bool:
        """Whether it uses control buffers, and no credit."""
        return self in (Kind.GRANT, Kind.CREDIT)


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A header; the fields are those of the table above."""

    kind: Kind
    credits: int = 0
    context: int = 0
    source: int = 0
    tag: int = 0
    length: int = 0
    offset: int = 0
    send: int = 0
    receive: int = 0

    @property
    def signature(self) -> int:
        """Collective operation, operation and type that the message is of."""
        return self.offset

    @property
    def elements(self) -> int:
        """Elements of that type."""
        return self.receive

    def announced(self, number: int) -> Envelope:
        """The announcement of this message, under the sender's `number`."""
        return replace(self, kind=Kind.ANNOUNCE, send=number)

    def pack(self) -> bytes:
        """Its 32 bytes."""
        return _FORMAT.pack(*astuple(self))

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> Envelope:
        """The header at the start of `data`."""
        kind, credits, context, source, tag, length, offset, send, receive = _FORMAT.unpack_from(data)
        return cls(
            kind=Kind(kind),
            credits=credits,
            context=context,
            source=source,
            tag=tag,
            length=length,
            offset=offset,
            send=send,
            receive=receive,
        )
