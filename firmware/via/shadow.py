"""Shadows: what a process writes of a descriptor into the card's SRAM, too (nagar-thesis-2001 4.2.2, 4.3.11).

A shadow is "an abridged version" of its descriptor. It is for a plain one: one data segment at most, no immediate data,
no RDMA. A process leaves the shadow of any other descriptor unwritten, and the card fetches that one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .descriptor import Control, Descriptor, Op, Segment

__all__ = ["SHADOW_BYTES", "SHADOW_QUEUE_BYTES", "SHADOW_SLOTS", "pack_shadow", "unpack_shadow"]

SHADOW_BYTES = 16
"""Bytes of a shadow's slot: SegCount and Control, address, handle and bytes, number of the descriptor and 1."""
SHADOW_SLOTS = 2
"""Slots of a queue's shadow. Descriptor `index` has slot `index` modulo this, once the one before it there is done."""
SHADOW_QUEUE_BYTES = SHADOW_BYTES * SHADOW_SLOTS
"""Bytes of a queue's shadow. A window of 1024 bytes has those of 16 VIs."""
NUMBERS = 1 << 16


def pack_shadow(descriptor: Descriptor, index: int) -> tuple[int, ...] | None:
    """The words of descriptor `index` of a queue, modulo 2^16; None for one that has no shadow.

    The last of them is to be written last: it says that the others are there.
    """
    segments = descriptor.segments
    if (
        len(segments) > 1
        or descriptor.op != Op.SEND
        or descriptor.immediate is not None
        or descriptor.remote is not None
        or descriptor.reserved_bits
        or descriptor.segment_count not in (None, len(segments))
        or descriptor.length not in (None, descriptor.data_bytes)
    ):
        return None
    segment = segments[0] if segments else Segment(0, 0, 0)
    if segment.address >= 1 << 32 or segment.handle >= 1 << 16 or segment.bytes >= 1 << 16:
        return None
    control = Control.FENCE * descriptor.fence | Control.NOTIFY * descriptor.notify
    return (
        len(segments) | control << 16,
        segment.address,
        segment.handle << 16 | segment.bytes,
        index % NUMBERS + 1,
    )


def unpack_shadow(words: Sequence[int], index: int) -> Descriptor | None:
    """The descriptor in a slot; None if it is not that of descriptor `index`, or none that has a shadow.

    A process may write anything there. It is checked like a descriptor that is fetched.
    """
    head, address, place, number = words
    count, control = head & 0xFFFF, head >> 16
    if number != index % NUMBERS + 1 or count > 1 or control & ~(Control.FENCE | Control.NOTIFY):
        return None
    return Descriptor(
        segments=(Segment(address, place >> 16, place & 0xFFFF),) * count,
        fence=bool(control & Control.FENCE),
        notify=bool(control & Control.NOTIFY),
    )
