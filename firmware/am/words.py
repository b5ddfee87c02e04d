"""Words that firmware, driver and processes share: entries, doorbell words, records, commands, notices.

All words are 32 bits, little endian. `layout` has their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from .wire import MOST_WORDS, MessageKind

__all__ = [
    "COMMAND_WORDS",
    "COUNT_MODULUS",
    "ENTRY_BYTES",
    "ENTRY_WORDS",
    "NOTICE_WORDS",
    "RECORD_BYTES",
    "RECORD_WORDS",
    "Command",
    "CommandKind",
    "CommandStatus",
    "Counts",
    "EndpointRecord",
    "Entry",
    "Notice",
    "NoticeKind",
    "pack_pair",
    "unpack_pair",
]

ENTRY_WORDS = 16
ENTRY_BYTES = 4 * ENTRY_WORDS
RECORD_WORDS = 16
RECORD_BYTES = 4 * RECORD_WORDS
COMMAND_WORDS = 8
NOTICE_WORDS = 8
COUNT_BITS = 7
COUNT_MODULUS = 1 << COUNT_BITS
"""Counts of a doorbell word are modulo this: more than twice the 32 entries of two queues, so never ambiguous."""


def pack_pair(low: int, high: int) -> int:
    """Two counts modulo 2^16 in a word: of requests low, of replies high."""
    return (low & 0xFFFF) | (high & 0xFFFF) << 16


def unpack_pair(word: int) -> tuple[int, int]:
    """Both counts of such a word."""
    return word & 0xFFFF, word >> 16


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of a queue in an endpoint's page, 16 words. A process may have written anything there.

    - `node` (word 0, bits 0 to 11): of a send the destination, of a message that has come the source.
    - `endpoint` (word 0, bits 12 to 23): the endpoint there.
    - `kind` (word 0, bits 24, 25): a `MessageKind`.
    - `tag` (word 1): of a send the destination's tag; of a message that has come the tag for a reply.
    - `status` (word 2, bits 0 to 7): 0 of a message that has come; VOID of one whose data the host's bus has not
      taken. Else the `Reason` why the process' own message comes back. The firmware writes that into a send entry, too,
      while its message waits to come back.
    - `handler` (word 3, bits 0 to 7): index of the handler.
    - `count` (word 3, bits 8 to 11): words of the message.
    - `reply` (word 3, bit 12): of a message that comes back, whether it was a reply.
    - `bytes` (word 4, bits 0 to 15): bytes of data.
    - `slot` (word 5, bits 0 to 7): number of the staging slot with its data, in its area (`AmLayout.slot`). Of
      a send it is not read: slot and entry go together. Of a message that comes back it is that of the send area.
    - `offset` (word 6): of bulk data, the place in the receiver's segment.
    - `reference` (word 7): the sender's word; a reply has its request's.
    - `words` (words 8 to 15): the message's words, `count` of them.
    """

    node: int
    endpoint: int
    kind: MessageKind = MessageKind.SHORT
    tag: int = 0
    status: int = 0
    handler: int = 0
    reply: bool = False
    bytes: int = 0
    slot: int = 0
    offset: int = 0
    reference: int = 0
    words: tuple[int, ...] = ()

    def pack(self) -> tuple[int, ...]:
        """The entry's words: 8, and those of the message. Raises ValueError for a field that does not fit."""
        if len(self.words) > MOST_WORDS:
            raise ValueError(f"entry: {len(self.words)} words: at most {MOST_WORDS}")
        for name, bits in (("node", 12), ("endpoint", 12), ("handler", 8), ("bytes", 16), ("slot", 8)):
            if not 0 <= getattr(self, name) < 1 << bits:
                raise ValueError(f"entry: {name} = {getattr(self, name)}: 0 to {(1 << bits) - 1}")
        return (
            self.node | self.endpoint << 12 | self.kind << 24,
            self.tag,
            self.status,
            self.handler | len(self.words) << 8 | self.reply << 12,
            self.bytes,
            self.slot,
            self.offset,
            self.reference,
            *self.words,
        )

    @classmethod
    def unpack(cls, words: Sequence[int]) -> Entry:
        """The entry in its 16 words, or in 8 if it has none of its own.

        Raises ValueError for words that no `pack` gives: a kind or a number of words that there is not.
        """
        count = words[3] >> 8 & 15
        if count > MOST_WORDS:
            raise ValueError(f"entry: {count} words: at most {MOST_WORDS}")
        return cls(
            node=words[0] & 0xFFF,
            endpoint=words[0] >> 12 & 0xFFF,
            kind=MessageKind(words[0] >> 24 & 3),
            tag=words[1],
            status=words[2] & 0xFF,
            handler=words[3] & 0xFF,
            reply=bool(words[3] >> 12 & 1),
            bytes=words[4] & 0xFFFF,
            slot=words[5] & 0xFF,
            offset=words[6],
            reference=words[7],
            words=tuple(words[8 : 8 + count]),
        )


