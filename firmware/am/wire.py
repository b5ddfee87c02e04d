"""Words of packets between cards: the use of the header's fields, and the words behind it.

Fields of a header (`lanikai.hdl.packet.Header`):

- `kind`: DATA, its answers ACK and NACK, and PROBE (the mapper's, chun-1998 4.4.3, to whom the other fields
  but `length` then belong).
- `destination`, `source`: nodes.
- `flow`: of DATA the destination's endpoint, 12 bits; of an answer a `Reason`.
- `sequence`: the number of the packet on its channel, 16 bits; an answer has that of the packet that it answers. An
  answer that says RESIDENT has the endpoint instead; it is to the card, and to no packet.
- `bandwidth`: column of the channel, bits 0 to 4; bit 5: VOID.
- `length`: bytes behind the header.

Behind the header of DATA are the `AmHeader` (8 words), up to 8 words of the message, then its data. Behind that of an
answer is an `Answer` (2 words). All words are 32 bits, little endian.

A channel has one packet under way. Each number of a channel has one fate, which the receiver decides once and tells
again whenever a copy comes. The paper's channels have one bit for it (chun-1998 4.4.1); here are 16, as copies of
packets may come late and out of order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from .config import COLUMN_BITS

__all__ = [
    "AM_HEADER_BYTES",
    "ANSWER_BYTES",
    "FINAL_REASONS",
    "INCARNATIONS",
    "MOST_WORDS",
    "SEQUENCE_MODULUS",
    "STAMP_MODULUS",
    "UNKNOWN_INCARNATION",
    "AmHeader",
    "Answer",
    "MessageKind",
    "Reason",
    "newer",
    "next_incarnation",
    "pack_channel",
    "unpack_channel",
]

AM_HEADER_BYTES = 32
"""Bytes of the `AmHeader`."""
ANSWER_BYTES = 8
"""Bytes of an `Answer`."""
MOST_WORDS = 8
"""Most words of a message (chun-1998 3.1)."""
SEQUENCE_MODULUS = 1 << 16
"""Numbers of a channel. No copy of a packet may come so many packets of its channel late."""
STAMP_MODULUS = 1 << 32
"""Time stamps are RTC ticks modulo this."""
INCARNATIONS = 1 << 16
"""Incarnations of a card, from 1: how often it was started. After the last one comes 1 again."""
UNKNOWN_INCARNATION = 0
"""The incarnation of a card of which nothing is known."""
_VOID = 1 << COLUMN_BITS


class MessageKind(IntEnum):
    """The kind of a message, 2 bits."""

    SHORT = 0
    """Words alone."""
    MEDIUM = 1
    """Words, and data to a slot of the receiver's staging area."""
    BULK = 2
    """Words, and data to an offset of the receiver's segment."""


class Reason(IntEnum):
    """The fate of a packet, or of a message that comes back: `Header.flow` of an answer, status of an entry, 8 bits."""

    DELIVERED = 0
    """It is in the endpoint. Status of an entry: a message that has come."""
    VOID = 1
    """The number is taken, and nothing delivered with it nor ever will be. Status of an entry: it is empty."""
    NO_BUFFER = 2
    """The endpoint's queue is full. Not final: tried again."""
    NOT_RESIDENT = 3
    """The endpoint is in host memory; its driver has been told. Not final: tried again."""
    WRONG_TAG = 4
    """The endpoint has another tag."""
    NO_ENDPOINT = 5
    """There is no such endpoint, or its process has died."""
    TOO_LONG = 6
    """More data than a slot holds."""
    OUTSIDE = 7
    """Bulk data that are not all inside the segment."""
    BAD_MESSAGE = 8
    """The packet's words make no sense."""
    HOST_BUS = 9
    """The receiver's host bus answered with an error."""
    RESTARTED = 10
    """The card has another incarnation than the packet says.

    As the reason of a message that comes back: whether it arrived before that is not known.
    """
    UNREACHABLE = 11
    """No answer in `VirtualNetworkConfig.tries`; never on the wire. Whether it arrived is not known."""
    NO_ROUTE = 12
    """The sender's card has no route to the node, or it is no node; never on the wire."""
    BAD_ENTRY = 13
    """The sender's entry makes no sense, or names memory that is not its own; never on the wire."""
    RESIDENT = 14
    """An endpoint has come into a frame, or has ended: what was NOT_RESIDENT may be sent again. It is no fate."""


