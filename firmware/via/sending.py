"""A message's way out: descriptor, data, packets; and answers to the other end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header, Kind

from .config import WORD_BYTES
from .connection import Connection
from .descriptor import Descriptor, Op, Segment
from .engines import PacketOut, cut
from .layout import HEADER_BYTES, Reliability, ViRecord
from .stages import Stages
from .state import Key, Outgoing, ReadRequest, Vi
from .trace import Stage
from .wire import VIA_HEADER_BYTES, PacketOp, ViaHeader, next_number, pack_sequence

__all__ = ["Sending"]

OK = CompletionStatus.OK
_OPS = {Op.SEND: PacketOp.SEND, Op.RDMA_WRITE: PacketOp.RDMA_WRITE, Op.RDMA_READ: PacketOp.READ_REQUEST}


class Sending:
    """Messages out, and answers, by the engines of `stages`."""

    def __init__(self, stages: Stages, connection: Connection) -> None:
        self.stages, self.connection = stages, connection
        self.context, self.engines, self.processor = stages.context, stages.engines, stages.processor
        self.layout = stages.layout

    async def send(self, vi: Vi, *, take_stamp: Callable[[], int | None] = lambda: None) -> None:
        """Send the next message of a VI, if it has one that may go.

        `take_stamp` takes its place in the order of the design. It is called only when the message begins: the stamp of
        one that may not go yet stays that message's.

        The descriptor's end is told when the last packet is gone. On a reliable connection it is told when the other
        end has answered; an error ends such a connection.
        """
        stages, context = self.stages, self.context
        async with self.processor.step("record"):
            record = await stages.look_up(vi)
        if record is None:
            vi.send.drop()  # rung before the connection, or as it is closed
            return
        if vi.held is not None:
            message, vi.held = vi.held, None
            await self._go(message, record)
            return
        if not context.may_send(vi):
            return
        stamp = take_stamp()
        message = Outgoing(vi, vi.send.take())
        message.stamp = stamp
        vi.under_way.append(message)
        traced = context.trace.message(vi.channel, message.index, receive=False)
        if (found := traced.end(Stage.FOUND)) is not None:
            context.trace.span(traced, Stage.WAIT, found)
        context.doing = f"sends a message of channel {vi.channel}"
        message.descriptor, status = await stages.descriptor(
            vi.send, record, message.index, message.key, stamp=stamp
        )
        if message.gone:
            return
        if status == OK:
            status = refusal(message.descriptor, record)
        if status != OK:
            await self._failed(message, status)
        elif message.descriptor.fence and vi.reading:
            vi.held = message
        else:
            await self._go(message, record)

    async def _go(self, message: Outgoing, record: ViRecord) -> None:
        """Send a message whose descriptor is a good one."""
        vi, descriptor = message.vi, message.descriptor
        if descriptor.op == Op.RDMA_READ:
            buffer = await self.engines.send_buffer(key=message.key, last=True, stamp=message.stamp)
            await self.engines.turn(buffer)
            message.number = self._number(vi)
            await self._packet(message, record, buffer, 0, 0, last=True)
            await self.connection.watch(message)
            return
        immediate = descriptor.immediate or b""
        room, length, offset, last = self.layout.fragment_bytes, descriptor.data_bytes, 0, False
        while not last:
            size = min(room, length - offset)
            last = offset + size == length and size + len(immediate) <= room
            ahead = len(immediate) if last else 0
            buffer = await self.engines.send_buffer(key=message.key, last=last, stamp=message.stamp)
            at = buffer + HEADER_BYTES + VIA_HEADER_BYTES + ahead
            pieces = cut(descriptor.segments, offset, size)
            status = await self.stages.data(message, record, pieces, at, last=last)
            if status != OK or message.gone:
                await self.engines.free_send_buffer(buffer)
                if not message.gone:
                    await self._failed(message, status)
                return
            await self.engines.turn(buffer)
            if message.number is None:
                message.number = self._number(vi)
            await self._packet(message, record, buffer, offset, size, last=last)
            if message.gone:
                return
            offset += size
        if record.reliability == Reliability.UNRELIABLE:
            await self.stages.end_send(message, OK)
        else:
            await self.connection.watch(message)

    @staticmethod
    def _number(vi: Vi) -> int:
        number, vi.number = vi.number, next_number(vi.number)
        return number

    async def _packet(
        self, message: Outgoing, record: ViRecord, buffer: int, offset: int, size: int, *, last: bool
    ) -> None:
        """Send a packet of a message, whose data are in the buffer."""
        descriptor, remote = message.descriptor, message.descriptor.remote
        immediate = descriptor.immediate or b""
        assert message.number is not None
        via = ViaHeader(
            op=_OPS[descriptor.op],
            last=last,
            immediate_bytes=len(immediate),
            connection=record.connection,
            number=message.number,
            tag=0 if remote is None else remote.handle,
            address=0 if remote is None else remote.address,
            length=descriptor.data_bytes,
            offset=offset,
        )
        data = immediate if last else b""
        await self._send(message.vi, record, buffer, via, size, data, key=message.key, stamp=message.stamp)

    async def _send(
        self,
        vi: Vi,
        record: ViRecord,
        buffer: int,
        via: ViaHeader,
        size: int,
        immediate: bytes = b"",
        *,
        key: Key,
        kind: Kind = Kind.DATA,
        step: str = "program_send",
        stamp: int | None = None,
    ) -> None:
        payload = VIA_HEADER_BYTES + len(immediate) + size
        header = Header(
            kind=kind,
            route=record.route,
            destination=record.node,
            source=self.context.node,
            flow=record.channel,
            length=payload,
            sequence=pack_sequence(vi.channel, via.number),
        )
        words = [*header_words(header), *via.words(), *words_of(immediate)]
        packet = PacketOut(buffer=buffer, payload_bytes=payload, step=step, words=words, key=key, stamp=stamp)
        await self.engines.send_packet(packet)

    async def _failed(self, message: Outgoing, status: CompletionStatus) -> None:
        """A message cannot go, or not as a whole: its descriptor ends, and a reliable connection with it."""
        if message.vi.reliable:
            await self.connection.end(message.vi, status, failed=message)
        else:
            await self.stages.end_send(message, status)

    async def answer(self, vi: Vi) -> None:
        """Send what a VI has to answer: an acknowledgement, a refusal, or memory that the other end reads.

        At most one read is answered; the next one has its turn behind the answers of other VIs.
        """
        record = vi.record
        if record is None:
            return
        if vi.ack is not None:
            number, vi.ack = vi.ack, None
            await self._answer(vi, record, Kind.ACK, number, OK)
        if vi.reads and not vi.broken:
            generation = vi.generation
            await self._read(vi, record, vi.reads.popleft())
            if vi.generation != generation:
                return
            if vi.reads and not vi.broken:
                self.context.answer(vi)
        if vi.refusal is not None:
            (number, status), vi.refusal = vi.refusal, None
            await self._answer(vi, record, Kind.NACK, number, status)

    async def _answer(
        self, vi: Vi, record: ViRecord, kind: Kind, number: int, status: CompletionStatus
    ) -> None:
        via = ViaHeader(status=status, connection=record.connection, number=number)
        key = Key(vi.channel, number, receive=True)
        buffer = await self.engines.send_buffer(key=key, last=True)
        await self._send(vi, record, buffer, via, 0, key=key, kind=kind, step="answer")

    async def _read(self, vi: Vi, record: ViRecord, request: ReadRequest) -> None:
        """Send memory of a VI's process that the other end reads; it was found to be in its region."""
        offset, last, room = 0, False, self.layout.fragment_bytes
        key, generation = Key(vi.channel, request.number, receive=True), vi.generation
        while not last:
            size = min(room, request.length - offset)
            last = offset + size == request.length
            buffer = await self.engines.send_buffer(key=key, last=last)
            status = await self.stages.move(
                vi,
                [Segment(request.address + offset, request.tag, size)] if size else [],
                buffer + HEADER_BYTES + VIA_HEADER_BYTES,
                key=key,
                to_host=False,
                step="program_data",
            )
            if vi.generation != generation or vi.broken or status != OK:
                await self.engines.free_send_buffer(buffer)
                if vi.generation == generation and not vi.broken:
                    await self.connection.refuse(vi, request.number, CompletionStatus.REMOTE_ACCESS)
                return
            via = ViaHeader(
                op=PacketOp.READ_ANSWER,
                last=last,
                connection=record.connection,
                number=request.number,
                length=request.length,
                offset=offset,
            )
            await self._send(vi, record, buffer, via, size, key=key)
            if vi.generation != generation:
                return
            offset += size


def refusal(descriptor: Descriptor, record: ViRecord) -> CompletionStatus:
    """Why a good descriptor may not go by this connection; OK if it may."""
    if descriptor.data_bytes > record.most_bytes:
        return CompletionStatus.TOO_LONG
    if descriptor.op == Op.RDMA_READ and record.reliability == Reliability.UNRELIABLE:
        return CompletionStatus.FORMAT
    remote = descriptor.remote
    # The header has a word for the address: also that of no bytes is one of them.
    if remote is not None and (
        remote.address >= 1 << 32
        or remote.address + descriptor.data_bytes > 1 << 32
        or remote.handle >= 1 << 16
    ):
        return CompletionStatus.REMOTE_ACCESS
    return OK


def header_words(header: Header) -> list[int]:
    """A packet's header as words."""
    bits = header.pack()
    return [bits >> 32 * word & 0xFFFFFFFF for word in range(HEADER_BYTES // WORD_BYTES)]


def words_of(content: bytes) -> Sequence[int]:
    """Bytes, a multiple of 4, as words."""
    return [int.from_bytes(content[i : i + WORD_BYTES], "little") for i in range(0, len(content), WORD_BYTES)]
