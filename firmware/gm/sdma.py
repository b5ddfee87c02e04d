"""SDMA: chooses the next packet, fetches it from host memory into a transmit buffer, hands it to SEND.

The unmodified program takes the head of the connection queue (gulati-thesis-2001 4.1). The rate-controlled
one (4.2.2) asks the rate control unit: RATE_DISPATCH shows the valid flow with the smallest NDT once NDT <=
RTC. (4.2.2 prints "NDT_min >= RTC"; table 3.1 and figure 3.3 show that the packet goes out once NDT_min <=
RTC.) All else is shared.

A flow is charged with its IDT a packet, as there. With `GmConfig.charge` = bytes it is charged with the part of its IDT
that the packet's bytes are of an MTU. A packet that goes out again is not charged again.
"""

from __future__ import annotations

from collections import deque

from lanikai.hdl.packet import Header, Kind

from ..accesses import AccessList
from ..notice import Notice
from .context import GmContext
from .layout import HEADER_BYTES, Status
from .state import Flow, Packet, SendStream
from .wire import Code, pack_code, pack_flow

__all__ = ["Sdma"]


class Sdma:
    """The SDMA state machine.

    `free_buffers`: transmit buffers that hold nothing. `waits_for`: its present wait, in words.
    """

    def __init__(self, program: GmContext) -> None:
        self._program = program
        self._processor = program.processor
        self._wake = program.processor.events["dispatch"]
        self._changed: dict[Flow, None] = {}
        self._resending: deque[SendStream] = deque()
        self.waits_for = "a flow that may send"
        self.free_buffers = deque(program.layout.transmit_buffers)
        self._offer = AccessList().read("RATE_DISPATCH")  # of the last look

    def look_at(self, flow: Flow) -> None:
        """Something changed that may make a flow ready to send, or no longer ready."""
        self._changed[flow] = None
        self._wake.set()

    def look_at_stream(self, stream: SendStream) -> None:
        """Something changed for a stream: it is blocked, or free again, or has to send again."""
        if stream.resend and stream not in self._resending:
            self._resending.append(stream)
        if stream.flow is not None and stream.flow.ready != stream.flow.valid:
            self._changed[stream.flow] = None
        self._wake.set()

    def give_back(self, buffer: int) -> None:
        """SEND has sent what stood in a transmit buffer."""
        self.free_buffers.append(buffer)
        self._wake.set()

    async def set_idt(self, flow: Flow, ticks: int) -> None:
        """Inside a step: the inter-packet dispatch time of a flow, 0 for none. It acts at once.

        A dispatch under the old IDT may have put the NDT further ahead than the new one allows, as NDT += IDT. Its
        source, gulati-thesis-2001 3.2.2, sets an IDT once and says nothing of a change. So a smaller IDT brings the NDT
        down to min(NDT, RTC + IDT); with 0 a message that comes now goes now. Arrears (an NDT behind the clock) and a
        larger IDT leave the NDT as it is.
        """
        smaller = ticks < flow.idt_ticks
        flow.idt_ticks = ticks
        await self._processor.write("RATE_SELECT", flow=flow.number)
        await self._processor.write("RATE_IDT", ticks=ticks)
        if smaller:
            now = (await self._processor.read("RTC"))["ticks"]
            ndt = (await self._processor.read("RATE_NDT"))["ticks"]
            if self._program.timers.left(ndt, now) > ticks:
                await self._processor.write("RATE_NDT", ticks=self._program.timers.after(now, ticks))

    async def forget(self, flow: Flow) -> None:
        """Inside a step: leave nothing of a flow in the rate control unit.

        Otherwise the next flow of its number would wait for its NDT.
        """
        await self.set_idt(flow, 0)
        now = await self._processor.read("RTC")
        await self._processor.write("RATE_NDT", ticks=now["ticks"])

    async def run(self) -> None:
        """Choose and fetch packets for ever."""
        program = self._program
        after: Notice | None = None
        while True:
            if after is None:
                self._wake.clear()
                if not self.free_buffers:
                    self.waits_for = "a free transmit buffer"
                    await self._wake.wait()
                    continue
                self._woken()
            packet = await self._fill(after)
            program.host_dma.release()
            if packet is None:
                # Nobody else takes buffers: there still is one.
                self.waits_for = "a flow that may send"
                after = self._wake
                continue
            after = None
            program.send.submit(*packet)
            # A turn of the dispatch loop: SEND, woken now, goes before the next choice.
            await self._processor.port.sleep(1)

    def _woken(self) -> None:
        self.waits_for = "the host DMA engine"

    async def _fill(self, after: Notice | None) -> tuple[Packet, int] | None:
        """The next packet, with its bytes, in a free transmit buffer; None if there is none.

        It begins `after` that has come, and takes the host DMA engine, which the caller gives back. So the chosen
        packet goes at once, and no flow that becomes ready in the meantime is passed over.
        """
        async with self._processor.step(
            "sdma_select",
            accesses=self._look,
            after=after,
            came=self._woken,
            holding=self._program.host_dma,
        ):
            accesses = AccessList()
            packet = await self._select(accesses)
            if packet is None:
                return None
            buffer = self.free_buffers.popleft()
            await self._prepare(accesses, packet, buffer)
        if not packet.void and packet.length:
            await self._fetch(packet, buffer)
        return packet, buffer

    def _look(self) -> AccessList:
        """Tell the queues, or the rate control unit, what has changed, then ask for the flow whose turn it is.

        A packet that has to go out again goes before.
        """
        accesses = AccessList()
        self._refresh(accesses)
        self._processor.pay(accesses, sdma_choose=1)
        if not any(stream.resend for stream in self._resending):
            if self._program.gm.rate_controlled:
                self._offer = accesses.read("RATE_DISPATCH")
            else:
                self._processor.pay(accesses, sdma_head=1)
        return accesses

    async def _select(self, accesses: AccessList) -> Packet | None:
        """Inside a step: the packet to send next, or None. What its choice costs goes into `accesses`."""
        for _ in range(len(self._resending)):
            stream = self._resending.popleft()
            if stream.resend:
                packet = stream.resend.popleft()
                if stream.resend:
                    self._resending.append(stream)
                else:
                    self.look_at_stream(stream)
                return packet
        if self._program.gm.rate_controlled:
            return await self._dispatch(accesses)
        flow = self._program.queue.head()
        if flow is None:
            return None
        packet = self._cut(flow)
        flow.valid = flow.ready
        self._processor.pay(accesses, sdma_link=1, sdma_relink=int(flow.valid))
        return packet

    def _refresh(self, accesses: AccessList) -> None:
        """Tell the queues, or the rate control unit, which flows have become ready to send or are so no longer."""
        changed, self._changed = self._changed, {}
        for flow in changed:
            if flow.ready != flow.valid and self._program.flows.get(flow.number) is flow:
                flow.valid = flow.ready
                if self._program.gm.rate_controlled:
                    self._command(accesses, flow.number, "enqueue" if flow.valid else "clear")
                else:
                    self._processor.pay(accesses, sdma_relink=1)

    @staticmethod
    def _command(accesses: AccessList, flow: int, command: str) -> None:
        accesses.write("RATE_SELECT", flow=flow)
        accesses.write("RATE_COMMAND", **{command: 1})

    async def _dispatch(self, accesses: AccessList) -> Packet | None:
        """A packet of the flow that the rate control unit shows."""
        while True:
            offer = self._offer
            if not offer["valid"]:
                if any(flow.valid for flow in self._program.flows.values()):
                    await self._processor.enable("dispatch")
                return None
            flow = self._program.flows.get(offer["flow"])
            if flow is not None and flow.ready:
                break
            # Its stream was blocked a moment ago: it comes back when the stream is free.
            again = AccessList()
            self._command(again, offer["flow"], "clear")
            self._offer = again.read("RATE_DISPATCH")
            if flow is not None:
                flow.valid = False
            await self._processor.carry_out(again)
        packet = self._cut(flow)
        flow.valid = flow.ready
        unregulated = not flow.idt_ticks
        accesses.write(
            "RATE_DISPATCH",
            flow=flow.number,
            last=not flow.valid or unregulated,
            bytes=self._charged(flow, packet),
        )
        if flow.valid and unregulated:
            # The flow is taken out and enqueued, which brings its NDT to RTC. The unit would do that of itself; but a
            # step of the program is as long with the unit as without it (`costs.py`).
            self._command(accesses, flow.number, "enqueue")
        return packet

    def _charged(self, flow: Flow, packet: Packet) -> int:
        """The bytes that RATE_DISPATCH charges for a packet; 0 is an IDT."""
        if self._program.gm.charge == "packets":
            return 0
        charged = max(packet.length, flow.least_bytes)
        return 0 if charged == self._program.nic.charge_unit_bytes else charged

    def _cut(self, flow: Flow) -> Packet:
        """The next packet of a ready flow's first sendable token; the flow is rotated."""
        program = self._program
        token = flow.sendable[0]
        # A packet that may be refused again goes out without its bytes: the answer is all that is asked for.
        probe = flow.stream.probing and flow.stream.restart
        alone = probe or (token.opening is not None and not token.packets)
        length = 0 if alone else self._packet_bytes(token.length, token.sent)
        packet = flow.stream.append(token, length)
        if packet.last:
            flow.awaiting.append(flow.sendable.popleft())
        program.queue.rotate(flow, packet.last)
        if program.dispatched is not None:
            program.dispatched(self._processor.port.cycle, flow.connection.node, flow.key)
        return packet

    def _packet_bytes(self, length: int, sent: int) -> int:
        """Payload bytes of the next packet of a message (thesis 5.2)."""
        nic = self._program.nic
        most = nic.mtu_bytes
        if self._program.gm.segmentation == "equal" and length:
            packets = -(-length // nic.mtu_bytes)
            most = -(-length // packets // nic.word_bytes) * nic.word_bytes
        return min(most, length - sent)

    async def _prepare(self, accesses: AccessList, packet: Packet, buffer: int) -> None:
        """Inside a step: after these `accesses` turn the connection queue to the packet's connection, and build its
        header."""
        program, processor = self._program, self._processor
        stream, connection = packet.stream, packet.stream.connection
        stream.under_way += 1
        turned = program.queue.turn_to(connection) if connection in program.queue else 0
        processor.pay(accesses, sdma_turn=turned, sdma_packet=1)
        program.send.store_header(accesses, buffer, self._header(packet))
        if packet.opening is not None:
            accesses.store(buffer + HEADER_BYTES, *packet.opening.words())
        await program.timers.watch(accesses)

    async def _fetch(self, packet: Packet, buffer: int) -> None:
        """Move the packet's bytes from host memory into the buffer. A bus error fails the message.

        The caller holds the engine.
        """
        program, processor = self._program, self._processor
        start, end = AccessList(), AccessList()
        processor.pay(start, packet_turn=program.host_dma.turns("out"))
        start.write("HOST_DMA_HOST", address=packet.token.descriptor.address + packet.offset)
        start.write("HOST_DMA_SRAM", address=buffer + HEADER_BYTES)
        start.write("HOST_DMA_CONTROL", bytes=packet.length)
        status = end.read("HOST_DMA_STATUS")
        self.waits_for = "the host DMA engine to end"
        step = processor.step("sdma_start", accesses=start)
        async with step.then("sdma_done", end, after=processor.events["host_dma"]):
            if status["error"] and not (packet.void or packet.cancelled):
                flow = packet.token.flow
                program.complete(packet.token, Status.HOST_BUS)
                self.look_at(flow)
            if packet.void:
                again = AccessList()
                program.send.store_header(again, buffer, self._header(packet))
                await processor.carry_out(again)

    def _header(self, packet: Packet) -> Header:
        """The header of a packet, as things stand: its message may have failed."""
        connection = packet.stream.connection
        code = Code.NONE
        if packet.first:
            code = Code.RESTART if packet.restart else Code.FIRST
        if packet.opening is not None:
            code = Code.OPEN_RESTART if packet.restart else Code.OPEN
        if packet.void:
            code = Code.VOID_RESTART if packet.restart else Code.VOID
        return Header(
            kind=Kind.DATA,
            route=connection.route,
            bandwidth=pack_code(code, self._program.incarnation),
            destination=connection.node,
            source=self._program.node,
            flow=pack_flow(packet.token.flow.key, packet.last),
            length=packet.payload_bytes,
            sequence=packet.sequence,
        )
