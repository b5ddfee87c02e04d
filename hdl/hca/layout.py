"""The words that host and adapter share: work queue elements, completion queue entries, doorbells, trailers.

Words in host memory are little-endian. A beat of the bus is 16 bytes.
"""

from __future__ import annotations

from enum import IntEnum

from amaranth import unsigned
from amaranth.lib import data

__all__ = [
    "BUFFERED_BITS",
    "CLASS_BITS",
    "CONTROL_VL",
    "CQE_BYTES",
    "CQE_LAYOUT",
    "CQ_BITS",
    "INDEX_BITS",
    "KIND_BITS",
    "LIFE_BITS",
    "MESSAGE_BITS",
    "MOST_BUFFERED_CYCLES",
    "OWNER_BITS",
    "QP_BITS",
    "RECEIVE_WQE_BYTES",
    "RECEIVE_WQE_LAYOUT",
    "SEND_WQE_BYTES",
    "SEND_WQE_LAYOUT",
    "TAG_BITS",
    "TIME_BITS",
    "TRAILER_LAYOUT",
    "WINDOW_WRITE",
    "CqeStatus",
    "Opcode",
    "WindowWord",
]

QP_BITS = 8
"""Width of a queue pair's number."""
CQ_BITS = 6
"""Width of a completion queue's number."""
CLASS_BITS = 3
"""Width of a traffic class."""
OWNER_BITS = 10
"""Width of an owner's number: that of its page in the window."""
LIFE_BITS = 8
"""Width of a queue pair's life: which of the queue pairs that have had one number, modulo 2^8."""
CONTROL_VL = 15
"""The VL of control packets, which only queue pairs of a driver send and receive on."""
INDEX_BITS = 16
"""Width of a ring's running index, modulo 2^16; its low bits are the place in the ring."""
KIND_BITS = 3
"""Width of a `packet.Kind`, as an element names it."""
TAG_BITS = 16
"""Width of the consumer's own name for a work queue element."""
MESSAGE_BITS = 16
"""Width of a message's length, bytes: 65535 at most."""
TIME_BITS = 32
"""Width of the time that host and adapter share, cycles modulo 2^32."""
BUFFERED_BITS = 18
"""Width of the time that a header was in its VL's buffer, cycles: that of two fields of a completion."""
MOST_BUFFERED_CYCLES = (1 << BUFFERED_BITS) - 1
"""A longer time in a VL's buffer is told as this."""


class Opcode(IntEnum):
    """The kind of a send work queue element."""

    SEND = 1
    SEND_IMMEDIATE = 2  # with 32 bits that the receiver's completion carries


SEND_WQE_LAYOUT = data.StructLayout(
    {
        "opcode": unsigned(4),
        "signaled": 1,
        "kind": unsigned(KIND_BITS),
        "vl": unsigned(4),
        "service_level": unsigned(4),
        "tag": unsigned(TAG_BITS),
        "destination": unsigned(10),
        "destination_qp": unsigned(QP_BITS),
        "generation": unsigned(4),
        "reserved_1": 2,
        "bandwidth": unsigned(8),
        "immediate": unsigned(32),
        "destination_life": unsigned(LIFE_BITS),
        "reserved_2": 24,
        "address": unsigned(32),
        "bytes": unsigned(MESSAGE_BITS),
        "reserved_3": 16,
        "region": unsigned(8),
        "key": unsigned(8),
        "reserved_4": 48,
    }
)
"""A send work queue element, two beats.

- `opcode`: an `Opcode`.
- `signaled`: a good end makes a completion too; a bad end always does.
- `kind`, `bandwidth`: those in the header of the message's last packet, where `kind` is a `packet.Kind`. All other
  packets are DATA with 0. RELEASE ends the reservation of its path behind it (yum-2006 4.1). It is for a queue pair
  that is connected or may use VL 15. Other kinds are for VL 15 alone. Else the message ends with FORMAT.
- `generation`: the upper 4 bits of `flow` in all of its headers: which of the connections that a queue pair has had
  one after the other.
- `vl`, `service_level`: those of its packets. The queue pair says which VLs are allowed.
- `tag`: returned in the completion.
- `destination`, `destination_qp`, `destination_life`: node, queue pair and its life, of a queue pair that is not
  connected. A connected one has its own, and takes no notice of these.
- `immediate`: with SEND_IMMEDIATE.
- `address`, `bytes`, `region`, `key`: the message, at a virtual address that is a multiple of 16, in a region. One
  of 0 bytes is one packet of header and trailer. A queue pair that is not connected sends one packet a message.
"""
SEND_WQE_BYTES = SEND_WQE_LAYOUT.size // 8
assert SEND_WQE_BYTES == 32

