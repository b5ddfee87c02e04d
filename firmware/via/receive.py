"""A message's way in: its packets, the descriptor that takes it, memory of this end that the other one writes or reads.

A message for which there is no adequate descriptor, or that may not touch what it names, changes nothing. It is dropped
and counted, or ends the connection, as the level says (specification 2.5).
"""

from __future__ import annotations

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header, Kind

from ..accesses import AccessList
from .agent import Agent
from .config import WORD_BYTES
from .connection import Connection
from .descriptor import CONTROL_BYTES, TAIL_OFFSET, Segment
from .engines import Move, Transfer, cut
from .layout import AGENT_CHANNEL, HEADER_BYTES, RegionFlag, Reliability, ViRecord
from .stages import Stages
from .state import Inbound, Key, ReadRequest, Vi
from .trace import Stage
from .wire import VIA_HEADER_BYTES, PacketOp, ViaHeader, next_number, read_header, sender_channel

__all__ = ["Receiving"]

OK = CompletionStatus.OK
NO_DESCRIPTOR, REMOTE_ACCESS = CompletionStatus.NO_DESCRIPTOR, CompletionStatus.REMOTE_ACCESS
PAYLOAD = HEADER_BYTES + VIA_HEADER_BYTES
HEAD_WORDS = PAYLOAD // WORD_BYTES
_REASONS = frozenset({NO_DESCRIPTOR, REMOTE_ACCESS, CompletionStatus.TRANSPORT})
"""How a message may be refused."""
_DROPS = {NO_DESCRIPTOR: "no descriptor", REMOTE_ACCESS: "remote access"}


