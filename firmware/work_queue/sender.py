"""Messages that go out: descriptor, data, packet, completion, one after the other."""

from __future__ import annotations

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header

from ..accesses import AccessList, Reading, Why
from .completion import Completions
from .context import WorkQueueContext
from .events import names
from .layout import HEADER_BYTES, ChannelRecord, pack_sequence
from .state import PostedQueue
from .transfers import Transfers

__all__ = ["Sender"]

WAITS = ("send", "receive", "doorbell")
"""Events that are served while a packet goes out.

Otherwise two cards that send to each other would wait for ever, and the host's bus would wait for the network.
"""


class Sender:
    """Sends the messages of the queues that are given to it."""

    def __init__(self, program: WorkQueueContext, transfers: Transfers, completions: Completions) -> None:
        self._program, self._processor = program, program.processor
        self._transfers, self._completions = transfers, completions

    async def send(self, queue: PostedQueue) -> None:
        """Send the next message of a queue."""
        program = self._program
        index = queue.taken
        program.doing = f"sends a message of channel {queue.channel}"
        found = await self._transfers.next(queue)
        record, descriptor, status = found.record, found.descriptor, found.status
        if record is None or descriptor is None:
            queue.taken = queue.posted  # rung by an owner whose channel is being closed
            return
        if status == CompletionStatus.OK and descriptor.bytes > program.nic.mtu_bytes:
            status = CompletionStatus.TOO_LONG
        if status == CompletionStatus.OK:
            at = program.layout.send_buffer + HEADER_BYTES
            move = self._transfers.move(queue, record, descriptor, at, descriptor.bytes)
            self._start(move.end, queue, record, index, descriptor.bytes)
            seen = AccessList()
            came = program.events.take(seen, *WAITS)
            async with move.step.then("dispatch", seen, after=program.events.port):
                pass
            status = await move.status()
            if move.end.why is Why.END:
                await self._until_sent(came)
            elif status == CompletionStatus.OK:
                # Only the descriptor behind the data has failed.
                again = AccessList()
                self._start(again, queue, record, index, descriptor.bytes)
                step = self._processor.step("header", 0, accesses=again)
                async with step.then("dispatch", seen, after=program.events.port):
                    pass
                await self._until_sent(came)
        program.sent += 1
        await self._completions.end(self._completions.post(queue, record, index, descriptor.bytes, status))

    def _start(
        self, accesses: AccessList, queue: PostedQueue, record: ChannelRecord, index: int, size: int
    ) -> None:
        """Write the header of the packet in the buffer, have it sent, and wait for its end."""
        buffer = self._program.layout.send_buffer
        header = Header(
            route=record.route,
            destination=record.node,
            source=self._program.node,
            flow=record.channel,
            length=size,
            sequence=pack_sequence(queue.channel, index),
        ).pack()
        self._processor.pay(accesses, header=1)
        accesses.store(buffer, *(header >> 32 * word & 0xFFFFFFFF for word in range(HEADER_BYTES // 4)))
        self._processor.pay(accesses, send=1)
        accesses.write("SEND_ADDRESS", address=buffer)
        accesses.write("SEND_CONTROL", bytes=size, vl=0)
        self._program.events.arm(accesses, *WAITS)

    async def _until_sent(self, came: Reading) -> None:
        """Wait until the packet has been sent, and meanwhile take in messages and doorbells."""
        program = self._program
        seen = names(came, *WAITS)
        while True:
            if "receive" in seen:
                await program.receiver.receive()
            if "doorbell" in seen:
                await program.intake.take_doorbells()
            if "send" in seen:
                return
            seen = await program.events.wait(*WAITS)
