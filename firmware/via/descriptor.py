"""Descriptors of the VI Architecture Specification 1.0, as they stand in host memory. Little endian.

A descriptor is a control segment, an address segment if its operation is an RDMA, and data segments. It stands in a
slot of its work queue's ring, as all descriptors do, whatever their operation; so `Next` and `NextHandle` are for the
library alone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from .config import MOST_MESSAGE_BYTES, WORD_BYTES, ViaConfig

__all__ = [
    "CONTROL_BYTES",
    "IMMEDIATE_OFFSET",
    "SEGMENT_BYTES",
    "SLOT_ALIGNMENT_BYTES",
    "STATUS_OFFSET",
    "TAIL_OFFSET",
    "Control",
    "Descriptor",
    "Op",
    "Segment",
    "SlotForm",
]

CONTROL_BYTES = 32
"""Bytes of the control segment.

They are Next 8, NextHandle 4, SegCount 2, Control 2, Reserved 4, ImmediateData 4, Length 4, Status 4.
"""
SEGMENT_BYTES = 16
"""Bytes of an address segment (address 8, handle 4, reserved 4) and of a data segment (address 8, handle 4, length
4)."""
SLOT_ALIGNMENT_BYTES = 64
"""The specification's alignment of descriptors."""
TAIL_OFFSET = 16
"""Offset of the words that the card writes when immediate data have come: Reserved, ImmediateData, Length, Status.

Reserved is the number of bytes of the immediate data. The Status word is 0 until the descriptor is done.
"""
IMMEDIATE_OFFSET = 20
"""Offset of ImmediateData. Immediate data of more than 4 bytes stand as a whole behind the control segment."""
STATUS_OFFSET = 28
"""Offset of Status: 0 as the descriptor is posted; `STATUS_LAYOUT` of `completion_layout.py` once it is done.

Its `bytes` are those that have been moved, without immediate data.
"""
_CONTROL = struct.Struct("<QIHHIIII")
_SEGMENT = struct.Struct("<QII")


class Op(IntEnum):
    """The operation that a descriptor asks for: the low bits of its Control. A descriptor to receive has SEND."""

    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    NONE = 3  # reserved


class Control(IntEnum):
    """The other bits of Control."""

    IMMEDIATE = 1 << 2  # with immediate data
    FENCE = 1 << 3  # wait until earlier RDMA reads of the queue have ended
    NOTIFY = 1 << 4  # of the library alone: the card does not look at it


OP_MASK = 3
KNOWN_BITS = OP_MASK | Control.IMMEDIATE | Control.FENCE | Control.NOTIFY


@dataclass(frozen=True)
class Segment:
    """Memory: `bytes` from virtual `address` on, in the region whose tag is `handle`.

    An address segment names memory of the other end, and has no `bytes`.
    """

    address: int
    handle: int
    bytes: int = 0


