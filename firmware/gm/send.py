"""SEND: transmit buffers to the network, acknowledgements before data."""

from __future__ import annotations

from collections import deque

from lanikai.hdl.packet import Header, Kind

from ..accesses import AccessList
from ..step import Accesses
from .context import GmContext
from .layout import HEADER_BYTES
from .state import Connection, Packet
from .wire import Code, FlowKey, pack_code, pack_flow

__all__ = ["Send"]


class Send:
    """The SEND state machine. `waits_for`: its present wait, in words.

    RECV never waits for it: an acknowledgement is a mark on its stream, and a later one takes the earlier one's place.
    So a link that stands still cannot stop reception.
    """

    def __init__(self, program: GmContext) -> None:
        self._program = program
        self._processor = program.processor
        self._wake = program.processor.port.flag()
        self.waits_for = "a packet"
        self._packets: deque[tuple[Packet, int, int]] = deque()
        self._notes: deque[tuple[Connection, FlowKey, Code]] = deque()
        self._answers: deque[tuple[Connection, FlowKey]] = deque()

    def submit(self, packet: Packet, buffer: int) -> None:
        """Send a packet that stands in a transmit buffer."""
        self._packets.append((packet, buffer, packet.payload_bytes))
        self._wake.set()

    def acknowledge(self, connection: Connection, key: FlowKey) -> None:
        """Send the answer that is due on a receive stream, or that a token is available to it."""
        if (connection, key) not in self._answers:
            self._answers.append((connection, key))
        self._wake.set()

    def note(self, connection: Connection, key: FlowKey, code: Code) -> None:
        """Send a packet that has nothing but a code, for a flow of the node or a flow to it."""
        if (connection, key, code) not in self._notes:
            self._notes.append((connection, key, code))
        self._wake.set()

    def store_header(self, accesses: AccessList, buffer: int, header: Header) -> None:
        """Write a header to SRAM, 4 words."""
        bits = header.pack()
        accesses.store(buffer, *(bits >> 8 * place & 0xFFFFFFFF for place in range(0, HEADER_BYTES, 4)))

    async def run(self) -> None:
        """Send for ever."""
        while True:
            if self._answers:
                await self._send_answer(*self._answers.popleft())
            elif self._notes:
                connection, key, code = self._notes.popleft()
                await self._run("send_ack", self._answer(connection, key, code, 0))
            elif self._packets:
                packet, buffer, length = self._packets.popleft()
                if not packet.cancelled:
                    await self._run("send_packet", self._start(AccessList(), buffer, length))
                    packet.stream.progress = True
                packet.stream.under_way -= 1
                self._program.sdma.give_back(buffer)
            else:
                self.waits_for = "a packet"
                self._wake.clear()
                await self._wake.wait()

    def _start(self, accesses: AccessList, address: int, length: int) -> AccessList:
        accesses.write("SEND_ADDRESS", address=address)
        accesses.write("SEND_CONTROL", bytes=length)
        return accesses

    async def _run(self, step: str, accesses: Accesses) -> None:
        """A step that starts the send engine; return when that has ended."""
        self.waits_for = "the send engine to end"
        await self._processor.run(step, accesses, until=self._processor.events["send"])

    def _answer(self, connection: Connection, key: FlowKey, code: Code, sequence: int) -> AccessList:
        """Start a packet without bytes."""
        address = self._program.layout.acknowledgement
        header = Header(
            kind=Kind.NACK if code >= Code.OUT_OF_SEQUENCE else Kind.ACK,
            route=connection.route,
            bandwidth=pack_code(code, self._program.incarnation),
            destination=connection.node,
            source=self._program.node,
            flow=pack_flow(key, False),
            sequence=sequence,
        )
        accesses = AccessList()
        self.store_header(accesses, address, header)
        return self._start(accesses, address, 0)

    async def _send_answer(self, connection: Connection, key: FlowKey) -> None:
        """Send a stream's sender its answer: the stream's present state, whatever has been said of it before."""
        stream = connection.receiving(key)
        if not (stream.due or stream.available):
            return  # the node has been started again meanwhile

        def answer() -> AccessList:
            code = Code.NONE
            if not stream.due and stream.available:
                code, stream.available = Code.AVAILABLE, False
            elif stream.refusal is not None:
                code = stream.refusal
            elif stream.missing:
                code = Code.OUT_OF_SEQUENCE
            if code is not Code.AVAILABLE:
                stream.due = stream.missing = False
            return self._answer(connection, key, code, stream.expected or 0)

        await self._run("send_ack", answer)
        if stream.available:
            self.acknowledge(connection, key)