@dataclass(frozen=True, kw_only=True)
class Counts:
    """A doorbell word, 28 bits: four counts modulo 128 of what the process has posted and consumed.

    It is the last write of each post and each consume. A later word says everything that an overwritten one said.

    - `requests_posted` (bits 0 to 6), `replies_posted` (7 to 13): entries of the send queues.
    - `requests_consumed` (14 to 20), `replies_consumed` (21 to 27): entries of the receive queues.
    """

    requests_posted: int = 0
    replies_posted: int = 0
    requests_consumed: int = 0
    replies_consumed: int = 0

    def _all(self) -> tuple[int, int, int, int]:
        return self.requests_posted, self.replies_posted, self.requests_consumed, self.replies_consumed

    def word(self) -> int:
        """The doorbell word."""
        return sum(count % COUNT_MODULUS << COUNT_BITS * place for place, count in enumerate(self._all()))

    @classmethod
    def unpack(cls, word: int) -> Counts:
        """The four counts of a word."""
        return cls(
            requests_posted=word % COUNT_MODULUS,
            replies_posted=word >> COUNT_BITS & COUNT_MODULUS - 1,
            requests_consumed=word >> 2 * COUNT_BITS & COUNT_MODULUS - 1,
            replies_consumed=word >> 3 * COUNT_BITS & COUNT_MODULUS - 1,
        )

    def since(self, before: Counts) -> tuple[int, int, int, int]:
        """How many each count has gone on since `before`, each 0 to 127, in the order of the fields.

        The firmware refuses more than can be: a post beyond the entries that are free, a consume beyond those that
        hold a message.
        """
        requests, replies, taken, answered = (
            (now - then) % COUNT_MODULUS for now, then in zip(self._all(), before._all(), strict=True)
        )
        return requests, replies, taken, answered


