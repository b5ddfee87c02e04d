"""GM's use of the fields of a packet's header.

- `flow` packs the sub-ports.
- `bandwidth`, which only probes of an admission manager need, carries GM's code, and the incarnation of the node that
  sends the packet. The code of a data packet says whether it begins a message, or a stream. The code of a negative
  acknowledgement is the reason.
- `sequence` counts the packets of a stream (a flow from one node to another). In an acknowledgement of either kind it
  is the next packet expected, so that all before it are acknowledged.

Each number of a stream has one packet and one fate. A packet that the receiver refuses is refused for good: no other
copy of it is taken, and none behind it either. Once the sender has heard that, it begins the stream anew, with a packet
of the code RESTART and a number not used before. It does so, too, when it has given up everything that was under way.
So a message comes at most once, however often packets are repeated, and in whatever order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "BEGINNINGS",
    "FIRSTS",
    "INCARNATIONS",
    "OPENINGS",
    "SEQUENCE_MODULUS",
    "VOIDS",
    "Code",
    "FlowKey",
    "behind",
    "newer",
    "pack_code",
    "pack_flow",
    "unpack_code",
    "unpack_flow",
]

SEQUENCE_MODULUS = 1 << 16
"""Number of sequence numbers. A copy of a packet must not come half as many packets of its stream late, 32,768."""


class Code(IntEnum):
    """`Header.bandwidth` of a GM packet."""

    NONE = 0
    FIRST = 1
    """Data: begins a message."""
    VOID = 2
    """Data: takes the place of a packet whose message has failed; carries nothing."""
    RESTART = 3
    """Data: begins a message, and its stream anew: all before it is over."""
    VOID_RESTART = 4
    """Data: takes the place of a packet that began its stream anew and whose message has failed."""
    OPEN = 5
    """Data: begins a message that has an `Opening`, which is what it carries."""
    OPEN_RESTART = 6
    """Data: begins a message that has an `Opening`, and its stream anew."""
    AVAILABLE = 8
    """Positive: a receive token has come, which the flow was refused; it may try again."""
    ASK = 9
    """Positive: a question. Nothing has come of a message for long, whose token others wait for. Does it go on?"""
    ALIVE = 10
    """The answer: it does."""
    OVER = 11
    """The answer: it does not, it has failed here."""
    OUT_OF_SEQUENCE = 16
    """Negative: a packet is missing; go back."""
    NO_TOKEN = 17
    """Negative: the port has no receive token; the message begins again later, other flows go on."""
    CLOSED_PORT = 18
    """Negative: the message fails, the port is closed."""
    UNKNOWN_PORT = 19
    """Negative: the message fails, there is no such port."""
    TOO_LONG = 20
    """Negative: the message fails, it is longer than the receive buffer."""
    NOT_EXPOSED = 21
    """Negative: the message fails, the port has not exposed that memory."""
    NO_FLOW = 22
    """Negative: the message fails, the rate control unit has no flow left for the answer that it asks for."""


CODE_BITS = 5
INCARNATIONS = 1 << 8 - CODE_BITS
"""Number of incarnations of a node that are told apart, as they count modulo 8.

An incarnation that is neither the known one nor one of the three after it may be over. It is believed when nothing else
comes of its node for long (`GmProgram.believe`).
"""


def pack_code(code: Code, incarnation: int) -> int:
    """`Header.bandwidth`: code 5, incarnation of the sender (modulo 8) 3."""
    return code | incarnation % INCARNATIONS << CODE_BITS


def unpack_code(bandwidth: int) -> tuple[Code, int]:
    """Code and incarnation. Raises ValueError for a code that there is not."""
    return Code(bandwidth % (1 << CODE_BITS)), bandwidth >> CODE_BITS


def newer(incarnation: int, other: int) -> bool:
    """Whether an incarnation is one of the three after another; else it is over, or the same."""
    return 0 < (incarnation - other) % INCARNATIONS < INCARNATIONS // 2


BEGINNINGS = frozenset({Code.RESTART, Code.VOID_RESTART, Code.OPEN_RESTART})
"""Codes of packets with which a stream begins anew."""
OPENINGS = frozenset({Code.OPEN, Code.OPEN_RESTART})
"""Codes of packets that carry an opening."""
FIRSTS = frozenset({Code.FIRST, Code.RESTART}) | OPENINGS
"""Codes of packets that begin a message."""
VOIDS = frozenset({Code.VOID, Code.VOID_RESTART})
"""Codes of packets that carry nothing."""


class FlowKey(NamedTuple):
    """A flow to a node: source port (5 bits), target port (5 bits), priority (1 bit) (gulati-thesis-2001 4.2.1)."""

    source_port: int
    target_port: int
    priority: int


def pack_flow(key: FlowKey, last: bool) -> int:
    """`Header.flow`: source port 5, target port 5, priority 1, last packet of the message 1."""
    return key.source_port | key.target_port << 5 | key.priority << 10 | last << 11


def unpack_flow(flow: int) -> tuple[FlowKey, bool]:
    """The flow and whether the packet is its message's last."""
    return FlowKey(flow & 31, flow >> 5 & 31, flow >> 10 & 1), bool(flow >> 11 & 1)


def behind(sequence: int, other: int) -> int:
    """Packets by which `sequence` stands behind `other`, right across the wrap; negative if it is ahead."""
    distance = (other - sequence) % SEQUENCE_MODULUS
    return distance if distance < SEQUENCE_MODULUS // 2 else distance - SEQUENCE_MODULUS
