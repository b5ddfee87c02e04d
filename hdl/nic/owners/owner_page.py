"""The parts of an owner's page of the host's window, declared once for `HostPort`, firmware and host software.

An owner's page is mapped into one process (nagar-thesis-2001 4.2.3). Each part has `PART_BYTES`. In the first three a
word means the same wherever in its part it is written.
"""

from __future__ import annotations

from enum import IntEnum

from amaranth.lib import data

from ..doorbell import CHANNEL_BITS
from .completion_layout import INDEX_BITS, QUEUE_BITS

__all__ = ["CONSUME_WORD", "DOORBELL_WORD", "PART_BITS", "PART_BYTES", "PagePart"]

PART_BITS = 10
"""Width of an offset into a part."""
PART_BYTES = 1 << PART_BITS


class PagePart(IntEnum):
    """The parts, in the order of their addresses."""

    SEND = 0  # send doorbell: `DOORBELL_WORD`
    RECEIVE = 1  # receive doorbell, in cards that have them: `DOORBELL_WORD`
    COMPLETION = 2  # completion queue: `CONSUME_WORD`
    SHADOW = 3  # shadow window: words of SRAM

    @property
    def offset(self) -> int:
        """The offset in the page at which it begins, bytes."""
        return int(self) << PART_BITS


DOORBELL_WORD = data.StructLayout({"channel": CHANNEL_BITS, "word": 32 - CHANNEL_BITS})
"""A doorbell: its channel, and the word that the firmware is told."""
CONSUME_WORD = data.StructLayout(
    {"queue": QUEUE_BITS, "reserved": 15 - QUEUE_BITS, "arm": 1, "index": INDEX_BITS}
)
"""A word of a completion queue's consumer.

- `index`: all entries before this running index are done with.
- `arm`: wake the consumer for the next one.
"""