RECEIVE_WQE_LAYOUT = data.StructLayout(
    {
        "address": unsigned(32),
        "bytes": unsigned(MESSAGE_BITS),
        "tag": unsigned(TAG_BITS),
        "region": unsigned(8),
        "key": unsigned(8),
        "reserved": 48,
    }
)
"""A receive work queue element, one beat: a buffer of `bytes` at virtual `address`, a multiple of 16, in a region that
may be written."""
RECEIVE_WQE_BYTES = RECEIVE_WQE_LAYOUT.size // 8
assert RECEIVE_WQE_BYTES == 16


class CqeStatus(IntEnum):
    """The end of a work queue element. Numbers that `CompletionStatus` of the card has, too, are the same."""

    OK = 0
    BUS_ERROR = 1  # the host's bus answered with an error
    TOO_LONG = 2  # longer than the posted buffer, or than a packet where the queue pair is not connected
    NO_REGION = 8
    NOT_OWNER = 9
    OUTSIDE = 10
    READ_ONLY = 11
    NO_PAGE = 12
    MISALIGNED = 13
    FORMAT = 16  # unknown opcode, a VL that is not allowed, a destination that is not there
    PARTIAL = 21  # a part of the message is in memory, its rest is lost
    THROTTLED = 22  # injection control refused it, and its class does not wait: post it again
    OVERRUN = 31  # the completion queue was full: entries after this one are lost


CQE_LAYOUT = data.StructLayout(
    {
        "bytes": unsigned(MESSAGE_BITS),
        "tag": unsigned(TAG_BITS),
        "qp": unsigned(QP_BITS),
        "status": unsigned(5),
        "receive": 1,
        "with_immediate": 1,
        "reserved": 1,
        "source": unsigned(10),
        "source_qp": unsigned(QP_BITS),
        "reserved_1": 5,
        "reserved_2": 1,
        "immediate": unsigned(32),
        "vl": unsigned(4),
        "kind": unsigned(4),
        "life": unsigned(LIFE_BITS),
        "reserved_3": 7,
        "phase": 1,
    }
)
"""A completion queue entry, one beat, written at once.

- `bytes`: sent, or received into the buffer.
- `tag`, `qp`: those of the work queue element that has ended.
- `status`: a `CqeStatus`.
- `life`: that of the queue pair. An entry of an earlier one may still be in the ring when its number is used again.
- `receive`: of a receive work queue element; `source`, `source_qp`, `with_immediate`, `immediate` are of its message.
  Of a send whose message is on the link, they have the times of its last packet's header. `immediate` is when it was on
  the link. `source` (low bits) and `source_qp` are the cycles that it was in the buffer of its VL, at most
  `MOST_BUFFERED_CYCLES`.
- `vl`, `kind`: those of the packet that ended it, 0 if it was sent. Only a driver has a queue pair that sends on VL 15.
- `phase`: 1 in the first turn around the ring, 0 in the second, and so on; a ring starts as zeroes.
"""
CQE_BYTES = CQE_LAYOUT.size // 8
assert CQE_BYTES == 16

TRAILER_LAYOUT = data.StructLayout(
    {
        "crc": unsigned(32),
        "immediate": unsigned(32),
        "total_bytes": unsigned(MESSAGE_BITS),
        "first": 1,
        "last": 1,
        "with_immediate": 1,
        "life": unsigned(LIFE_BITS),
        "source_life": unsigned(LIFE_BITS),
        "reserved": 29,
    }
)
"""The last flit of a packet. The CRC-32 is that of header, payload and the trailer's other bits (`trailer_crc.py`).

- `first`, `last`: the packet begins its message, ends it.
- `total_bytes`: length of the message.
- `with_immediate`, `immediate`: of a message's last packet.
- `life`: that of the receiver's queue pair, as its sender knows it. `source_life`: that of the sender's.

In the header the low 8 bits of `flow` are the receiver's queue pair, the upper 4 the element's `generation`. A receiver
takes packets of every kind as data. `sequence` is the sender's queue pair in the low 8 bits, and above
them the packet's number in its message, modulo 2^8. `length` is the payload of the packet, bytes.
"""
assert TRAILER_LAYOUT.size == 128


class WindowWord(IntEnum):
    """The words of a process' page."""

    SEND_DOORBELL = (
        0  # data: queue pair (8 bits), then 8 bits of 0, then the ring's new running index (16 bits)
    )
    RECEIVE_DOORBELL = 1  # data: as SEND_DOORBELL
    CONSUME = 2  # data: completion queue (6 bits), then 10 bits of 0, then the running index of the first unread entry
    WQE = 8  # to 15: the page's send work queue element, low word first; with `wqe` posted a SEND_DOORBELL posts it


WINDOW_WRITE = data.StructLayout({"page": unsigned(OWNER_BITS), "word": unsigned(10), "data": unsigned(32)})
"""A write of the host's processor into the adapter's window: word `word` of page `page`, which names the owner."""
