"""The layouts of completions: requests to the unit, and the words that it writes into host memory.

Words in host memory are little-endian. Both words of an entry have a phase bit. So a reader who finds both right has a
whole entry, in whatever order the memory took the words. A bus word of 32 bits is written at once, two of them are not.
"""

from __future__ import annotations

from enum import IntEnum

from amaranth.lib import data

__all__ = [
    "CONSUME_LAYOUT",
    "ENTRY_BYTES",
    "ENTRY_LAYOUT",
    "INDEX_BITS",
    "OWNER_BITS",
    "POST_LAYOUT",
    "QUEUE_BITS",
    "QUEUE_SETUP_LAYOUT",
    "STATUS_LAYOUT",
    "CompletionStatus",
]

QUEUE_BITS = 6
"""Width of a completion queue's number."""
OWNER_BITS = 10
"""Width of an owner's number: that of a page of the host's window."""
INDEX_BITS = 16
"""Width of a running index of entries: its low bits are the place in the ring, the next one the phase."""
ENTRY_BYTES = 8
"""Bytes of an entry of a completion queue."""


class CompletionStatus(IntEnum):
    """The end of a request."""

    OK = 0
    BUS_ERROR = 1  # the host's bus answered with an error
    TOO_LONG = 2  # longer than the buffer, or than a packet
    NO_REGION = 8  # the tag is no region's
    NOT_OWNER = 9  # region or work queue belong to someone else
    OUTSIDE = 10  # not all bytes are in the region
    READ_ONLY = 11  # a write into a region that may only be read
    NO_PAGE = 12  # a page of it has no translation
    MISALIGNED = 13  # not at a multiple of what the host DMA engine moves from and to (`dma_alignment_bytes`)
    # Ends that firmware alone knows of. The card passes them on.
    FORMAT = 16  # a descriptor that makes no sense
    FLUSHED = 17  # its work queue was emptied, as its connection has ended
    TRANSPORT = 18  # no answer from the other end, or a part of the message is missing
    NO_DESCRIPTOR = 19  # the other end had no descriptor for it, or too small a one
    REMOTE_ACCESS = 20  # memory of the other end that may not be used so
    PARTIAL = 21  # a part of the message is in memory, its rest is lost
    IMMEDIATE = 24  # good, and immediate data have come with it
    WRITTEN = 25  # good: immediate data of a remote write have taken it
    OVERRUN = 31  # the consumer was too slow: entries after this one are lost


STATUS_LAYOUT = data.StructLayout({"bytes": 16, "status": 5, "reserved": 10, "done": 1})
"""The status word of a descriptor, and the first word of an entry.

In an entry `done` is the phase: 1 in the first turn around the ring, 0 in the second, and so on. A ring starts as
zeroes.
"""

ENTRY_LAYOUT = data.StructLayout(
    {
        "bytes": 16,
        "status": 5,
        "reserved": 10,
        "phase": 1,
        "descriptor": 16,
        "work_queue": 10,
        "reserved_1": 5,
        "phase_1": 1,
    }
)
"""An entry of a completion queue, two words. `descriptor` and `work_queue` name the request that has ended."""

POST_LAYOUT = data.StructLayout(
    {
        "queue": QUEUE_BITS,
        "work_queue": 10,
        "descriptor": 16,
        "status": 5,
        "bytes": 16,
        "write_back": 1,
        "status_address": 32,
        "entry": 1,
    }
)
"""A completion.

- `write_back`: write a status word to `status_address` (a multiple of 4) of host memory.
- `entry`: put an entry into completion queue `queue`.
"""

QUEUE_SETUP_LAYOUT = data.StructLayout(
    {
        "queue": QUEUE_BITS,
        "owner": OWNER_BITS,
        "base": 32,
        "entries_log2": 4,
        "batch": 4,
        "lag_cycles": 16,
        "stall": 1,
    }
)
"""The set-up of completion queue `queue`.

- `owner`: the owner whose page consumes it.
- `base`, `entries_log2`: its ring of 2^`entries_log2` entries at `base` (a multiple of 64) of host memory.
- `batch`: entries that are collected before they are written.
- `lag_cycles`: cycles from the first entry after which they are written, however few.
- `stall`: a full ring stalls; otherwise it is overrun.
"""

CONSUME_LAYOUT = data.StructLayout({"queue": QUEUE_BITS, "owner": OWNER_BITS, "index": INDEX_BITS, "arm": 1})
"""A word of the consumer of `queue`, by a write into page `owner`.

- `index`: all entries before this running index are done with.
- `arm`: raise the event when there is an entry at `index` or after it.
"""