class Receiving:
    """Packets in, by the engines of `stages`. A packet that is dropped is counted in `ViaContext.drops`:

    - `misrouted`: it is for another node.
    - `unknown`: it is no packet of VIA, or makes no sense.
    - `closed`: its VI is not connected.
    - `stranger`: it comes from somebody else than the VI's other end, or from a connection of before.
    - `lost`: a message before it, or a part of its own, has not come.
    - `partial`: a message of which a part is lost.
    - `no descriptor`: nothing adequate was posted for it.
    - `descriptor`: the descriptor posted for it was a bad one, or too small.
    - `remote access`: it names memory that the other end may not touch.
    """

    def __init__(self, stages: Stages, connection: Connection, agent: Agent) -> None:
        self.stages, self.connection, self.agent = stages, connection, agent
        self.context, self.engines, self.processor = stages.context, stages.engines, stages.processor
        self.layout = stages.layout

    async def take(self, buffer: int, came_cycle: int | None = None) -> None:
        """Take in the packet in a buffer, and arm the buffer again as soon as may be.

        `came_cycle`: when the packet had come, if the firmware knows; for the trace.
        """
        context, trace = self.context, self.context.trace
        begin, armed = context.clock(), False
        accesses = AccessList()
        words = accesses.load(buffer, HEAD_WORDS)
        record: ViRecord | None = None
        async with self.processor.step("packet", accesses=accesses):
            seen = [word.get() for word in words]
            half = HEADER_BYTES // WORD_BYTES
            header = read_header(sum(word << 32 * i for i, word in enumerate(seen[:half])))
            via = ViaHeader.unpack(seen[half:])
            known = AGENT_CHANNEL < header.flow < context.nic.channels
            vi = context.vi(header.flow) if known else None
            if vi is not None:
                record = await self.stages.look_up(vi)
        context.advance()
        found = trace.message(header.flow, via.number, receive=True)
        trace.span(found, Stage.FOUND, begin if came_cycle is None else came_cycle)
        if header.destination != context.node:
            context.drops["misrouted"] += 1
        elif header.flow == AGENT_CHANNEL and header.kind is Kind.DATA:
            await self.agent.packet(header, buffer)
        elif reason := self._refusal(header, via, record):
            context.drops[reason] += 1
        else:
            assert vi is not None and record is not None
            context.doing = f"takes in a message for channel {vi.channel}"
            armed = await self._packet(vi, record, header, via, buffer)
        if not armed:
            await self.engines.rearm(buffer)

    def _refusal(self, header: Header, via: ViaHeader, record: ViRecord | None) -> str:
        """Why a packet for this node is dropped whatever its VI does; "" if it is not."""
        if header.kind not in (Kind.DATA, Kind.ACK, Kind.NACK):
            return "unknown"
        if header.kind is Kind.NACK and via.status not in _REASONS:
            return "unknown"
        if record is None:
            return "closed"
        sender = header.source, sender_channel(header.sequence), via.connection
        if sender != (record.node, record.channel, record.connection):
            return "stranger"
        size = data_bytes(header, via)
        odd = via.immediate_bytes > self.context.config.immediate_bytes or via.immediate_bytes % WORD_BYTES
        end = via.offset + size
        if size < 0 or end > via.length or (via.last and end < via.length) or odd:
            return "" if header.kind is not Kind.DATA or via.op is PacketOp.READ_REQUEST else "unknown"
        return ""

    async def _packet(
        self,
        vi: Vi,
        record: ViRecord,
        header: Header,
        via: ViaHeader,
        buffer: int,
        stamp: int | None = None,
    ) -> bool:
        """A packet of a VI's other end. `stamp` orders the moves of its message; None is the present time.

        Returns whether its buffer is armed again: it may have the next packet then.
        """
        if header.kind is Kind.ACK:
            await self.connection.acknowledged(vi, via.number)
        elif header.kind is Kind.NACK:
            await self.connection.refused(vi, via.number, CompletionStatus(via.status))
        elif via.op is PacketOp.READ_ANSWER:
            await self._read_answer(vi, via, data_bytes(header, via), buffer)
        elif via.op is PacketOp.READ_REQUEST:
            if await self._in_order(vi, via):
                vi.expected = next_number(via.number)
                await self._read_request(vi, record, via, buffer)
        elif await self._in_order(vi, via):
            return await self._data(vi, record, via, data_bytes(header, via), buffer, stamp)
        return False

    async def _in_order(self, vi: Vi, via: ViaHeader) -> bool:
        """Whether a packet is the next one of its message, or its message the next one.

        On an unreliable connection a message that begins later than expected is the next one, and those before it are
        lost.
        """
        inbound = vi.inbound
        if inbound is not None and inbound.goes_on(via):
            return True
        if inbound is not None:
            await self.connection.lost(vi)
        if via.offset == 0 and via.number == vi.expected:
            return not vi.broken
        self.context.drops["lost"] += 1
        if vi.reliable:
            await self.connection.refuse(vi, via.number, CompletionStatus.TRANSPORT)
        return via.offset == 0 and not vi.reliable

    async def _data(
        self, vi: Vi, record: ViRecord, via: ViaHeader, size: int, buffer: int, stamp: int | None
    ) -> bool:
        """A packet of a message that is sent, or written into this end's memory, and is in order.

        Returns as `_packet`.
        """
        context = self.context
        inbound = vi.inbound
        if inbound is None:
            key = Key(vi.channel, via.number, receive=True)
            inbound = vi.inbound = Inbound(via, key, context.clock(), stamp)
            vi.expected = next_number(via.number)
            if not await self._begin(vi, record, inbound, via, size, buffer):
                return False
            if not via.last:
                await self.connection.watch_inbound(vi, inbound)
        inbound.touched_cycle = context.clock()
        if inbound.refused != OK:
            status = inbound.refused
        else:
            if via.last and via.op is PacketOp.SEND:
                # What is written into this end's memory has come when it was found to be allowed.
                self.connection.acknowledge(vi, via.number, Reliability.RELIABLE_DELIVERY)
            place, ahead = inbound.offset, via.immediate_bytes if via.last else 0
            status = await self._up(vi, inbound, via, place, size, buffer + PAYLOAD + ahead)
        if vi.inbound is not inbound:
            return False  # its connection has ended meanwhile
        inbound.offset += size
        if status not in (OK, inbound.refused):
            await self._refuse(vi, inbound, status)
        if not via.last or vi.inbound is not inbound:
            return False
        vi.inbound = None
        if inbound.refused != OK:
            return False
        await self._end(vi, record, inbound, via, buffer)
        return True

    async def _begin(
        self, vi: Vi, record: ViRecord, inbound: Inbound, via: ViaHeader, size: int, buffer: int
    ) -> bool:
        """A message's first packet: find out whether it may come, and where it goes.

        Returns whether there is anything more to do for it.
        """
        status = OK
        takes = via.op is PacketOp.SEND or via.immediate_bytes > 0
        if takes and not vi.receive.waiting:
            await self.engines.hear(vi)
        if takes and not vi.receive.waiting:
            status = NO_DESCRIPTOR
        elif via.op is PacketOp.RDMA_WRITE:
            status = await self._remote(vi, via, RegionFlag.RDMA_WRITE, record.rdma_write, size, buffer)
        if status == OK and takes:
            inbound.index = index = vi.receive.take()
            if via.op is PacketOp.SEND:
                found, status = await self.stages.descriptor(
                    vi.receive, record, index, inbound.key, stamp=inbound.stamp
                )
                inbound.descriptor = found
                if status == OK and found.data_bytes < via.length:
                    status = CompletionStatus.TOO_LONG
        if vi.inbound is not inbound:
            return False
        if status != OK:
            await self._refuse(vi, inbound, status)
            if via.last and vi.inbound is inbound:
                vi.inbound = None
        return vi.inbound is inbound

    async def _remote(
        self, vi: Vi, via: ViaHeader, flag: RegionFlag, enabled: bool, size: int, buffer: int
    ) -> CompletionStatus:
        """Whether the other end may touch the memory that it names; what the card finds out by itself comes later.

        A VI and a region must both allow it. The last byte of a message of several packets is tried.
        """
        region = via.tag & 0xFF
        if not enabled or region >= self.context.nic.regions or via.address + via.length > 1 << 32:
            return REMOTE_ACCESS
        accesses = AccessList()
        (flags,) = accesses.load(self.layout.region_flag(region))
        async with self.processor.step("remote", accesses=accesses):
            allowed = flags.get() & flag
        if not allowed:
            return REMOTE_ACCESS
        if via.length > size:
            # Where the packet's immediate data would be there is room for a word, in whatever packet.
            key = Key(vi.channel, via.number, receive=True)
            scratch = self.layout.probe
            status = await self.stages.in_region(vi, via.tag, via.address, via.length, scratch, key)
            return OK if status == OK else REMOTE_ACCESS
        return OK

    async def _up(
        self, vi: Vi, inbound: Inbound, via: ViaHeader, place: int, size: int, sram: int
    ) -> CompletionStatus:
        """Stages 5 and 6: a packet's data to memory."""
        if via.op is PacketOp.RDMA_WRITE:
            segments = [Segment(via.address + place, via.tag, size)] if size else []
        else:
            assert inbound.descriptor is not None
            segments = cut(inbound.descriptor.segments, place, size)
        status = await self.stages.move(
            vi, segments, sram, key=inbound.key, to_host=True, step="program_up", stamp=inbound.stamp
        )
        return REMOTE_ACCESS if status != OK and via.op is PacketOp.RDMA_WRITE else status

    async def _refuse(self, vi: Vi, inbound: Inbound, status: CompletionStatus) -> None:
        """Throw a message away: count it, tell the end of the descriptor that it has taken, or end the connection."""
        inbound.refused = status
        self.context.drops[_DROPS.get(status, "descriptor")] += 1
        await self.stages.end_receive(vi, inbound, status)
        if vi.reliable:
            vi.inbound = None
            # A fault of this end's descriptor is a missing descriptor to the other end.
            theirs = REMOTE_ACCESS if status == REMOTE_ACCESS else NO_DESCRIPTOR
            await self.connection.refuse(vi, inbound.number, theirs)

    async def _end(self, vi: Vi, record: ViRecord, inbound: Inbound, via: ViaHeader, buffer: int) -> None:
        """A message has come as a whole: arm its buffer, then tell."""
        if via.op is PacketOp.RDMA_WRITE:
            self.connection.acknowledge(vi, inbound.number, Reliability.RELIABLE_DELIVERY)
        self.connection.acknowledge(vi, inbound.number, Reliability.RELIABLE_RECEPTION)
        status = OK
        if via.immediate_bytes and inbound.index is not None:
            good = CompletionStatus.IMMEDIATE if via.op is PacketOp.SEND else CompletionStatus.WRITTEN
            status = await self._tail(vi, record, inbound, via.immediate_bytes, buffer)
            status = good if status == OK else status
        await self.engines.rearm(buffer)
        await self.stages.end_receive(vi, inbound, status)

    async def _tail(
        self, vi: Vi, record: ViRecord, inbound: Inbound, size: int, buffer: int
    ) -> CompletionStatus:
        """Write immediate data into the receive descriptor: its tail, and behind it its area, if it has one.

        They stand behind the packet's VIA header, whose place the tail takes.
        """
        assert inbound.index is not None
        area = size if self.layout.form.area_bytes else 0
        tail = buffer + HEADER_BYTES
        accesses = AccessList()
        (first,) = accesses.load(buffer + PAYLOAD)
        async with self.processor.step("tail", accesses=accesses):
            rest = AccessList()
            rest.store(tail, size, first.get(), inbound.offset, 0)
            await self.processor.carry_out(rest)
        slot = self.stages.slot(vi.receive, record, inbound.index)
        assert TAIL_OFFSET + VIA_HEADER_BYTES == CONTROL_BYTES
        move = Move(address=slot + TAIL_OFFSET, sram=tail, bytes=VIA_HEADER_BYTES + area, to_host=True)
        stages = (Stage.PROGRAM_DATA, Stage.DATA)
        return await self.engines.move(
            Transfer(moves=[move], step="program_tail", key=inbound.key, stages=stages)
        )

    async def _read_request(self, vi: Vi, record: ViRecord, via: ViaHeader, buffer: int) -> None:
        """The other end asks for memory: answered by whoever sends, if it may."""
        status = await self._remote(vi, via, RegionFlag.RDMA_READ, record.rdma_read, 0, buffer)
        if vi.broken or vi.record is None:
            return
        if status == OK and vi.reliable and len(vi.reads) < self.context.config.queue_entries:
            vi.reads.append(ReadRequest(via.number, via.tag, via.address, via.length))
            self.context.answer(vi)
            return
        self.context.drops["remote access"] += 1
        if vi.reliable:
            await self.connection.refuse(vi, via.number, REMOTE_ACCESS)

    async def _read_answer(self, vi: Vi, via: ViaHeader, size: int, buffer: int) -> None:
        """A packet of memory of the other end for which a descriptor of this one has asked."""
        message = next((one for one in vi.under_way if one.number == via.number), None)
        if (
            message is None
            or message.done
            or not message.descriptor.is_read
            or (message.read, message.descriptor.data_bytes) != (via.offset, via.length)
        ):
            self.context.drops["lost"] += 1
            return
        message.read += size
        status = await self.stages.move(
            vi,
            cut(message.descriptor.segments, via.offset, size),
            buffer + PAYLOAD,
            key=message.key,
            to_host=True,
            step="program_up",
        )
        if message.gone:
            return
        if status != OK:
            await self.connection.end(vi, status, failed=message)
        elif via.last:
            # Messages that were acknowledged behind it may be told, and one that its fence held back may go.
            await self.stages.end_send(message, OK)


def data_bytes(header: Header, via: ViaHeader) -> int:
    """Bytes of a message in a packet, beside headers and immediate data; below 0 for one that makes no sense."""
    return header.length - VIA_HEADER_BYTES - (via.immediate_bytes if via.last else 0)
