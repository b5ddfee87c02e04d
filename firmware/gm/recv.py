"""RECV: packets from the network, their order, their receive tokens; acknowledgements of either kind."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from lanikai.hdl.packet import Header, Kind

from ..accesses import AccessList, Reading
from .context import GmContext
from .layout import (
    HEADER_BYTES,
    NO_TOKEN,
    OPENING_BYTES,
    Event,
    EventKind,
    Opening,
    Purpose,
    SendDescriptor,
    Status,
)
from .state import Assembly, Connection, Packet, Port, ReceiveStream, SendStream, SendToken
from .wire import BEGINNINGS, FIRSTS, OPENINGS, VOIDS, Code, FlowKey, behind, unpack_code, unpack_flow

__all__ = ["Recv"]

FAILURES = {
    Code.CLOSED_PORT: Status.CLOSED_PORT,
    Code.UNKNOWN_PORT: Status.UNKNOWN_PORT,
    Code.TOO_LONG: Status.TOO_LONG,
    Code.NOT_EXPOSED: Status.NOT_EXPOSED,
    Code.NO_FLOW: Status.NO_FLOW,
}
"""Negative acknowledgements that fail a message, and the status with which it ends."""


class Recv:
    """The RECV state machine.

    The receive engine holds one buffer: it is armed with the next one before the packet is looked at.

    - `free_buffers`: receive buffers that hold nothing.
    - `armed`: the engine's buffer, if it has one.
    - `dropped`: number of packets from nodes without a route, for another node (the CRC leaves out the way), or of
      another protocol.
    """

    def __init__(self, program: GmContext) -> None:
        self._program = program
        self._processor = program.processor
        self.free_buffers = deque(program.layout.receive_buffers)
        self.armed: int | None = None
        self.dropped = 0
        self._buffer = 0
        self._header: list[Reading] = []

    def arm(self) -> AccessList:
        """The accesses that give the receive engine the next free buffer, if it has none and there is one."""
        accesses = AccessList()
        if self.armed is None and self.free_buffers:
            self.armed = self.free_buffers.popleft()
            accesses.write("RECEIVE_ADDRESS", address=self.armed)
            accesses.write("RECEIVE_CONTROL", bytes=self._program.nic.mtu_bytes)
        return accesses

    async def give_back(self, buffer: int) -> None:
        """A receive buffer is empty again. If the engine waits for one it gets it now."""
        self.free_buffers.append(buffer)
        if self.armed is None:
            await self._processor.run("recv_rearm", self.arm)

    async def run(self) -> None:
        """Receive for ever."""
        arrived = self._processor.events["receive"]
        while True:
            await self._processor.run("recv_rearm", self._fetch_header, after=arrived)
            buffer = self._buffer
            bits = sum(word.get() << 32 * place for place, word in enumerate(self._header))
            if not await self._take(bits, buffer):
                await self.give_back(buffer)

    def _fetch_header(self) -> AccessList:
        """Arm the next buffer, then read the header of the packet that has come."""
        assert self.armed is not None
        self._buffer, self.armed = self.armed, None
        accesses = self.arm()
        self._header = accesses.load(self._buffer, HEADER_BYTES // 4)
        return accesses

    async def _take(self, bits: int, buffer: int) -> bool:
        """Serve a packet; return whether RDMA has its buffer now."""
        program = self._program
        try:
            header = Header.unpack(bits)
            code, incarnation = unpack_code(header.bandwidth)
        except ValueError:
            header, code, incarnation = Header(kind=Kind.PROBE), Code.NONE, 0
        known = header.source in program.routes and header.destination == program.node
        if not known or header.kind not in (Kind.DATA, Kind.ACK, Kind.NACK):
            self.dropped += 1
            return False
        connection = program.connection(header.source)
        if not program.heard(connection, incarnation):
            async with self._processor.step("recv_ack"):
                believed = await program.believe(connection, incarnation)
            if not believed:
                self.dropped += 1
                return False
        key, last = unpack_flow(header.flow)
        if header.kind is Kind.DATA:
            async with self._processor.step("recv_data"):
                opening = None
                if code in OPENINGS:
                    opening = await self._opening(buffer)
                taken = self._data(connection, header, code, key, last, buffer, opening)
                if connection.receiving(key).refusal is Code.NO_TOKEN:
                    await program.timers.watch(AccessList())  # that no token is held for a node that is gone
                return taken
        if code in (Code.ASK, Code.ALIVE, Code.OVER):
            async with self._processor.step("recv_ack"):
                self._asked(connection, key, code)
            return False
        stream = connection.send.get(key)
        if stream is None:
            self.dropped += 1
        elif header.kind is Kind.ACK:
            async with self._processor.step("recv_ack"):
                if code is Code.AVAILABLE:
                    await program.timers.resume(stream)
                else:
                    self._acknowledge(stream, header.sequence)
        else:
            async with self._processor.step("recv_nack"):
                await self._refused(stream, header.sequence, code)
        return False

    def _asked(self, connection: Connection, key: FlowKey, code: Code) -> None:
        """A question after a message that has not come whole, or the answer to it."""
        if code is Code.ASK:
            stream = connection.send.get(key)
            goes_on = stream is not None and stream.flow is not None and stream.flow.begun
            self._program.send.note(connection, key, Code.ALIVE if goes_on else Code.OVER)
        elif code is Code.OVER and key.target_port < len(self._program.ports):
            port = self._program.ports[key.target_port]
            assembly = port.assemblies.get((connection.node, key))
            if assembly is not None and assembly.idle_ticks:
                self._program.abandon(port, connection.node, key)

    async def _opening(self, buffer: int) -> Opening | None:
        """The opening of an opening packet in a buffer; None if it makes no sense."""
        accesses = AccessList()
        words = accesses.load(buffer + HEADER_BYTES, OPENING_BYTES // 4)
        await self._processor.carry_out(accesses)
        try:
            return Opening.unpack([word.get() for word in words])
        except ValueError:
            return None

    def _data(
        self,
        connection: Connection,
        header: Header,
        code: Code,
        key: FlowKey,
        last: bool,
        buffer: int,
        opening: Opening | None,
    ) -> bool:
        """Serve a data packet, which is in order and taken, or not taken at all.

        Returns whether RDMA has its buffer now.
        """
        stream = connection.receiving(key)
        lag = self._lag(stream, header.sequence, code)
        taken = False
        if lag > 0:
            stream.due = True  # sent again because its acknowledgement was lost
        elif lag < 0:
            if stream.expected is not None and stream.refusal is None and not stream.gap:
                stream.miss()
        elif stream.refusal is not None:
            stream.due = True  # sent again because the refusal was lost
        else:
            refusal = self._deliver(connection.node, header, code, key, last, buffer, opening)
            if refusal is None:
                stream.accept()
                taken = code not in VOIDS
            else:
                stream.refuse(refusal)
        if stream.due:
            self._program.send.acknowledge(connection, key)
        return taken

    @staticmethod
    def _lag(stream: ReceiveStream, sequence: int, code: Code) -> int:
        """The number of packets by which a packet is behind the expected one, negative if others are missing before it.

        Before one that begins the stream anew nothing is missing.
        """
        lag = -1 if stream.expected is None else behind(sequence, stream.expected)
        if lag < 0 and code in BEGINNINGS:
            stream.begin(sequence)
            return 0
        return lag

    def _deliver(
        self,
        node: int,
        header: Header,
        code: Code,
        key: FlowKey,
        last: bool,
        buffer: int,
        opening: Opening | None,
    ) -> Code | None:
        """Hand the expected packet's bytes to RDMA, or return the reason why not."""
        program, ports = self._program, self._program.ports
        if key.target_port >= len(ports):
            return None if code in VOIDS else Code.UNKNOWN_PORT
        port = ports[key.target_port]
        if code in VOIDS:
            program.abandon(port, node, key)
            return None
        if not port.open:
            return Code.CLOSED_PORT
        if code in FIRSTS:
            refusal = self._begin(port, node, key, code, opening)
            if refusal is not None:
                return refusal
        assembly = port.assemblies.get((node, key))
        if assembly is None:
            return Code.CLOSED_PORT  # it was, when the message began
        length = 0 if code in OPENINGS else header.length
        if assembly.received + length > assembly.room:
            program.abandon(port, node, key)
            return Code.TOO_LONG
        event = None
        address = assembly.address + assembly.received
        assembly.received += length
        assembly.idle_ticks = 0
        if assembly.get is not None:
            assembly.get.waited_ticks = 0
        if last:
            del port.assemblies[node, key]
            event = self._ended(port, assembly, node, key)
        program.advance()
        program.rdma.receive(port, assembly, buffer, address, length, event)
        return None

    def _begin(self, port: Port, node: int, key: FlowKey, code: Code, opening: Opening | None) -> Code | None:
        """Begin a message: find the place where its bytes go, or return the reason why it is refused."""
        before = port.assemblies.pop((node, key), None)
        if before is not None and before.token is not None:  # will not be completed any more
            port.receive_tokens[key.priority].appendleft(before.token)
        if code in OPENINGS and opening is None:
            return Code.NOT_EXPOSED
        if opening is None or opening.purpose is Purpose.SIZED:
            token = port.take_token(node, key, 0 if opening is None else opening.size)
            if token is None:
                return Code.NO_TOKEN
            assembly = Assembly(token.address, token.length, token=token)
        elif opening.purpose is Purpose.GOT:
            asked = [get for get in port.gets.values() if get.serial == opening.serial]
            if not asked or (asked[0].descriptor.node, asked[0].descriptor.port) != (node, key.source_port):
                return Code.NOT_EXPOSED  # given up meanwhile
            mine = asked[0].descriptor
            assembly = Assembly(mine.address, mine.length, get=asked[0])
        elif not port.is_exposed(opening.address, opening.length):
            return Code.NOT_EXPOSED
        elif opening.purpose is Purpose.PUT:
            assembly = Assembly(opening.address, opening.length)
        else:
            return self._answer_get(port, node, key, opening)
        port.assemblies[node, key] = assembly
        return None

    def _answer_get(self, port: Port, node: int, key: FlowKey, opening: Opening) -> Code | None:
        """Send the bytes that a GET asks for, as a message of the port that has exposed them."""
        back = FlowKey(port.number, key.source_port, key.priority)
        flow = self._program.flow(node, back)
        if flow is None:
            return Code.NO_FLOW
        descriptor = SendDescriptor(
            address=opening.address,
            length=opening.length,
            node=node,
            port=key.source_port,
            priority=key.priority,
            token=NO_TOKEN,
            opening=replace(opening, purpose=Purpose.GOT),
        )
        self._program.enqueue(SendToken(descriptor, flow))
        # The request itself has no bytes: it ends in a place without room.
        port.assemblies[node, key] = Assembly(0, 0)
        return None

    @staticmethod
    def _ended(port: Port, assembly: Assembly, node: int, key: FlowKey) -> Event | None:
        """The event that tells a port of a message that has come whole.

        RDMA leaves out the event of a PUT whose bytes it could write.
        """
        if assembly.get is not None:
            number = assembly.get.descriptor.token
            if port.gets.get(number) is not assembly.get:
                return None
            del port.gets[number]
            whole = assembly.received == assembly.room
            return Event(kind=EventKind.SENT, status=Status.OK if whole else Status.TOO_LONG, token=number)
        return Event(
            kind=EventKind.RECEIVED,
            token=NO_TOKEN if assembly.token is None else assembly.token.token,
            length=assembly.received,
            node=node,
            port=key.source_port,
            priority=key.priority,
        )

    def _acknowledge(self, stream: SendStream, expected: int) -> None:
        for token in stream.acknowledge(expected):
            self._program.complete(token, Status.OK)
        self._program.sdma.look_at_stream(stream)

    async def _refused(self, stream: SendStream, sequence: int, code: Code) -> None:
        """Serve a negative acknowledgement: first the packets that it acknowledges, then the one that it refuses.

        The refusal counts if that packet has had no answer yet. It is final: no copy of the packet is taken later, and
        none behind it has been. So the message can fail, or all begin again, and nothing is delivered beside.
        """
        self._acknowledge(stream, sequence)
        oldest = stream.unacknowledged[0] if stream.unacknowledged else None
        if oldest is None or oldest.sequence != sequence:
            return
        if code is Code.OUT_OF_SEQUENCE:
            stream.probing = False
            stream.go_back()
        else:
            await self._begin_again(stream, oldest, code)
        self._program.sdma.look_at_stream(stream)

    async def _begin_again(self, stream: SendStream, oldest: Packet, code: Code) -> None:
        """Begin the messages of a flow again after a refusal; some reasons fail the refused one."""
        program = self._program
        if not oldest.void:
            if code in FAILURES:
                program.complete(oldest.token, FAILURES[code])
            elif code is Code.NO_TOKEN:
                stream.tries += 1
        flow = stream.flow
        if flow is None:
            stream.begin_anew()
            return
        flow.rewind()
        program.queue.rotate(flow, message_ended=True)
        if code is Code.NO_TOKEN and not oldest.void:
            if program.timers.expired(stream):
                program.complete(oldest.token, Status.TIMED_OUT)
                stream.forgive()
            stream.probing = True
            await program.timers.pause(flow)
        program.sdma.look_at(flow)
