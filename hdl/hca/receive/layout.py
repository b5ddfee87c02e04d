"""The words between the parts of the adapter's receive side."""

from __future__ import annotations

from amaranth import unsigned
from amaranth.lib import data

from ..completion_writer import COMPLETION_POST
from ..layout import (
    CQ_BITS,
    INDEX_BITS,
    LIFE_BITS,
    MESSAGE_BITS,
    OWNER_BITS,
    QP_BITS,
    RECEIVE_WQE_LAYOUT,
)

__all__ = [
    "BUFFER_LAYOUT",
    "END_LAYOUT",
    "PACKET_LAYOUT",
    "RECEIVE_DOORBELL",
    "RECEIVE_QP",
    "STAGE_PACKETS",
    "WRITE_LAYOUT",
]

STAGE_PACKETS = 4
"""Packets that the receive side holds: one comes in, one is looked at, one is written, and one is spare for the turn of
a page, or of the bus."""

RECEIVE_QP = data.StructLayout(
    {
        "qp": QP_BITS,
        "open": 1,
        "connected": 1,
        "peer": 10,
        "peer_qp": QP_BITS,
        "control": 1,
        "life": LIFE_BITS,
        "peer_life": LIFE_BITS,
        "owner": OWNER_BITS,
        "queue": CQ_BITS,
        "base": 32,
        "entries_log2": 4,
    }
)
"""The receive side of queue pair `qp`.

- `open`: packets may come. A queue pair that is set up, open or not, starts anew: nothing is posted, no message begun.
- `connected`: only packets of node `peer` and its queue pair `peer_qp` may come, and messages may have several packets.
  One that is not connected takes messages of one packet from anyone.
- `control`: only packets of VL 15 may come; else only those of other VLs.
- `life`: only packets that name it may come. `peer_life`: of one that is connected, the peer's, which they name, too.
- `owner`: the page by which buffers are posted, and the owner of the regions that they may be in.
- `queue`: the completion queue.
- `base`, `entries_log2`: the receive ring of 2^`entries_log2` elements, at a multiple of 16 (low bits are ignored).
"""

RECEIVE_DOORBELL = data.StructLayout({"owner": OWNER_BITS, "qp": QP_BITS, "index": INDEX_BITS})
"""A write into page `owner`: the running index after the last receive work queue element that is posted."""

PACKET_LAYOUT = data.StructLayout(
    {
        "slot": (STAGE_PACKETS - 1).bit_length(),
        "qp": QP_BITS,
        "source": 10,
        "source_qp": QP_BITS,
        "vl": 4,
        "kind": 4,
        "life": LIFE_BITS,
        "source_life": LIFE_BITS,
        "number": 8,
        "bytes": MESSAGE_BITS,
        "total_bytes": MESSAGE_BITS,
        "first": 1,
        "last": 1,
        "with_immediate": 1,
        "immediate": unsigned(32),
    }
)
"""A good packet, whose payload of `bytes` is in place `slot` of the stage."""

BUFFER_LAYOUT = data.StructLayout(
    {
        **{name: field.shape for name, field in RECEIVE_WQE_LAYOUT if not name.startswith("reserved")},
        "failed": 1,
    }
)
"""A receive work queue element, without its reserved bits; `failed`: the bus could not read it."""

WRITE_LAYOUT = data.StructLayout(
    {
        "slot": (STAGE_PACKETS - 1).bit_length(),
        "address": 32,
        "bytes": MESSAGE_BITS,
        "next_address": 32,
        "next_bytes": MESSAGE_BITS,
        "releases": 1,
        "ends": 1,
        "qp": QP_BITS,
        "post": COMPLETION_POST,
    }
)
"""The outcome of a packet.

- `address`, `bytes`: a segment of host memory that gets the first bytes of the packet in `slot`.
- `next_address`, `next_bytes`: one that gets the next bytes: a packet is in two pages at most. Both may have 0 bytes.
- `releases`: after that the place in the stage is free.
- `ends`: after all writes of queue pair `qp` so far, `post` is posted. Its status becomes BUS_ERROR if one failed.
"""

END_LAYOUT = data.StructLayout({"awaits": 1, "ends": 1, "qp": QP_BITS, "post": COMPLETION_POST})
"""A burst whose answer is awaited, or none without `awaits`; after it `post` is posted if it `ends` a message."""
