"""What GM says in a packet's header.

`flow` packs the sub-ports. `bandwidth`, which only probes of an admission manager need, carries GM's code: of
a data packet whether it begins a message, of a negative acknowledgement the reason; and which copy of the
packet it is, or refuses: a packet that goes out again is another copy. `sequence` counts the
packets of a stream (one direction between two nodes, one priority); in an acknowledgement of either kind it
is the next packet expected, so that all before it are acknowledged.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "SEQUENCE_MODULUS",
    "Code",
    "FlowKey",
    "behind",
    "pack_code",
    "pack_flow",
    "same_copy",
    "unpack_code",
    "unpack_flow",
]

SEQUENCE_MODULUS = 1 << 16


class Code(IntEnum):
    """`Header.bandwidth` of a GM packet."""

    NONE = 0
    FIRST = 1
    """Data: begins a message."""
    VOID = 2
    """Data: takes the place of a packet whose message has failed or begins again later; carries nothing."""
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


CODE_BITS = 5
COPIES = 1 << 8 - CODE_BITS
"""Copies are told apart modulo 8. Between a refusal's leaving and its arriving a sender makes few
more: it goes back on an answer or after `GmConfig.resend_ticks`."""


def pack_code(code: Code, copy: int) -> int:
    """`Header.bandwidth`: code 5, number of the copy (modulo 8) 3."""
    return code | copy % COPIES << CODE_BITS


def unpack_code(bandwidth: int) -> tuple[Code, int]:
    """Code and copy. Raises ValueError for a code that there is not."""
    return Code(bandwidth % (1 << CODE_BITS)), bandwidth >> CODE_BITS


def same_copy(copy: int, other: int) -> bool:
    """Whether two numbers of copies are the same, as far as a header tells."""
    return copy % COPIES == other % COPIES


class FlowKey(NamedTuple):
    """A flow to a node: source port (5 bits), target port (5 bits), priority (1 bit) (gulati-thesis-2001
    4.2.1)."""

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
    """How many packets `sequence` stands behind `other`, right across the wrap; negative if it is ahead."""
    distance = (other - sequence) % SEQUENCE_MODULUS
    return distance if distance < SEQUENCE_MODULUS // 2 else distance - SEQUENCE_MODULUS