@dataclass(kw_only=True)
class EndpointRecord:
    """The record of an endpoint, 16 words. It is trusted: driver and firmware write it, no process can.

    It is in the driver's memory, and while the endpoint is resident in the SRAM beside its frame. The driver writes
    words 0 to 6; the firmware writes words 7 to 14 back as it unloads.

    - `endpoint` (word 0, bits 0 to 11), `owner` (word 0, bits 16 to 31): its number, and its process' number.
    - `tag` (word 1): messages for it carry this tag.
    - `send_staging`, `receive_staging` (words 2, 3): host addresses of its staging areas, multiples of 8.
    - `segment`, `segment_bytes` (words 4, 5): host address (a multiple of 4) and length of its segment; 0 bytes: none.
    - `flags` (word 6): spare, 0.
    - `posted` (word 7): requests | replies << 16 that the process has posted, modulo 2^16.
    - `taken` (word 8): of those, the sends whose entries are free again, in order.
    - `done` (word 9): a bit for each send entry whose message is done while an earlier one is not: requests in bits 0
      to 15, replies in 16 to 31.
    - `returning` (word 10): in the same order, send entries whose messages wait to come back; entry word 2 says why.
    - `delivered` (word 11): messages put into the receive queues.
    - `consumed` (word 12): of those, the ones that the process has consumed.
    - `refused_doorbells` (word 13): doorbell words that could not be.
    - `activity` (word 14): messages sent and received, modulo 2^32, for the driver's choice of a victim.
    """

    endpoint: int
    owner: int = 0
    tag: int = 0
    send_staging: int = 0
    receive_staging: int = 0
    segment: int = 0
    segment_bytes: int = 0
    flags: int = 0
    posted: tuple[int, int] = (0, 0)
    taken: tuple[int, int] = (0, 0)
    done: tuple[int, int] = (0, 0)
    returning: tuple[int, int] = (0, 0)
    delivered: tuple[int, int] = (0, 0)
    consumed: tuple[int, int] = (0, 0)
    refused_doorbells: int = 0
    activity: int = 0

    def pack(self) -> tuple[int, ...]:
        """The record's words."""
        pairs = (self.posted, self.taken, self.done, self.returning, self.delivered, self.consumed)
        return (
            self.endpoint | self.owner << 16,
            self.tag,
            self.send_staging,
            self.receive_staging,
            self.segment,
            self.segment_bytes,
            self.flags,
            *(pack_pair(*pair) for pair in pairs),
            self.refused_doorbells & 0xFFFFFFFF,
            self.activity & 0xFFFFFFFF,
            0,
        )

    @classmethod
    def unpack(cls, words: Sequence[int]) -> EndpointRecord:
        """The record in its words."""
        return cls(
            endpoint=words[0] & 0xFFF,
            owner=words[0] >> 16,
            tag=words[1],
            send_staging=words[2],
            receive_staging=words[3],
            segment=words[4],
            segment_bytes=words[5],
            flags=words[6],
            posted=unpack_pair(words[7]),
            taken=unpack_pair(words[8]),
            done=unpack_pair(words[9]),
            returning=unpack_pair(words[10]),
            delivered=unpack_pair(words[11]),
            consumed=unpack_pair(words[12]),
            refused_doorbells=words[13],
            activity=words[14],
        )

    @property
    def counts(self) -> Counts:
        """The doorbell word that the process must have written last, as the firmware has accepted it."""
        return Counts(
            requests_posted=self.posted[0],
            replies_posted=self.posted[1],
            requests_consumed=self.consumed[0],
            replies_consumed=self.consumed[1],
        )


class CommandKind(IntEnum):
    """The kind of a driver's command; below each, what it is answered with and when."""

    LOAD = 1
    """Load page and record of `endpoint` into `frame`, which is empty. Answered when both are there."""
    UNLOAD = 2
    """Unload `frame` to the addresses from which it was loaded. Answered when it is quiet and both are written back."""
    KILL = 3
    """`endpoint` is gone: its messages are forgotten, its frame is empty, packets for it get NO_ENDPOINT."""
    SET_ROUTE = 4
    """`route` leads to `node`; `route` of all ones: none does."""
    SEND_RAW = 5
    """Send the packet in the raw area, `length` bytes, by `route`, as a PROBE. Answered when it has left."""
    SET_RING = 6
    """The ring of notices is at host address `page`. Its notices count from 1 again."""
    CONSUMED = 7
    """The driver has consumed `length` notices in all, modulo 2^32. Not answered."""
    CREATE = 8
    """`endpoint` exists, though not in a frame: packets for it get NOT_RESIDENT and the driver a notice."""