@dataclass(frozen=True)
class SlotForm:
    """The form of the slots of a program's work queues: it follows from two choices of `ViaConfig`."""

    data_segments: int
    immediate_bytes: int

    @classmethod
    def of(cls, config: ViaConfig) -> SlotForm:
        """That of a configuration."""
        return cls(config.data_segments, config.immediate_bytes)

    @property
    def area_bytes(self) -> int:
        """Bytes of the area for immediate data behind the control segment; none if they fit ImmediateData."""
        return self.immediate_bytes if self.immediate_bytes > WORD_BYTES else 0

    @property
    def segments_offset(self) -> int:
        """Offset of the first segment that is not the control segment."""
        return CONTROL_BYTES + self.area_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot: a descriptor with an address segment and all data segments, aligned."""
        used = self.segments_offset + SEGMENT_BYTES * (1 + self.data_segments)
        return -(-used // SLOT_ALIGNMENT_BYTES) * SLOT_ALIGNMENT_BYTES


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """A descriptor.

    - `op`, `fence`, `notify`: bits of Control.
    - `segments`: its data, piece by piece.
    - `remote`: memory of the other end, for an RDMA.
    - `immediate`: immediate data, None if it has none.
    - `length`: its Length; None for the sum of its segments.
    - `segment_count`: its SegCount; None for the number of its segments, `remote` included.
    - `reserved_bits`: bits of Control that mean nothing.
    """

    op: Op = Op.SEND
    segments: tuple[Segment, ...] = ()
    remote: Segment | None = None
    immediate: bytes | None = None
    fence: bool = False
    notify: bool = False
    length: int | None = None
    segment_count: int | None = None
    reserved_bits: int = 0

    @property
    def is_read(self) -> bool:
        """Whether it asks for memory of the other end."""
        return self.op == Op.RDMA_READ

    @property
    def data_bytes(self) -> int:
        """The sum of its segments."""
        return sum(segment.bytes for segment in self.segments)

    def pack(self, form: SlotForm) -> bytes:
        """The descriptor from its first byte on, its Status 0. The slot's other bytes mean nothing.

        Raises ValueError for what does not fit a slot of that form.
        """
        if len(self.segments) > form.data_segments:
            raise ValueError(f"descriptor: {len(self.segments)} data segments; at most {form.data_segments}")
        immediate = b"" if self.immediate is None else self.immediate
        if len(immediate) > form.immediate_bytes:
            raise ValueError(
                f"descriptor: {len(immediate)} bytes of immediate data; at most {form.immediate_bytes}"
            )
        control = self.op | self.reserved_bits | Control.FENCE * self.fence | Control.NOTIFY * self.notify
        control |= Control.IMMEDIATE * (self.immediate is not None)
        every = (*(() if self.remote is None else (self.remote,)), *self.segments)
        count = len(every) if self.segment_count is None else self.segment_count
        length = self.data_bytes if self.length is None else self.length
        word = int.from_bytes(immediate[:WORD_BYTES], "little")
        area = immediate.ljust(form.area_bytes, b"\0") if form.area_bytes else b""
        try:
            head = _CONTROL.pack(0, 0, count, control, len(immediate), word, length, 0)
            tail = [_SEGMENT.pack(one.address, one.handle, one.bytes) for one in every]
        except struct.error as error:
            raise ValueError(f"descriptor: a field does not fit: {error}") from None
        return head + area + b"".join(tail)

    @classmethod
    def unpack(cls, content: bytes, form: SlotForm) -> Descriptor:
        """The descriptor in a slot's bytes, whatever stands there; `refusal` says whether it is a good one.

        Segments that do not fit the slot are left out.
        """
        _, _, count, control, immediate_bytes, word, length, _ = _CONTROL.unpack_from(content)
        op = Op(control & OP_MASK)
        found = [
            Segment(*_SEGMENT.unpack_from(content, form.segments_offset + SEGMENT_BYTES * i))
            for i in range(min(count, form.data_segments + (op in (Op.RDMA_WRITE, Op.RDMA_READ))))
        ]
        remote = found.pop(0) if found and op in (Op.RDMA_WRITE, Op.RDMA_READ) else None
        immediate = None
        if control & Control.IMMEDIATE:
            fits = immediate_bytes <= form.immediate_bytes
            area = content[CONTROL_BYTES : CONTROL_BYTES + immediate_bytes * fits]
            immediate = area if form.area_bytes else word.to_bytes(WORD_BYTES, "little")
        return cls(
            op=op,
            segments=tuple(found),
            remote=remote,
            immediate=immediate,
            fence=bool(control & Control.FENCE),
            notify=bool(control & Control.NOTIFY),
            length=length,
            segment_count=count,
            reserved_bits=control & ~KNOWN_BITS,
        )

    def refusal(self, form: SlotForm, *, receive: bool) -> CompletionStatus:
        """The status with which the card ends this descriptor before it touches memory; OK for a good one.

        - FORMAT: bits that mean nothing; an operation that there is not, or that cannot be received; too few segments,
          or too many. A read with immediate data. Immediate data that are none, too many, or no whole words.
        - TOO_LONG: Length is not the sum of the segments, or more than a message may have. (To receive, Length says
          nothing: the segments are the buffer.)
        """
        rdma = self.op in (Op.RDMA_WRITE, Op.RDMA_READ)
        count = len(self.segments) + (self.remote is not None)
        if (
            self.reserved_bits
            or self.op == Op.NONE
            or (receive and rdma)
            or (rdma and self.remote is None)
            or (self.segment_count is not None and self.segment_count != count)
            or len(self.segments) > form.data_segments
            or (self.op == Op.RDMA_READ and self.immediate is not None)
            or (self.immediate is not None and not _may_be_immediate(len(self.immediate), form))
        ):
            return CompletionStatus.FORMAT
        if not receive and (
            self.length not in (None, self.data_bytes) or self.data_bytes > MOST_MESSAGE_BYTES
        ):
            return CompletionStatus.TOO_LONG
        return CompletionStatus.OK


def _may_be_immediate(size: int, form: SlotForm) -> bool:
    return 0 < size <= form.immediate_bytes and size % WORD_BYTES == 0
