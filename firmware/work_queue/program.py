"""The work queue program of one card: one thing after the other, as the sequential VIA of nagar-thesis-2001 5.3.1."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.completion_layout import CompletionStatus
from lanikai.hdl.nic.ports import REGISTER_BASE
from lanikai.hdl.packet import Header

from .. import registers
from ..costs import CostTable
from ..ports import ProcessorPort
from ..processor import Processor
from .config import WorkQueueConfig
from .costs import WORK_QUEUE_COSTS
from .layout import (
    COUNT_BITS,
    DESCRIPTOR_BYTES,
    FETCHED_BYTES,
    HEADER_BYTES,
    STATUS_OFFSET,
    ChannelRecord,
    Descriptor,
    Layout,
    pack_descriptor_number,
)

__all__ = ["DRIVER_CHANNEL", "DRIVER_OWNER", "WorkQueueProgram"]

DRIVER_CHANNEL = DRIVER_OWNER = 0
"""The driver's channel and page: its doorbell says that there is something in the mailbox."""
RECEIVE_FLAG = 1 << 20
"""Of a doorbell's value in the queue: it is a receive doorbell (`receive_doorbells` = merged)."""
BUSY = {name: reg for name, reg in registers.NIC_REGISTERS.items() if "busy" in reg.fields}


class _Queue:
    """A work queue as the firmware knows it: descriptors `posted` and `taken`, running counts, and which of them is
    `staged` in the SRAM, if any is."""

    def __init__(self, channel: int, *, receive: bool) -> None:
        self.channel, self.receive = channel, receive
        self.posted = self.taken = 0
        self.staged: int | None = None

    @property
    def waiting(self) -> int:
        """Descriptors posted and not taken."""
        return (self.posted - self.taken) % (1 << COUNT_BITS)


