"""SEND: transmit buffers to the network, acknowledgements before data."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lanikai.hdl.packet import Header, Kind

from .layout import HEADER_BYTES
from .state import Connection, Packet
from .wire import Code, FlowKey, pack_code, pack_flow

if TYPE_CHECKING:
    from .program import GmProgram

__all__ = ["Send"]


class Send:
    """The SEND state machine. RECV never waits for it: an acknowledgement is a mark on its stream, and a
    later one takes the earlier one's place, so a link that stands still cannot stop reception. `waits_for`: in
    words."""

    def __init__(self, program: GmProgram) -> None:
        self._program = program
        self._processor = program.processor
        self._wake = program.processor.port.flag()
        self.waits_for = "a packet"
        self._packets: deque[tuple[Packet, int, int]] = deque()
        self._acknowledgements: deque[tuple[Connection, int]] = deque()

    def submit(self, packet: Packet, buffer: int) -> None:
        """Send a packet that stands in a transmit buffer."""
        length = 0 if packet.void else packet.length
        self._packets.append((packet, buffer, length))
        self._wake.set()

    def acknowledge(self, connection: Connection, priority: int) -> None:
        """Send the acknowledgement that is due on a receive stream."""
        if (connection, priority) not in self._acknowledgements:
            self._acknowledgements.append((connection, priority))
        self._wake.set()

    async def store_header(self, buffer: int, header: Header) -> None:
        """Inside a step: write a header to SRAM, 4 words."""
        bits = header.pack()
        for place in range(0, HEADER_BYTES, 4):
            await self._processor.store(buffer + place, bits >> 8 * place & 0xFFFFFFFF)

    async def run(self) -> None:
        """Send for ever."""
        while True:
            if self._acknowledgements:
                await self._send_acknowledgement(*self._acknowledgements.popleft())
            elif self._packets:
                packet, buffer, length = self._packets.popleft()
                async with self._processor.step("send_packet"):
                    await self._start(buffer, length)
                await self._sent()
                packet.stream.under_way -= 1
                packet.stream.progress = True
                self._program.sdma.give_back(buffer)
            else:
                self.waits_for = "a packet"
                self._wake.clear()
                await self._wake.wait()

    async def _start(self, address: int, length: int) -> None:
        await self._processor.write("SEND_ADDRESS", address=address)
        await self._processor.write("SEND_CONTROL", bytes=length)

    async def _sent(self) -> None:
        done = self._processor.events["send"]
        self.waits_for = "the send engine to end"
        await done.wait()
        done.clear()

    async def _send_acknowledgement(self, connection: Connection, priority: int) -> None:
        address = self._program.layout.acknowledgement
        stream = connection.receive[priority]
        async with self._processor.step("send_ack"):
            nack, stream.nack, stream.due = stream.nack, None, False
            header = Header(
                kind=Kind.ACK if nack is None else Kind.NACK,
                route=connection.route,
                bandwidth=Code.NONE if nack is None else pack_code(nack.code, nack.copy),
                destination=connection.node,
                source=self._program.node,
                flow=pack_flow(FlowKey(0, 0, priority) if nack is None else nack.flow, False),
                sequence=stream.expected,
            )
            await self.store_header(address, header)
            await self._start(address, 0)
        await self._sent()
