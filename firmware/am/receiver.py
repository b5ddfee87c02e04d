"""Packets in: checked, delivered into an endpoint's page and its host memory, answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanikai.hdl.packet import Header, Kind

from .card.engines import Move
from .delivery import Delivery
from .endpoints import Frame
from .layout import HEADER_BYTES, Queue
from .mailbox import Notices
from .messages import Fresh
from .sender import Sender
from .state import AmState
from .transport import Transport
from .wire import MessageKind, Reason
from .words import Entry

__all__ = ["Receiver"]

HEADER_WORDS = HEADER_BYTES // 4


@dataclass(frozen=True)
class _Taken:
    """A message that has an entry: its frame, the count of the entry, the receive buffer with its packet."""

    fresh: Fresh
    frame: Frame
    count: int
    buffer: int


class Receiver:
    """The way in. The loop calls `take` with each packet.

    A message changes nothing before all of it has been checked. Then its data go to the staging slot of its entry, its
    entry to the page, the count of messages after it, and last the acknowledgement to its sender. Bulk data take the
    same way: the process copies them into its segment ("currently built using medium messages", chun-1998 3.1).
    """

    def __init__(
        self, state: AmState, transport: Transport, sender: Sender, delivery: Delivery, notices: Notices
    ) -> None:
        self.state, self.transport, self.sender = state, transport, sender
        self.delivery, self.notices = delivery, notices
        self._sent: dict[int, Callable[[], None]] = {}
        sender.loop_back = self._loop_back

    def _loop_back(self, buffer: int, words: list[int], sent: Callable[[], None]) -> None:
        self._sent[buffer] = sent
        self.take(buffer, words)

    def take(self, buffer: int, words: Sequence[int]) -> None:
        """A packet is in a receive buffer; `words` are its header and what has been read behind it."""
        state = self.state
        try:
            header = Header.unpack(sum(word << 32 * at for at, word in enumerate(words[:HEADER_WORDS])))
        except ValueError:
            header = Header(kind=Kind.REJECT)
        if header.kind is Kind.PROBE:
            self.notices.raw(header, buffer, lambda: self._free(buffer))
            return
        if header.destination != state.node or header.kind not in (Kind.DATA, Kind.ACK, Kind.NACK):
            state.drops["misrouted" if header.kind in (Kind.DATA, Kind.ACK, Kind.NACK) else "unknown"] += 1
            self._free(buffer)
            return
        reliable = state.config.reliability
        if header.kind is Kind.DATA:
            state.script.pay("receive_message")
            state.script.pay("receive_channel", int(reliable))
        else:
            state.script.pay("answer_in")
        behind = words[HEADER_WORDS:]
        found = self.transport.arrived(header, behind[: -(-header.length // 4)])
        if isinstance(found, Fresh):
            self._deliver(found, buffer)
        else:
            self.sender.answer(found)
            self._free(buffer)
        self.sender.ended()

    def _deliver(self, fresh: Fresh, buffer: int) -> None:
        """A message that has not come before."""
        frame = self.state.at_home(fresh.endpoint)
        if self.state.config.protection:
            self.state.script.pay("receive_check")
        reason = self._refusal(fresh, frame)
        if reason is not Reason.DELIVERED or frame is None:
            self._end(fresh, buffer, reason)
            return
        reply, size, layout = fresh.header.reply, fresh.header.bytes, self.state.layout
        taken = _Taken(fresh, frame, frame.receives[reply].grant(), buffer)
        if not size:
            self._write(taken)
            return
        self.state.script.pay("receive_data")
        frame.moving += 1
        slot = layout.slot(reply=reply, count=taken.count)
        self.state.host_dma.moves.append(
            Move(
                host=frame.record.receive_staging + layout.slot_offset(slot),
                sram=buffer + HEADER_BYTES + fresh.data_offset,
                bytes=-(-size // 4) * 4,
                to_host=True,
                done=lambda error: self._moved(taken, error),
            )
        )

    def _refusal(self, fresh: Fresh, frame: Frame | None) -> Reason:
        """Why a message is refused; DELIVERED if it is not."""
        state, header = self.state, fresh.header
        if fresh.endpoint not in state.known:
            return Reason.NO_ENDPOINT
        if frame is None:
            if fresh.endpoint not in state.resident:
                self.notices.fault(fresh.endpoint)
            return Reason.NOT_RESIDENT
        if state.config.protection and header.tag != frame.record.tag:
            return Reason.WRONG_TAG
        if header.bytes > state.layout.data_bytes:
            return Reason.TOO_LONG
        if header.kind is MessageKind.SHORT and header.bytes:
            return Reason.BAD_MESSAGE
        if header.kind is MessageKind.BULK and self._outside(fresh, frame):
            return Reason.OUTSIDE
        return Reason.DELIVERED if self._admits(fresh, frame) else Reason.NO_BUFFER

    def _admits(self, fresh: Fresh, frame: Frame) -> bool:
        """Whether the queue has an entry that is not kept for others."""
        state, reply = self.state, fresh.header.reply
        room, queue = frame.receives[reply].room, (fresh.endpoint, reply)
        if not room or state.places.notes(queue):
            state.script.pay("line")
        return state.places.admits(queue, (fresh.node, fresh.header.source_endpoint), room, state.now_ticks)

    def _outside(self, fresh: Fresh, frame: Frame) -> bool:
        """Whether bulk data are not all inside the segment, into which the process copies them."""
        return fresh.header.offset + fresh.header.bytes > frame.record.segment_bytes

    def _moved(self, taken: _Taken, error: bool) -> None:
        """A message's data are in host memory, or the bus has failed. Then the message goes back to its sender.

        Its entry cannot be given to another one, as later ones may have come: the process is told that it is empty.
        """
        taken.frame.moving -= 1
        self._write(taken, Reason.HOST_BUS if error else Reason.DELIVERED)

    def _write(self, taken: _Taken, status: Reason = Reason.DELIVERED) -> None:
        """Write a message's entry, then show it."""
        fresh, frame, layout = taken.fresh, taken.frame, self.state.layout
        header = fresh.header
        entry = Entry(
            node=fresh.node,
            endpoint=header.source_endpoint,
            kind=header.kind,
            tag=header.reply_tag,
            status=status if status is Reason.DELIVERED else Reason.VOID,
            handler=header.handler,
            bytes=header.bytes,
            slot=layout.slot(reply=header.reply, count=taken.count),
            offset=header.offset,
            reference=header.reference,
            words=fresh.words,
        )
        queue = Queue.RECEIVE_REPLY if header.reply else Queue.RECEIVE_REQUEST
        self.state.script.store(frame.page + layout.entry(queue, taken.count), entry.pack())
        self.delivery.complete(frame, header.reply, taken.count)
        self._end(fresh, taken.buffer, status)
        self.state.look(frame)

    def _end(self, fresh: Fresh, buffer: int, reason: Reason) -> None:
        """Answer a message, and give its buffer back."""
        if reason is not Reason.DELIVERED:
            self.state.drops[reason.name.lower()] += 1
        self.sender.answer(self.transport.answer(fresh, reason))
        self._free(buffer)

    def _free(self, buffer: int) -> None:
        """A packet's buffer is free: a receive buffer, or a send buffer of a packet of the card's own."""
        if (sent := self._sent.pop(buffer, None)) is not None:
            sent()
        else:
            self.state.receive.free.append(buffer)
