"""The records that pass between the parts of the adapter's send side."""

from __future__ import annotations

from amaranth import unsigned
from amaranth.lib import data

from ..config.link import ROUTE_BITS
from .layout import (
    BUFFERED_BITS,
    CLASS_BITS,
    CQ_BITS,
    INDEX_BITS,
    KIND_BITS,
    LIFE_BITS,
    MESSAGE_BITS,
    OWNER_BITS,
    QP_BITS,
    TAG_BITS,
    TIME_BITS,
)

__all__ = [
    "END_LAYOUT",
    "MESSAGE_LAYOUT",
    "PACKET_LAYOUT",
    "QUEUED_LAYOUT",
    "QUEUE_PAIR_LAYOUT",
    "RECORD_LAYOUT",
    "ROUTE_LAYOUT",
    "SEND_DOORBELL_LAYOUT",
]

NODE_BITS = 10

QUEUE_PAIR_LAYOUT = data.StructLayout(
    {
        "qp": unsigned(QP_BITS),
        "open": 1,
        "owner": unsigned(OWNER_BITS),
        "traffic_class": unsigned(CLASS_BITS),
        "send_queue": unsigned(CQ_BITS),
        "receive_queue": unsigned(CQ_BITS),
        "send_log2": unsigned(4),
        "send_base": unsigned(27),
        "receive_log2": unsigned(4),
        "receive_base": unsigned(28),
        "destination": unsigned(NODE_BITS),
        "destination_qp": unsigned(QP_BITS),
        "connected": 1,
        "vls": unsigned(16),
        "life": unsigned(LIFE_BITS),
        "destination_life": unsigned(LIFE_BITS),
    }
)
"""The set-up of a queue pair by the driver, fields as in the registers QP_OWNER to QP_COMMAND, and QP_LIFE."""

SEND_DOORBELL_LAYOUT = data.StructLayout(
    {"page": unsigned(OWNER_BITS), "qp": unsigned(QP_BITS), "index": unsigned(INDEX_BITS)}
)
"""A send doorbell: the page by which it came, the queue pair, and its ring's new running index."""

QUEUED_LAYOUT = data.StructLayout({"qp": unsigned(QP_BITS), "index": unsigned(INDEX_BITS)})
"""A message in a class queue: its queue pair, and the running index of its work queue element."""

ROUTE_LAYOUT = data.StructLayout({"node": unsigned(NODE_BITS), "route": unsigned(ROUTE_BITS), "known": 1})
"""The route to a node, if it is `known`."""

_COMMON = {
    "qp": unsigned(QP_BITS),
    "queue": unsigned(CQ_BITS),
    "traffic_class": unsigned(CLASS_BITS),
    "signaled": 1,
    "kind": unsigned(KIND_BITS),
    "with_immediate": 1,
    "vl": unsigned(4),
    "service_level": unsigned(4),
    "tag": unsigned(TAG_BITS),
    "destination": unsigned(NODE_BITS),
    "destination_qp": unsigned(QP_BITS),
    "life": unsigned(LIFE_BITS),
    "destination_life": unsigned(LIFE_BITS),
    "generation": unsigned(4),
    "bandwidth": unsigned(8),
    "immediate": unsigned(32),
    "route": unsigned(ROUTE_BITS),
}

MESSAGE_LAYOUT = data.StructLayout(
    _COMMON
    | {
        "address": unsigned(32),
        "bytes": unsigned(MESSAGE_BITS),
        "region": unsigned(8),
        "key": unsigned(8),
    }
)
"""A message that begins: its work queue element, completed from its queue pair and the table of routes."""

PACKET_LAYOUT = data.StructLayout(
    _COMMON
    | {
        "total_bytes": unsigned(MESSAGE_BITS),
        "bytes": unsigned(MESSAGE_BITS),
        "number": unsigned(8),
        "first": 1,
        "last": 1,
    }
)
"""A packet whose payload is being read: its message's fields, its payload in `bytes`, and its `number` in the message,
modulo 2^8."""

RECORD_LAYOUT = data.StructLayout(
    {
        "qp": unsigned(QP_BITS),
        "queue": unsigned(CQ_BITS),
        "traffic_class": unsigned(CLASS_BITS),
        "destination": unsigned(NODE_BITS),
        "flits": unsigned(8),
        "last": 1,
        "signaled": 1,
        "failed": 1,
        "tag": unsigned(TAG_BITS),
        "bytes": unsigned(MESSAGE_BITS),
        "begun": unsigned(TIME_BITS),
    }
)
"""A packet that is in a VL's buffer towards the link.

- `last`: it is the last of its message; `bytes` is the message's length.
- `failed`: the bus could not read all of the message.
- `begun`: the time at which its header was put there.
"""

END_LAYOUT = data.StructLayout(
    {
        "qp": unsigned(QP_BITS),
        "queue": unsigned(CQ_BITS),
        "tag": unsigned(TAG_BITS),
        "bytes": unsigned(MESSAGE_BITS),
        "status": unsigned(5),
        "signaled": 1,
        "departed": unsigned(TIME_BITS),
        "buffered": unsigned(BUFFERED_BITS),
    }
)
"""The end of a message.

- `status`: a `CqeStatus`.
- `departed`: the time at which the header of its last packet was on the link; 0 if nothing of it was.
- `buffered`: cycles that this header was in the buffer of its VL before, at most `MOST_BUFFERED_CYCLES`.
"""
