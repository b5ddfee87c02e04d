"""Messages out: posted entries to the transport, its packets to the send engine, and the messages that come back.

The transport has a copy of each message, of checked words: what a process writes into its page later touches nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..accesses import Reading
from .card.engines import Move, Outgoing
from .card.script import Script
from .delivery import Delivery
from .endpoints import Frame
from .layout import PageWord, Queue
from .mailbox import Notices
from .messages import Ending, Message, Outcome, Packet
from .state import AmState, header_words
from .transport import Transport
from .wire import AmHeader, MessageKind, Reason
from .words import ENTRY_WORDS, Entry, pack_pair

__all__ = ["Sender"]

MARGIN_TICKS = 8
"""Least lead with which TIMER is armed, so that RTC cannot pass the value before it is written."""


@dataclass(frozen=True)
class _Place:
    """The entry of a message: frame, whether it is a reply, and its place in the queue."""

    frame: Frame
    reply: bool
    place: int


class Sender:
    """The way out. The loop calls `work` in each pass, `timer` when TIMER rings, and the receiver `answer`.

    A packet is built in a send buffer. Data come there by host DMA from the staging slot of their entry; then the send
    engine has it. So with several buffers the next packet's data come while one is being sent.

    What is for the card itself needs no network and no route. In the next pass `loop_back(buffer, words, sent)` takes a
    packet out of its send buffer, and calls `sent` when that is free. Its answers come back likewise.
    """

    def __init__(self, state: AmState, transport: Transport, delivery: Delivery, notices: Notices) -> None:
        self.state, self.transport, self.delivery, self.notices = state, transport, delivery, notices
        self._buffers = deque(state.send_buffers)
        self._answers: dict[tuple[int, int, int], Packet] = {}
        self._armed = False
        self.loop_back: Callable[[int, list[int], Callable[[], None]], None]
        state.send.answer = self._next_answer

    # Turns.

    def loiter(self) -> int:
        """Looks to be made before the turn goes to another endpoint (`Turns.loiter`)."""
        if not self._buffers or self.transport.ready:
            return 0
        return self.state.turns.loiter(self._sendable)

    def work(self, *, attempt: bool) -> None:
        """Build what the transport has due, as far as there are buffers; then let an endpoint make one attempt."""
        while self._buffers and self.transport.ready:
            packet = self.transport.next_packet(self.state.now_ticks)
            if packet is None:
                break
            self._build(packet)
        if attempt and self._buffers and not self.state.looking:
            number = self.state.turns.choose(self._sendable)
            if number is not None:
                self.state.script.pay("turn", int(self.state.turns.turned))
                self._begin(self.state.frames[number])
        self._arm()

    def _sendable(self, number: int) -> bool:
        return self.state.frames[number].sendable

    def _begin(self, frame: Frame) -> None:
        """Read the next entry of an endpoint: one that comes back, else one of its two queues in turn."""
        reply, place, back = frame.next_send()
        words = self._load(frame, reply, place)
        if back:
            self.state.then(lambda: self._give_back(_Place(frame, reply, place), words))
        else:
            self.state.then(lambda: self._post(_Place(frame, reply, place), words))

    def _load(self, frame: Frame, reply: bool, place: int) -> list[Reading]:
        queue = Queue.SEND_REPLY if reply else Queue.SEND_REQUEST
        return self.state.script.load(frame.page + self.state.layout.entry(queue, place), ENTRY_WORDS)

    # Entries to messages.

    def _post(self, at: _Place, readings: list[Reading]) -> None:
        """An entry has been read: check it, and give its message to the transport."""
        state, frame = self.state, at.frame
        if state.config.protection:
            state.script.pay("send_check")
        try:
            entry = Entry.unpack([reading.get() for reading in readings])
        except ValueError:
            self._return(at, Reason.BAD_ENTRY)
            return
        reason = self._refusal(entry)
        if reason is not None:
            self._return(at, reason)
            return
        size = 0 if entry.kind is MessageKind.SHORT else entry.bytes
        header = AmHeader(
            tag=entry.tag,
            source_endpoint=frame.record.endpoint,
            kind=entry.kind,
            reply=at.reply,
            words=len(entry.words),
            handler=entry.handler,
            bytes=size,
            offset=entry.offset if entry.kind is MessageKind.BULK else 0,
            reference=entry.reference,
            reply_tag=frame.record.tag,
        )
        self.transport.offer(
            Message(node=entry.node, endpoint=entry.endpoint, header=header, words=entry.words, context=at)
        )
        frame.activity += 1

    def _refusal(self, entry: Entry) -> Reason | None:
        """Why an entry is not sent; None if it is."""
        there = entry.node in self.state.routes or entry.node == self.state.node
        if not there or entry.node >= self.state.config.nodes_max:
            return Reason.NO_ROUTE
        if entry.kind is not MessageKind.SHORT and entry.bytes > self.state.layout.data_bytes:
            return Reason.TOO_LONG
        return None

    # Packets.

    def _build(self, packet: Packet) -> None:
        """Build a packet in a buffer; its data come by host DMA, then it goes."""
        state, message = self.state, packet.message
        route = 0 if self._is_here(packet) else state.routes.get(packet.header.destination)
        if route is None:
            return  # nobody answers it; the transport finds that out
        buffer = self._buffers.popleft()
        state.script.pay("send_message")
        if state.config.reliability:
            state.script.pay("send_channel")
        words = [*header_words(replace(packet.header, route=route)), *packet.words]
        state.script.store(buffer, words)
        at = message.context if message is not None else None
        if not packet.data_bytes or not isinstance(at, _Place):
            self._send(packet, buffer, words, None)
            return
        frame = at.frame
        frame.moving += 1
        slot = state.layout.slot(reply=at.reply, count=at.place)
        state.script.pay("send_data")
        state.host_dma.moves.append(
            Move(
                host=frame.record.send_staging + state.layout.slot_offset(slot),
                sram=buffer + 4 * len(words),
                bytes=-(-packet.data_bytes // 4) * 4,
                to_host=False,
                done=lambda error: self._fetched(packet, buffer, words, frame, error),
            )
        )

    def _is_here(self, packet: Packet) -> bool:
        return packet.header.destination == self.state.node

    def _fetched(self, packet: Packet, buffer: int, words: list[int], frame: Frame, error: bool) -> None:
        """A packet's data have come. If the bus has failed it does not go, as somebody else's stand there: it is tried
        again, and its message comes back in the end, as UNREACHABLE."""
        if not error:
            self._send(packet, buffer, words, frame)
            return
        self.state.drops["host bus"] += 1
        self._buffers.append(buffer)
        frame.moving -= 1
        self.state.look(frame)

    def _send(self, packet: Packet, buffer: int, words: list[int], frame: Frame | None) -> None:
        def sent() -> None:
            self.state.script.pay("sent")
            self._buffers.append(buffer)
            self.transport.sent(packet)
            if frame is not None:
                frame.moving -= 1
                self.state.look(frame)
            self.ended()

        if self._is_here(packet):
            self.state.then(lambda: self.loop_back(buffer, words, sent))
        else:
            self.state.send.packets.append(Outgoing(address=buffer, bytes=packet.header.length, sent=sent))

    def answer(self, packet: Packet | None) -> None:
        """Send an answer; a later one of the same channel takes its place. One that tells of an endpoint does not."""
        if packet is not None and self._is_here(packet):
            self.state.then(lambda: self._answered(packet))
        elif packet is not None:
            header = packet.header
            told = header.sequence if header.flow == Reason.RESIDENT else -1
            self._answers[header.destination, header.bandwidth, told] = packet

    def _answered(self, packet: Packet) -> None:
        """An answer is for a packet of the card itself."""
        self.state.script.pay("answer_in")
        self.transport.arrived(packet.header, packet.words)
        self.ended()

    def _next_answer(self, script: Script) -> Outgoing | None:
        """Write the answer that has waited longest; None if none waits."""
        state = self.state
        while self._answers:
            packet = self._answers.pop(next(iter(self._answers)))
            route = state.routes.get(packet.header.destination)
            if route is None:
                state.drops["no route"] += 1
                continue
            script.pay("answer")
            address = state.layout.answer_out
            script.store(address, [*header_words(replace(packet.header, route=route)), *packet.words])
            return Outgoing(address=address, bytes=packet.header.length, sent=lambda: None)
        return None

    # Time.

    def timer(self) -> None:
        """Scan for packets to be sent again."""
        self._armed = False
        scanned = self.transport.scan()
        script = self.state.script
        script.pay("scan")
        script.pay("scan_row", scanned.rows)
        script.pay("scan_channel", scanned.channels)
        self.ended()

    def _arm(self) -> None:
        """Have TIMER ring for the next scan, if any packet waits for an answer."""
        if self._armed or not self.transport.scans:
            return
        self._armed = True
        ticks = max(MARGIN_TICKS, self.state.layout.scan_ticks)
        accesses = self.state.script.room(2)
        accesses.copy(accesses.read("RTC"), "TIMER", add=ticks, keep=(1 << self.state.nic.rtc_bits) - 1)

    # Endings.

    def quiesce(self, frame: Frame) -> None:
        """As `frames.Ending`."""
        if frame.killed:
            self.transport.abandon(frame.record.endpoint)
        else:
            self.transport.quiesce(frame.record.endpoint)
        self.ended()

    def resume(self, frame: Frame) -> None:
        """As `frames.Ending`."""
        if not frame.killed:
            self.transport.resume(frame.record.endpoint)

    def missed(self, endpoint: int) -> bool:
        """As `frames.Ending`."""
        return self.transport.missed(endpoint)

    def loaded(self, endpoint: int) -> None:
        """As `frames.Ending`."""
        packets = self.transport.loaded(endpoint)
        self.state.script.pay("scan_channel", len(packets))
        for packet in packets:
            self.answer(packet)

    def ended(self) -> None:
        """Take what has ended from the transport."""
        while (outcome := self.transport.next_outcome()) is not None:
            self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        at = outcome.message.context
        assert isinstance(at, _Place)
        self.state.advance()
        if outcome.ending is Ending.DELIVERED:
            self._done(at)
        elif outcome.ending is Ending.RETURNED:
            if outcome.reason is Reason.UNREACHABLE:
                self.notices.unreachable(outcome.message.node)
            self._return(at, outcome.reason)
        else:
            at.frame.sends[at.reply].again(at.place)
            self.state.look(at.frame)

    def _done(self, at: _Place) -> None:
        """An entry's message has its fate."""
        frame = at.frame
        if frame.sends[at.reply].done(at.place):
            taken = pack_pair(frame.sends[0].taken, frame.sends[1].taken)
            self.state.script.store(frame.page + 4 * PageWord.TAKEN, [taken])
        self.state.look(frame)

    def _return(self, at: _Place, reason: Reason) -> None:
        """A message is to come back: note why in its entry, until the reply queue has room and its turn comes."""
        frame = at.frame
        queue = Queue.SEND_REPLY if at.reply else Queue.SEND_REQUEST
        self.state.script.store(frame.page + self.state.layout.entry(queue, at.place) + 8, [int(reason)])
        frame.sends[at.reply].returns(at.place)
        self.state.look(frame)

    def _give_back(self, at: _Place, readings: list[Reading]) -> None:
        """Put a message that comes back into its endpoint's queue of replies received."""
        state, frame, layout = self.state, at.frame, self.state.layout
        words = [reading.get() for reading in readings]
        state.script.pay("return")
        replies = frame.receives[1]
        count = replies.grant()
        reason = words[2] & 0xFF or int(Reason.BAD_ENTRY)
        words[2] = reason
        words[3] = (words[3] & 0xFFF) | at.reply << 12
        words[5] = layout.slot(reply=at.reply, count=at.place)
        state.script.store(frame.page + layout.entry(Queue.RECEIVE_REPLY, count), words)
        self.delivery.complete(frame, True, count)
        self._done(at)
        state.advance()