class CommandStatus(IntEnum):
    """The answer to a command, its second word in host memory."""

    OK = 0
    BAD_COMMAND = 1
    """A kind, frame, endpoint or node that there is not."""
    IN_USE = 2
    """The frame has an endpoint, or the endpoint a frame."""
    EMPTY = 3
    """The frame has no endpoint."""
    HOST_BUS = 4
    """The host's bus answered a DMA with an error."""
    TOO_LONG = 5
    """More bytes than the raw area or a packet has."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of the driver, 8 words in the mailbox; then it rings channel 0 with `number`'s low bits.

    The firmware clears word 0 when it has taken the command. Then the next one may be written, word 0 last, though the
    answer has not come. The answer goes by host DMA to two words at `answer`: the
    command's `number` in the second one, its `CommandStatus` in the first.

    - `kind` (word 0, bits 0 to 7), `frame` (word 0, bits 8 to 15), `endpoint` (word 0, bits 16 to 27).
    - `number` (word 1): counts the driver's commands from 1, modulo 2^32.
    - `answer` (word 2): host address of the answer, a multiple of 8.
    - `page`, `record` (words 3, 4): host addresses, multiples of 8.
    - `node` (word 5, bits 0 to 15), high half of the route (word 5, bits 16 to 31).
    - `route` (word 6 has its low half): 48 bits.
    - `length` (word 7): bytes of a raw packet, or a count.
    """

    kind: CommandKind
    frame: int = 0
    endpoint: int = 0
    number: int = 0
    answer: int = 0
    page: int = 0
    record: int = 0
    node: int = 0
    route: int = 0
    length: int = 0

    def pack(self) -> tuple[int, ...]:
        """The command's words."""
        return (
            self.kind | self.frame << 8 | self.endpoint << 16,
            self.number,
            self.answer,
            self.page,
            self.record,
            self.node | self.route >> 32 << 16,
            self.route & 0xFFFFFFFF,
            self.length,
        )

    @classmethod
    def unpack(cls, words: Sequence[int]) -> Command:
        """The command in its words. Raises ValueError for a kind that there is not."""
        return cls(
            kind=CommandKind(words[0] & 0xFF),
            frame=words[0] >> 8 & 0xFF,
            endpoint=words[0] >> 16 & 0xFFF,
            number=words[1],
            answer=words[2],
            page=words[3],
            record=words[4],
            node=words[5] & 0xFFFF,
            route=words[6] | words[5] >> 16 << 32,
            length=words[7],
        )


class NoticeKind(IntEnum):
    """The subject of a notice to the driver."""

    ENDPOINT_FAULT = 1
    """A packet has come for `endpoint`, which is not resident. Told once until it has been loaded."""
    EVENT = 2
    """A receive queue of `endpoint` is no longer empty, and its event mask asks for that."""
    RAW_PACKET = 3
    """A PROBE packet of `length` bytes has come; header and payload follow. Lost if the ring is half full."""
    UNREACHABLE = 4
    """`node` gave no answer to a packet in `VirtualNetworkConfig.tries`."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A notice, 8 words of a slot of the ring in host memory; the packet follows a RAW_PACKET's.

    Notice n (from 1) is in slot (n - 1) modulo `notice_entries`. HOST_INTERRUPT follows.

    - `kind` (word 0, bits 0 to 7), `endpoint` (word 0, bits 16 to 27).
    - `node` (word 1): the node that it came from.
    - `length` (word 2): bytes of the packet, without its header.
    - word 3 is spare, words 4 to 7 are the header of a RAW_PACKET (`header`, 128 bits).
    - the last word of the slot is the running number (`AmLayout.notice_number`), new with each notice.
    """

    kind: NoticeKind
    endpoint: int = 0
    node: int = 0
    length: int = 0
    header: int = field(default=0)

    def pack(self) -> tuple[int, ...]:
        """The notice's words."""
        header = (self.header >> 32 * place & 0xFFFFFFFF for place in range(4))
        return (self.kind | self.endpoint << 16, self.node, self.length, 0, *header)

    @classmethod
    def unpack(cls, words: Sequence[int]) -> Notice:
        """The notice in its words. Raises ValueError for a kind that there is not."""
        return cls(
            kind=NoticeKind(words[0] & 0xFF),
            endpoint=words[0] >> 16 & 0xFFF,
            node=words[1],
            length=words[2],
            header=sum(word << 32 * place for place, word in enumerate(words[4:8])),
        )
