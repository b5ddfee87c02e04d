"""The work queue program of one card: one thing after the other, as the sequential VIA of nagar-thesis-2001 5.3.1."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header

from .. import registers
from ..costs import CostTable
from ..driver_mailbox import DRIVER_CHANNEL, DRIVER_OWNER, DriverMailbox
from ..ports import CardPorts
from ..processor import Processor
from ..program import FirmwareProgram
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
    pack_sequence,
)
from .state import PostedQueue, describe, read_header, refusal

__all__ = ["DRIVER_CHANNEL", "DRIVER_OWNER", "WorkQueueProgram"]

RECEIVE_FLAG = 1 << 20
"""Flag in a doorbell's value in the queue: it is a receive doorbell (`receive_doorbells` = merged)."""


class WorkQueueProgram(FirmwareProgram[WorkQueueConfig]):
    """The control program of `node`; `start` spawns it. The arguments are those of `FirmwareProgram`.

    A message takes the route of its channel's record, which the driver writes, and none of `routes`. A message that
    comes in is dropped, and counted in `drops` by the reason, in these cases:

    - `misrouted`: it is for another node.
    - `unknown`: it is no message.
    - `closed`: it comes for a channel that is not open.
    - `stranger`: it comes from another channel than the one to which this one is connected. VIA is connection-oriented
      (4.1).
    - `no buffer`: it finds no posted descriptor. Delivery is unreliable (4.1.1).

    A message longer than a packet ends with TOO_LONG, as does one longer than the buffer that waits for it.

    - `sent`, `received`: messages ended, well or not.
    - `operations`: host DMAs that were started and waited for, by their kind: `descriptor`, `data`, `list` (data and
      the next descriptor).
    - `advanced_cycle`: the cycle in which it last woke, or ended, took in or dropped a message.

    It waits for the host DMA engine as long as the bus takes. Its waits for the network, and for a completion queue
    that stalls, have no bound. But doorbells are taken meanwhile, and the driver is heard. So no doorbell queue stays
    full, and no write on the host's bus waits for something that only a write behind it can bring.

    Raises ConfigError for a card that lacks something.
    """

    Config = WorkQueueConfig
    default_costs = WORK_QUEUE_COSTS
    speaks = "work queues"

    def __init__(
        self,
        card: CardPorts,
        *,
        node: int,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: WorkQueueConfig | None = None,
        costs: CostTable | None = None,
    ) -> None:
        super().__init__(card, node=node, nic=nic, routes=routes, config=config, costs=costs)
        self.layout = Layout(nic, self.config)
        self.processor = Processor(self.only_processor(), self.costs)
        self.operations: Counter[str] = Counter()
        self.sent = self.received = 0
        self.drops: Counter[str] = Counter()
        self._step = "starts"
        self._step_before_wait: str | None = None
        self._mailbox = DriverMailbox(
            self.processor, nic, self.layout, meanwhile=self._take_doorbells, says=self._say
        )
        self._queues: dict[tuple[int, bool], PostedQueue] = {}
        self._ready: deque[PostedQueue] = deque()  # queues to send that have descriptors, in turn

    def _say(self, what: str) -> None:
        """Note a wait that takes long in place of the present step, or with "" its end."""
        if what:
            self._step_before_wait = self._step if self._step_before_wait is None else self._step_before_wait
            self._step = what
        elif self._step_before_wait is not None:
            self._step, self._step_before_wait = self._step_before_wait, None

    @property
    def dropped(self) -> int:
        """Messages dropped, whatever the reason."""
        return self.drops.total()

    @property
    def pending(self) -> int:
        """Messages to send that it knows of, and one more for its present step."""
        waiting = sum(queue.waiting for queue in self._queues.values() if not queue.receive)
        return waiting + (self._step != "")

    def state(self) -> list[str]:
        """Its present step, its queues and its drops, a line each."""
        return describe(self.node, self._step, self._queues.values(), self.drops)

    def waiting(self) -> list[str]:
        """Its present step, in a few words; nothing if it waits for events."""
        return [f"node {self.node} {self._step}"] if self._step else []

    def start(self) -> None:
        """Spawn the program."""
        self.processor.port.spawn(self._run(), f"work queues[{self.node}]")

    async def _run(self) -> None:
        await self._mailbox.boot()
        await self._rearm()
        while True:
            self._step = ""
            seen = await self._wait("doorbell", "receive", "completion")
            self._advance()
            await self._serve(seen)
            while self._ready:
                # One message of each queue in turn.
                queue = self._ready.popleft()
                await self._send(queue)
                self._may_send(queue)
                await self._serve(await self._came("receive", "completion"))

    async def _serve(self, seen: set[str]) -> None:
        """Serve messages that have come in, queues that have failed, doorbells."""
        if "receive" in seen:
            await self._receive()
        if "completion" in seen:
            await self._mailbox.tell_broken()
        await self._take_doorbells()

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

    async def _came(self, *sources: str) -> set[str]:
        """The events of these that have come; they are cleared."""
        processor = self.processor
        async with processor.step("look"):
            status = await processor.read("ISR")
            came = {name for name in sources if status[name]}
            if came:
                await processor.write("ISR", **dict.fromkeys(came, 1))
        return came

    def _queue(self, channel: int, *, receive: bool) -> PostedQueue:
        key = channel, receive
        if key not in self._queues:
            self._queues[key] = PostedQueue(channel, receive=receive)
        return self._queues[key]

    async def _take_doorbells(self) -> None:
        """Take all doorbells that have been rung, in their order: as many as the card's queue holds.

        It takes no more in one go, or a process that never stops ringing would have the firmware for itself.
        """
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
                    queue.posted = entry["value"] % (1 << COUNT_BITS)
                    self._may_send(queue)
            if entry["channel"] == DRIVER_CHANNEL:
                await self._mailbox.set_up()
                self._advance()

    def _may_send(self, queue: PostedQueue) -> None:
        """Give a queue that has descriptors to send a turn, behind the others, if it has none yet.

        A queue that is rung while its message is sent has none.
        """
        if queue.waiting and not queue.receive and queue not in self._ready:
            self._ready.append(queue)

    async def _record(self, channel: int) -> ChannelRecord | None:
        """Inside a step: the driver's record of a channel."""
        at = self.layout.record(channel)
        return ChannelRecord.unpack([await self.processor.load(at + 4 * i) for i in range(8)])

    async def _send(self, queue: PostedQueue) -> None:
        """Send the next message of a queue."""
        processor, layout = self.processor, self.layout
        async with processor.step("look"):
            record = await self._record(queue.channel)
        if record is None:
            queue.taken = queue.posted  # rung by an owner whose channel is being closed
            return
        self._step = f"sends a message of channel {queue.channel}"
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

    async def _send_packet(self, queue: PostedQueue, record: ChannelRecord, index: int, size: int) -> None:
        """Send the packet in the buffer, and meanwhile take in messages and doorbells.

        Otherwise two cards that send to each other would wait for ever, and the host's bus would wait for the network.
        """
        processor, layout = self.processor, self.layout
        header = Header(
            route=record.route,
            destination=record.node,
            source=self.node,
            flow=record.channel,
            length=size,
            sequence=pack_sequence(queue.channel, index),
        ).pack()
        async with processor.step("header"):
            for word in range(HEADER_BYTES // 4):
                await processor.store(layout.send_buffer + 4 * word, header >> 32 * word & 0xFFFFFFFF)
            await processor.spend(send=1)
            await processor.write("SEND_ADDRESS", address=layout.send_buffer)
            await processor.write("SEND_CONTROL", bytes=size, vl=0)
        sent = False
        while not sent:
            seen = await self._wait("send", "receive", "doorbell")
            sent = "send" in seen
            if "receive" in seen:
                await self._receive()
            if "doorbell" in seen:
                await self._take_doorbells()

    async def _receive(self) -> None:
        """Take the packet in the buffer to the place that its channel's next descriptor names."""
        processor, layout = self.processor, self.layout
        # A descriptor that was posted before the message came is not to be missed.
        await self._take_doorbells()
        async with processor.step("packet"):
            words = [await processor.load(layout.receive_buffer + 4 * i) for i in range(HEADER_BYTES // 4)]
            header = read_header(sum(word << 32 * i for i, word in enumerate(words)))
            channel = header.flow if header.flow < self.nic.channels else 0
            queue = self._queue(channel, receive=True)
            record = await self._record(channel) if channel else None
        refused = refusal(header, self.node, record, queue.waiting)
        if record is None or refused:
            self.drops[refused] += 1
            self._advance()
            await self._rearm()
            return
        self._step = f"takes in a message for channel {queue.channel}"
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

    def _advance(self) -> None:
        self.advanced_cycle = self.processor.port.cycle

    async def _rearm(self) -> None:
        processor = self.processor
        async with processor.step("rearm"):
            await processor.write("RECEIVE_ADDRESS", address=self.layout.receive_buffer)
            await processor.write("RECEIVE_CONTROL", bytes=self.nic.mtu_bytes)

    async def _descriptor(
        self, queue: PostedQueue, record: ChannelRecord
    ) -> tuple[Descriptor, CompletionStatus]:
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

    async def _ask_descriptor(self, queue: PostedQueue, record: ChannelRecord, index: int) -> None:
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
        self, queue: PostedQueue, record: ChannelRecord, descriptor: Descriptor, sram_address: int, size: int
    ) -> CompletionStatus:
        """Move a message's bytes, checked, and with them the next descriptor if it tailgates.

        Only a descriptor whose doorbell has been taken may tailgate. It was in memory before its doorbell was rung, so
        no descriptor is read that is half written.
        """
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
            # A list has the status of its first part that failed: the message's own, or the descriptor's, which is
            # fetched again.
            queue.staged = None
            async with processor.step("ended"):
                status = CompletionStatus((await processor.read("ACCESS_STATUS"))["status"])
        return status

    async def _ended(self, what: str) -> CompletionStatus:
        """Wait for the host DMA engine to end the transfer that was asked for, and return its status."""
        processor = self.processor
        await self._wait("host_dma")
        async with processor.step("ended"):
            finished = await processor.read("HOST_DMA_FINISHED")
        if not finished["valid"]:
            raise RuntimeError(f"node {self.node}: the host DMA engine ended, and HOST_DMA_FINISHED is empty")
        self.operations[what] += 1
        return CompletionStatus(finished["status"])

    async def _complete(
        self, queue: PostedQueue, record: ChannelRecord, index: int, size: int, status: CompletionStatus
    ) -> None:
        """Tell the process: into the descriptor, and into the queue's completion queue."""
        ring = record.receive_ring if queue.receive else record.send_ring
        await self._mailbox.post(
            ring + DESCRIPTOR_BYTES * (index % self.config.queue_entries) + STATUS_OFFSET,
            number=pack_descriptor_number(index, receive=queue.receive),
            channel=queue.channel,
            bytes=size,
            status=status,
            queue=record.receive_completions if queue.receive else record.send_completions,
            entry=1,
        )
        self._advance()
