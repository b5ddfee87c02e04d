"""Transfers of the host DMA engine: a queue's next descriptor, a message's data."""

from __future__ import annotations

from dataclasses import dataclass

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from .. import registers
from ..accesses import AccessList, Reading, Why
from ..step import Step
from .context import WorkQueueContext
from .layout import (
    DESCRIPTOR_BYTES,
    FETCHED_BYTES,
    OPEN_FLAG,
    RECORD_WORDS,
    ChannelRecord,
    Descriptor,
)
from .state import PostedQueue

__all__ = ["Move", "Next", "Transfers"]

WORD = 0xFFFFFFFF
_FINISHED = registers.NIC_REGISTERS["HOST_DMA_FINISHED"].fields
_DONE_MASK = _FINISHED["valid"].mask | _FINISHED["status"].mask
_DONE = _FINISHED["valid"].mask | CompletionStatus.OK << _FINISHED["status"].low


@dataclass(frozen=True)
class Next:
    """A queue's next descriptor, `status` says whether it could be read; `record` is its channel's.

    `record` is None for a channel that is not open, `descriptor` for one that was not asked for.
    """

    record: ChannelRecord | None
    descriptor: Descriptor | None = None
    status: CompletionStatus = CompletionStatus.OK


class Transfers:
    """The transfers of a program that has one at a time, and waits for its end."""

    def __init__(self, program: WorkQueueContext) -> None:
        self._program = program
        self._processor = program.processor

    async def record(self, channel: int) -> ChannelRecord | None:
        """The driver's record of a channel, None for one that is not open. It is read in a step that has been paid."""
        accesses = AccessList()
        words = accesses.load(self._program.layout.record(channel), RECORD_WORDS)
        async with self._processor.step("look", 0, accesses=accesses):
            return ChannelRecord.unpack([word.get() for word in words])

    async def next(self, queue: PostedQueue, *, sender: tuple[int, int] | None = None) -> Next:
        """Read the record of a queue's channel and take the queue's next descriptor.

        None is taken from a channel that is not open, nor for a message that is not from `sender`: node and channel. To
        take one in is part of a step that has been paid.
        """
        program, processor, events = self._program, self._processor, self._program.events
        first, second = AccessList(), AccessList()
        processor.pay(first, look=int(sender is None))
        words = first.load(program.layout.record(queue.channel), RECORD_WORDS)
        first.stop_if(words[ChannelRecord.OPEN_WORD], mask=OPEN_FLAG, value=0)
        if sender is not None:
            for place, (mask, value) in ChannelRecord.other_end(*sender).items():
                first.stop_if(words[place], mask=mask, value=value, differs=True)
        first.stop_if(words[ChannelRecord.SHADOW_WORDS[queue.receive]], mask=WORD, value=0, differs=True)
        staged = program.layout.staged(queue.channel, receive=queue.receive)
        step = processor.step("look", 0, accesses=first)
        finished = None
        if queue.staged == queue.taken:
            processor.pay(first, descriptor=1)
            found = first.load(staged, FETCHED_BYTES // 4)
        else:
            processor.pay(first, fetch=1)
            first.write("HOST_DMA_TAG", notify=1)
            self._ask(first, queue, words[ChannelRecord.RING_WORDS[queue.receive]])
            events.arm(first, "host_dma")
            events.take(second, "host_dma")
            finished = self._ended(second)
            processor.pay(second, descriptor=1)
            found = second.load(staged, FETCHED_BYTES // 4)
            step = step.then("dispatch", second, after=events.port)
        async with step:
            record = ChannelRecord.unpack([word.get() for word in words])
        if record is None or (sender is not None and sender != (record.node, record.channel)):
            return Next(record)
        status = CompletionStatus.OK
        if first.why is not Why.END:
            shadow = record.receive_shadow if queue.receive else record.send_shadow
            accesses = AccessList()
            found = accesses.load(
                shadow + FETCHED_BYTES * (queue.taken % program.config.queue_entries), FETCHED_BYTES // 4
            )
            async with processor.step("descriptor", accesses=accesses):
                pass
        elif finished is not None:
            queue.staged = queue.taken
            status = self.status("descriptor", finished)
        queue.take()
        control, address = found
        return Next(record, Descriptor.unpack(control.get(), address.get()), status)

    def move(
        self, queue: PostedQueue, record: ChannelRecord, descriptor: Descriptor, sram_address: int, size: int
    ) -> Move:
        """Move a message's bytes, checked, and with them the next descriptor if it tailgates.

        Only a descriptor whose doorbell has been taken may tailgate. It was in memory before its doorbell was rung, so
        no descriptor is read that is half written.
        """
        program, processor, events = self._program, self._processor, self._program.events
        tailgates = program.config.descriptors == "tailgated" and queue.waiting > 0
        accesses, end = AccessList(), AccessList()
        accesses.write("HOST_DMA_TAG", notify=1, more=tailgates)
        accesses.write("ACCESS_ADDRESS", address=descriptor.address)
        accesses.write(
            "ACCESS_TAG", region=descriptor.tag & 0xFF, key=descriptor.tag >> 8, channel=queue.channel
        )
        accesses.write("ACCESS_SRAM", address=sram_address)
        accesses.write("ACCESS_CONTROL", bytes=size, to_host=queue.receive)
        if tailgates:
            processor.pay(accesses, fetch=1)
            accesses.write("HOST_DMA_TAG", notify=1)
            self._ask(accesses, queue, record.receive_ring if queue.receive else record.send_ring)
            queue.staged = queue.taken
        events.arm(accesses, "host_dma")
        events.take(end, "host_dma")
        finished = self._ended(end)
        end.stop_if(finished, mask=_DONE_MASK, value=_DONE, differs=True)
        step = processor.step("data", accesses=accesses).then("dispatch", end, after=events.port)
        return Move(self, queue, step, end, finished, tailgates)

    async def failed(self, queue: PostedQueue) -> CompletionStatus:
        """The status of a message whose list, with the next descriptor, has failed.

        A list has the status of its first part that failed: the message's own, or the descriptor's, which is fetched
        again.
        """
        queue.staged = None
        accesses = AccessList()
        status = accesses.read("ACCESS_STATUS")
        async with self._processor.step("ended", accesses=accesses):
            return CompletionStatus(status["status"])

    def _ask(self, accesses: AccessList, queue: PostedQueue, ring: int | Reading) -> None:
        """Start to fetch the next descriptor. The queue's memory is the driver's word: no check."""
        place = DESCRIPTOR_BYTES * (queue.taken % self._program.config.queue_entries)
        if isinstance(ring, Reading):
            accesses.copy(ring, "HOST_DMA_HOST", add=place)
        else:
            accesses.write("HOST_DMA_HOST", address=ring + place)
        staged = self._program.layout.staged(queue.channel, receive=queue.receive)
        accesses.write("HOST_DMA_SRAM", address=staged)
        accesses.write("HOST_DMA_CONTROL", bytes=FETCHED_BYTES, to_host=0)

    def _ended(self, accesses: AccessList) -> Reading:
        """Read how the transfer has ended that was asked for."""
        self._processor.pay(accesses, ended=1)
        return accesses.read("HOST_DMA_FINISHED")

    def status(self, what: str, finished: Reading) -> CompletionStatus:
        """The status of a transfer that has ended, which is counted."""
        if not finished["valid"]:
            raise RuntimeError(
                f"node {self._program.node}: the host DMA engine ended, and HOST_DMA_FINISHED is empty"
            )
        self._program.operations[what] += 1
        return CompletionStatus(finished["status"])


class Move:
    """A message's bytes on their way: `step` moves them.

    `end` is the step's last list. What is written behind it is carried out only if the bytes have been moved.
    """

    def __init__(
        self,
        transfers: Transfers,
        queue: PostedQueue,
        step: Step,
        end: AccessList,
        finished: Reading,
        tailgates: bool,
    ) -> None:
        self.step, self.end = step, end
        self._transfers, self._queue = transfers, queue
        self._finished, self._tailgates = finished, tailgates

    async def status(self) -> CompletionStatus:
        """How the move has ended, once `step` has been carried out."""
        status = self._transfers.status("list" if self._tailgates else "data", self._finished)
        if self._tailgates and status != CompletionStatus.OK:
            return await self._transfers.failed(self._queue)
        return status
