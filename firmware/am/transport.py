"""The transport protocol between cards, without I/O: each message is delivered once, or comes back (chun-1998 4.4).

The program's sender and receiver are I/O around one `Transport`:

- The sender makes a `Message` of a posted entry and calls `offer`. Then it sends what `next_packet` gives, until that
  is None, and calls `sent` when a packet has left.
- The receiver calls `arrived` for each packet of the kinds DATA, ACK and NACK. It gives a `Packet` to be sent as an
  answer, or a `Fresh` message. That one the receiver delivers or refuses, and then sends what `answer` gives.
- After each of these calls `next_outcome` has the messages that have ended.
- A timer calls `scan` each `AmLayout.scan_ticks`, then the sender sends what is due.
- When an endpoint has been loaded, `loaded` gives what is to be told to those whose packets found it absent.
- Before an endpoint is unloaded: `quiesce`, wait until it is `quiet`, unload, `resume`. If its process has died:
  `abandon`.

Nothing here waits, and no call takes longer the longer the network or a process is silent.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.packet import Header, Kind

from .channels import ReceiveChannel, Row, SendChannel
from .config import VirtualNetworkConfig
from .messages import Fresh, Packet
from .send_half import SendHalf
from .wire import (
    AM_HEADER_BYTES,
    ANSWER_BYTES,
    FINAL_REASONS,
    SEQUENCE_MODULUS,
    UNKNOWN_INCARNATION,
    AmHeader,
    Answer,
    Reason,
    newer,
    pack_channel,
    unpack_channel,
)

__all__ = ["Transport"]

AM_HEADER_WORDS, ANSWER_WORDS = AM_HEADER_BYTES // 4, ANSWER_BYTES // 4


class Transport(SendHalf):
    """The channels of one card to and from all others.

    The arguments and the calls to send are those of `SendHalf`. Here are those to receive.
    """

    def __init__(self, config: VirtualNetworkConfig, *, node: int, incarnation: int = 1) -> None:
        super().__init__(config, node=node, incarnation=incarnation)
        self._absent: dict[int, dict[int, None]] = {}

    def arrived(self, header: Header, words: Sequence[int]) -> Packet | Fresh | None:
        """A packet has come, whole: its header and the words behind it, 16 at most.

        Returns an answer to be sent, a message to be delivered or refused (`answer`), or None.
        """
        row = self._row(header.source)
        column, void = unpack_channel(header.bandwidth)
        least = ANSWER_WORDS if header.kind in (Kind.ACK, Kind.NACK) else AM_HEADER_WORDS
        if row is None or column >= self.config.columns or min(len(words), header.length // 4) < least:
            self.drops["malformed"] += 1
            return None
        if header.kind is Kind.DATA:
            return self._data(row, header, words, column, void)
        if header.kind in (Kind.ACK, Kind.NACK):
            self._answered(row, header, Answer.unpack(words), row.send[column])
        else:
            self.drops["malformed"] += 1
        return None

    def answer(self, fresh: Fresh, reason: Reason) -> Packet | None:
        """The firmware has delivered a message (DELIVERED), or refuses it. Returns the answer to be sent, if any.

        Raises ValueError for a message that was answered before.
        """
        slot = fresh.slot
        assert isinstance(slot, ReceiveChannel)
        if not self.config.reliability:
            return None
        if not slot.open:
            raise ValueError(f"message of node {fresh.node}: it was answered before")
        slot.open = False
        sequence = (slot.last + 1) % SEQUENCE_MODULUS
        if reason in FINAL_REASONS:
            slot.last, slot.fate = sequence, reason
        row = self._rows[fresh.node]
        if row.receive[slot.column] is not slot:
            return None  # its card was started again meanwhile
        if reason is Reason.NOT_RESIDENT:
            self._absent.setdefault(fresh.endpoint, {})[row.node] = None
        return self._reply(row, slot.column, sequence, fresh.header, reason)

    def missed(self, endpoint: int) -> bool:
        """Whether packets for an endpoint were refused as it was absent since it was loaded the last time."""
        return endpoint in self._absent

    def loaded(self, endpoint: int) -> list[Packet]:
        """An endpoint is resident, or no more: answers to the cards whose packets were refused, one for each.

        They send all that they have for it. If such an answer is lost, a scan sends a packet again.
        """
        return [
            self._reply(
                self._rows[node], 0, endpoint, AmHeader(incarnation=self._rows[node].peer), Reason.RESIDENT
            )
            for node in self._absent.pop(endpoint, {})
        ]

    def _forget(self, node: int) -> None:
        """Nothing of a card waits for an endpoint that is absent."""
        for endpoint in [one for one, nodes in self._absent.items() if node in nodes]:
            del self._absent[endpoint][node]
            if not self._absent[endpoint]:
                del self._absent[endpoint]

    def _data(
        self, row: Row, header: Header, words: Sequence[int], column: int, void: bool
    ) -> Packet | Fresh | None:
        slot = row.receive[column]
        if not self.config.reliability:
            fresh = self._fresh(row, header, words, slot)
            self.drops["malformed"] += fresh is None
            return fresh
        stamp, incarnation, expected = words[5], words[6] & 0xFFFF, words[6] >> 16
        said = AmHeader(stamp=stamp, incarnation=incarnation, expected=expected)
        if not self._meet(row, incarnation):
            return None
        slot = row.receive[column]
        if expected != self.incarnation:
            return self._reply(row, column, header.sequence, said, Reason.RESTARTED)
        distance = (header.sequence - slot.last) % SEQUENCE_MODULUS
        if distance == 0:
            return self._reply(row, column, header.sequence, said, slot.fate)
        if distance != 1 or slot.open:
            self.drops["copy" if slot.open else "stale"] += 1
            return None
        fresh = None if void else self._fresh(row, header, words, slot)
        if fresh is not None:
            slot.open = True
            return fresh
        slot.last, slot.fate = header.sequence, Reason.VOID if void else Reason.BAD_MESSAGE
        return self._reply(row, column, header.sequence, said, slot.fate)

    def _fresh(self, row: Row, header: Header, words: Sequence[int], slot: ReceiveChannel) -> Fresh | None:
        """The message in a packet; None if its words make no sense."""
        try:
            found = AmHeader.unpack(words)
        except ValueError:
            return None
        end = AM_HEADER_WORDS + found.words
        if len(words) < end or header.length != 4 * end + found.bytes:
            return None
        return Fresh(
            node=row.node,
            endpoint=header.flow,
            header=found,
            words=tuple(words[AM_HEADER_WORDS:end]),
            slot=slot,
        )

    def _reply(self, row: Row, column: int, sequence: int, said: AmHeader, reason: Reason) -> Packet:
        """The answer to a packet with these words."""
        header = Header(
            kind=Kind.ACK if reason in (Reason.DELIVERED, Reason.VOID) else Kind.NACK,
            destination=row.node,
            source=self.node,
            flow=reason,
            bandwidth=pack_channel(column),
            sequence=sequence,
            length=ANSWER_BYTES,
        )
        answer = Answer(stamp=said.stamp, incarnation=self.incarnation, expected=said.incarnation)
        return Packet(header=header, words=answer.pack())

    def _answered(self, row: Row, header: Header, answer: Answer, channel: SendChannel) -> None:
        """An answer has come."""
        if answer.expected != self.incarnation:
            self.drops["stale"] += 1
            return
        peer = row.peer
        if not self._meet(row, answer.incarnation) or row.peer != peer:
            return
        row.answers()
        try:
            reason = Reason(header.flow)
        except ValueError:
            self.drops["malformed"] += 1
            return
        if reason is Reason.RESIDENT:
            self._invited(row, header.sequence)
        elif header.sequence != channel.sequence or (channel.known and not channel.waits):
            self.drops["stale"] += 1
        elif reason in FINAL_REASONS:
            self._settled(channel, reason)
        elif reason in (Reason.NO_BUFFER, Reason.NOT_RESIDENT):
            channel.tries = 0
            self._refused(channel, answer.stamp, reason)
        else:
            self.drops["stale"] += 1

    def _meet(self, row: Row, incarnation: int) -> bool:
        """A packet of this incarnation of a card has come. Returns whether it is the present one, which may be new."""
        if newer(incarnation, row.peer):
            self._forget(row.node)
            self._restart(row, incarnation)
        elif incarnation != row.peer or incarnation == UNKNOWN_INCARNATION:
            self.drops["stale"] += 1
            return False
        return True