FINAL_REASONS = frozenset(
    {
        Reason.DELIVERED,
        Reason.VOID,
        Reason.WRONG_TAG,
        Reason.NO_ENDPOINT,
        Reason.TOO_LONG,
        Reason.OUTSIDE,
        Reason.BAD_MESSAGE,
        Reason.HOST_BUS,
    }
)
"""Reasons of answers with which a number is taken: its fate.

With the others it is not, and the packet is sent again.
"""


def pack_channel(column: int, *, void: bool = False) -> int:
    """`Header.bandwidth`: the channel's column, and whether the packet is VOID."""
    return column | (_VOID if void else 0)


def unpack_channel(bandwidth: int) -> tuple[int, bool]:
    """Column and whether the packet is VOID."""
    return bandwidth % _VOID, bool(bandwidth & _VOID)


def next_incarnation(incarnation: int) -> int:
    """The incarnation after this one; never `UNKNOWN_INCARNATION`."""
    return incarnation % (INCARNATIONS - 1) + 1


def newer(incarnation: int, other: int) -> bool:
    """Whether an incarnation comes after another; any is newer than an unknown one. Half the range decides."""
    if other == UNKNOWN_INCARNATION:
        return incarnation != UNKNOWN_INCARNATION
    distance = (incarnation - other) % (INCARNATIONS - 1)
    return 0 < distance <= (INCARNATIONS - 1) // 2


@dataclass(frozen=True, kw_only=True)
class AmHeader:
    """The words in front of a message.

    - `tag` (32 bits): the sender's idea of the destination endpoint's tag.
    - `source_endpoint` (12): the sender.
    - `kind` (2): a `MessageKind`.
    - `reply` (1): whether it is a reply; else a request.
    - `words` (4): words of the message, 0 to 8.
    - `handler` (8): index of the handler.
    - `bytes` (16): bytes of data behind the words.
    - `offset` (32): of bulk data, the place in the receiver's segment.
    - `reference` (32): the sender's word, which comes back with the reply.
    - `stamp` (32): RTC tick of this try, which an answer echoes.
    - `incarnation` (16): of the sender's card.
    - `expected` (16): of the receiver's card as the sender knows it; `UNKNOWN_INCARNATION` if it does not.
    - `reply_tag` (32): the tag of the sender's endpoint, for the reply.
    """

    tag: int = 0
    source_endpoint: int = 0
    kind: MessageKind = MessageKind.SHORT
    reply: bool = False
    words: int = 0
    handler: int = 0
    bytes: int = 0
    offset: int = 0
    reference: int = 0
    stamp: int = 0
    incarnation: int = 0
    expected: int = 0
    reply_tag: int = 0

    def pack(self) -> tuple[int, ...]:
        """Its eight words."""
        return (
            self.tag,
            self.source_endpoint | self.kind << 12 | self.reply << 14 | self.words << 16 | self.handler << 24,
            self.bytes,
            self.offset,
            self.reference,
            self.stamp,
            self.incarnation | self.expected << 16,
            self.reply_tag,
        )

    @classmethod
    def unpack(cls, words: Sequence[int]) -> AmHeader:
        """The header in eight words. Raises ValueError for a kind or a number of words that there is not."""
        count = words[1] >> 16 & 15
        if count > MOST_WORDS:
            raise ValueError(f"AM header: words = {count}: 0 to {MOST_WORDS}")
        return cls(
            tag=words[0],
            source_endpoint=words[1] & 0xFFF,
            kind=MessageKind(words[1] >> 12 & 3),
            reply=bool(words[1] >> 14 & 1),
            words=count,
            handler=words[1] >> 24,
            bytes=words[2] & 0xFFFF,
            offset=words[3],
            reference=words[4],
            stamp=words[5],
            incarnation=words[6] & 0xFFFF,
            expected=words[6] >> 16,
            reply_tag=words[7],
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The words behind the header of an ACK or a NACK.

    - `stamp` (32 bits): that of the packet which is answered (chun-1998 4.4.4).
    - `incarnation` (16): of the card that answers.
    - `expected` (16): of the card that is answered, as the packet said.
    """

    stamp: int
    incarnation: int
    expected: int

    def pack(self) -> tuple[int, int]:
        """Its two words."""
        return self.stamp, self.incarnation | self.expected << 16

    @classmethod
    def unpack(cls, words: Sequence[int]) -> Answer:
        """The answer in two words."""
        return cls(stamp=words[0], incarnation=words[1] & 0xFFFF, expected=words[1] >> 16)