class WorkQueueProgram:
    """The control program of `node`; `start` spawns it.

    A message that comes in for a channel without a posted descriptor is dropped (unreliable delivery, 4.1.1) and
    counted in `dropped`. A message longer than a packet ends with TOO_LONG, as does one longer than the buffer that
    waits for it. `sent`, `received`: messages ended, well or not. `operations`: host DMAs that were started and waited
    for, by what they were: `descriptor`, `data`, `list` (data and the next descriptor).

    Raises ConfigError for a card that lacks something.
    """

    def __init__(
        self,
        port: ProcessorPort,
        *,
        node: int,
        nic: NicConfig,
        config: WorkQueueConfig | None = None,
        costs: CostTable = WORK_QUEUE_COSTS,
    ) -> None:
        self.node, self.nic = node, nic
        self.config = WorkQueueConfig() if config is None else config
        self.layout = Layout(nic, self.config)
        self.processor = Processor(port, costs)
        self.operations: Counter[str] = Counter()
        self.sent = self.received = self.dropped = 0
        self._queues: dict[tuple[int, bool], _Queue] = {}
        self._ready: deque[_Queue] = deque()  # queues to send that have descriptors, in turn

    def start(self) -> None:
        """Spawn the program."""
        self.processor.port.spawn(self._run(), f"work queues[{self.node}]")

    async def _run(self) -> None:
        await self._boot()
        await self._rearm()
        while True:
            seen = await self._wait("doorbell", "receive")
            if "receive" in seen:
                await self._receive()
            await self._take_doorbells()
            while self._ready:
                # One message of each queue in turn.
                queue = self._ready.popleft()
                await self._send(queue)
                if queue.waiting:
                    self._ready.append(queue)
                if await self._came("receive"):
                    await self._receive()
                await self._take_doorbells()

    async def _boot(self) -> None:
        """Close all channels and regions, which a reset of the card leaves as they are; then open the driver's."""
        processor = self.processor
        async with processor.step("dispatch"):
            for channel in range(self.nic.channels):
                await processor.spend(set_up=1)
                await processor.write("DOORBELL_CHANNEL", channel=channel)
            for region in range(self.nic.regions):
                await processor.spend(set_up=1)
                await processor.write("REGION", region=region)
            await processor.write("DOORBELL_CHANNEL", channel=DRIVER_CHANNEL, owner=DRIVER_OWNER, open=1)

    async def _wait(self, *sources: str) -> set[str]:
        """Sleep until one of these events; those that have come are cleared."""
        processor = self.processor
        async with processor.step("look"):
            await processor.write("IMR", mask=registers.pack("ISR", **dict.fromkeys(sources, 1)))
        await processor.port.event()
        async with processor.step("dispatch"):
            status = await processor.read("ISR")
            seen = {name for name in sources if status[name]}
            await processor.write("ISR", **dict.fromkeys(seen, 1))
        return seen

    async def _came(self, source: str) -> bool:
        """Whether an event has come; it is cleared."""
        processor = self.processor
        async with processor.step("look"):
            came = bool((await processor.read("ISR"))[source])
            if came:
                await processor.write("ISR", **{source: 1})
        return came

    def _queue(self, channel: int, *, receive: bool) -> _Queue:
        key = channel, receive
        if key not in self._queues:
            self._queues[key] = _Queue(channel, receive=receive)
        return self._queues[key]

    async def _take_doorbells(self) -> None:
        """Take all that have been rung, in their order: as many as the card's queue holds, and no more in one go, or a
        process that never stops ringing would have the firmware for itself."""
        processor = self.processor
        for _ in range(self.nic.doorbell_queue_entries):
            async with processor.step("look"):
                entry = await processor.read("DOORBELL_QUEUE")
                if not entry["valid"]:
                    # While the queue has an entry the event comes up again: none is lost by this.
                    await processor.write("ISR", doorbell=1)
                    return
                if entry["channel"] != DRIVER_CHANNEL:
                    await processor.spend(doorbell=1)
                    queue = self._queue(entry["channel"], receive=bool(entry["value"] & RECEIVE_FLAG))
                    ready = queue.waiting
                    queue.posted = entry["value"] % (1 << COUNT_BITS)
                    if queue.waiting and not ready and not queue.receive:
                        self._ready.append(queue)
            if entry["channel"] == DRIVER_CHANNEL:
                await self._set_up()

    async def _record(self, channel: int) -> ChannelRecord | None:
        """Inside a step: what the driver has said of a channel."""
        at = self.layout.record(channel)
        return ChannelRecord.unpack([await self.processor.load(at + 4 * i) for i in range(8)])

    async def _send(self, queue: _Queue) -> None:
        """Send the next message of a queue."""
        processor, layout = self.processor, self.layout
        async with processor.step("look"):
            record = await self._record(queue.channel)
        if record is None:
            queue.taken = queue.posted  # rung by an owner whose channel is being closed
            return
        index = queue.taken
        descriptor, status = await self._descriptor(queue, record)
        if status == CompletionStatus.OK and descriptor.bytes > self.nic.mtu_bytes:
            status = CompletionStatus.TOO_LONG
        if status == CompletionStatus.OK:
            at = layout.send_buffer + HEADER_BYTES
            status = await self._move(queue, record, descriptor, at, descriptor.bytes)
        if status == CompletionStatus.OK:
            await self._send_packet(queue, record, index, descriptor.bytes)
        self.sent += 1
        await self._complete(queue, record, index, descriptor.bytes, status)

    async def _send_packet(self, queue: _Queue, record: ChannelRecord, index: int, size: int) -> None:
        """Send what stands in the buffer; take in what comes meanwhile, or two cards that send to each other would wait
        for ever."""
        processor, layout = self.processor, self.layout
        header = Header(
            route=record.route,
            destination=record.node,
            source=self.node,
            flow=record.channel,
            length=size,
            sequence=index % (1 << 16),
        ).pack()
        async with processor.step("header"):
            for word in range(HEADER_BYTES // 4):
                await processor.store(layout.send_buffer + 4 * word, header >> 32 * word & 0xFFFFFFFF)
            await processor.spend(send=1)
            await processor.write("SEND_ADDRESS", address=layout.send_buffer)
            await processor.write("SEND_CONTROL", bytes=size, vl=0)
        sent = False
        while not sent:
            seen = await self._wait("send", "receive")
            sent = "send" in seen
            if "receive" in seen:
                await self._receive()

    async def _receive(self) -> None:
        """Take the packet in the buffer to where its channel's next descriptor says."""
        processor, layout = self.processor, self.layout
        # A descriptor that was posted before the message came is not to be missed.
        await self._take_doorbells()
        async with processor.step("packet"):
            words = [await processor.load(layout.receive_buffer + 4 * i) for i in range(HEADER_BYTES // 4)]
            header = Header.unpack(sum(word << 32 * i for i, word in enumerate(words)))
            queue = self._queue(header.flow, receive=True)
            record = await self._record(header.flow) if header.flow < self.nic.channels else None
        if record is None or not queue.waiting:
            self.dropped += 1
            await self._rearm()
            return
        index = queue.taken
        descriptor, status = await self._descriptor(queue, record)
        if status == CompletionStatus.OK and header.length > descriptor.bytes:
            status = CompletionStatus.TOO_LONG
        if status == CompletionStatus.OK:
            at = layout.receive_buffer + HEADER_BYTES
            status = await self._move(queue, record, descriptor, at, header.length)
        await self._rearm()
        self.received += 1
        await self._complete(queue, record, index, header.length, status)

    async def _rearm(self) -> None:
        processor = self.processor
        async with processor.step("rearm"):
            await processor.write("RECEIVE_ADDRESS", address=self.layout.receive_buffer)
            await processor.write("RECEIVE_CONTROL", bytes=self.nic.mtu_bytes)

    async def _descriptor(self, queue: _Queue, record: ChannelRecord) -> tuple[Descriptor, CompletionStatus]:
        """The queue's next descriptor, and whether it could be read."""
        processor = self.processor
        at = self.layout.staged(queue.channel, receive=queue.receive)
        shadow = record.receive_shadow if queue.receive else record.send_shadow
        status = CompletionStatus.OK
        if shadow:
            at = shadow + FETCHED_BYTES * (queue.taken % self.config.queue_entries)
        elif queue.staged != queue.taken:
            async with processor.step("fetch"):
                await processor.write("HOST_DMA_TAG", notify=1)
                await self._ask_descriptor(queue, record, queue.taken)
            status = await self._ended("descriptor")
        async with processor.step("descriptor"):
            control, address = [await processor.load(at + 4 * i) for i in range(FETCHED_BYTES // 4)]
        queue.taken = (queue.taken + 1) % (1 << COUNT_BITS)
        return Descriptor.unpack(control, address), status

    async def _ask_descriptor(self, queue: _Queue, record: ChannelRecord, index: int) -> None:
        """Inside a step: start to fetch a descriptor. The queue's memory is the driver's word: no check."""
        processor = self.processor
        ring = record.receive_ring if queue.receive else record.send_ring
        place = ring + DESCRIPTOR_BYTES * (index % self.config.queue_entries)
        await processor.write("HOST_DMA_HOST", address=place)
        await processor.write(
            "HOST_DMA_SRAM", address=self.layout.staged(queue.channel, receive=queue.receive)
        )
        await processor.write("HOST_DMA_CONTROL", bytes=FETCHED_BYTES, to_host=0)
        queue.staged = index

    async def _move(
        self, queue: _Queue, record: ChannelRecord, descriptor: Descriptor, sram_address: int, size: int
    ) -> CompletionStatus:
        """Move a message's bytes, checked, and with them the next descriptor if it tailgates.

        Only a descriptor whose doorbell has been taken may: it was in memory before its doorbell was rung, so none is
        read that is half written."""
        processor = self.processor
        tailgates = self.config.descriptors == "tailgated" and queue.waiting > 0
        async with processor.step("data"):
            await processor.write("HOST_DMA_TAG", notify=1, more=tailgates)
            await processor.write("ACCESS_ADDRESS", address=descriptor.address)
            await processor.write(
                "ACCESS_TAG", region=descriptor.tag & 0xFF, key=descriptor.tag >> 8, channel=queue.channel
            )
            await processor.write("ACCESS_SRAM", address=sram_address)
            await processor.write("ACCESS_CONTROL", bytes=size, to_host=queue.receive)
            if tailgates:
                await processor.spend(fetch=1)
                await processor.write("HOST_DMA_TAG", notify=1)
                await self._ask_descriptor(queue, record, queue.taken)
        status = await self._ended("list" if tailgates else "data")
        if tailgates and status != CompletionStatus.OK:
            # Of a list it is the first part's that failed: the message's own, or the descriptor's, which is fetched
            # again.
            queue.staged = None
            async with processor.step("ended"):
                status = CompletionStatus((await processor.read("ACCESS_STATUS"))["status"])
        return status

    async def _ended(self, what: str) -> CompletionStatus:
        """Wait for the host DMA engine to end what was asked for, and say how it ended."""
        processor = self.processor
        await self._wait("host_dma")
        async with processor.step("ended"):
            finished = await processor.read("HOST_DMA_FINISHED")
        if not finished["valid"]:
            raise RuntimeError(f"node {self.node}: the host DMA engine ended, and HOST_DMA_FINISHED is empty")
        self.operations[what] += 1
        return CompletionStatus(finished["status"])

    async def _complete(
        self, queue: _Queue, record: ChannelRecord, index: int, size: int, status: CompletionStatus
    ) -> None:
        """Tell the process: into the descriptor, and into the queue's completion queue."""
        ring = record.receive_ring if queue.receive else record.send_ring
        await self._post(
            ring + DESCRIPTOR_BYTES * (index % self.config.queue_entries) + STATUS_OFFSET,
            number=pack_descriptor_number(index, receive=queue.receive),
            channel=queue.channel,
            bytes=size,
            status=status,
            queue=record.receive_completions if queue.receive else record.send_completions,
            entry=1,
        )

    async def _post(self, status_address: int, *, channel: int, number: int, **post: int) -> None:
        processor = self.processor
        async with processor.step("complete"):
            while (await processor.read("COMPLETION_POST"))["busy"]:
                await processor.spend(wait=1)
            await processor.write("COMPLETION_STATUS", address=status_address)
            await processor.write("COMPLETION_OF", work_queue=channel, descriptor=number)
            await processor.write("COMPLETION_POST", write_back=1, **post)

    async def _set_up(self) -> None:
        """Write what the driver asks for into registers, each when the one before is done; then answer. The driver is
        trusted."""
        processor, at = self.processor, self.layout.mailbox
        async with processor.step("set_up"):
            count, answer = await processor.load(at), await processor.load(at + 4)
            for i in range(count):
                await processor.spend(set_up=1)
                offset = await processor.load(at + 8 + 8 * i)
                word = await processor.load(at + 12 + 8 * i)
                await processor.port.write(REGISTER_BASE + offset, word)
                await self._done(name for name, register in BUSY.items() if register.offset == offset)
        await self._post(answer, channel=0, number=0)

    async def _done(self, names: Iterable[str]) -> None:
        """Inside a step: wait until these registers are not busy."""
        for name in names:
            while (await self.processor.read(name))["busy"]:
                await self.processor.spend(wait=1)
