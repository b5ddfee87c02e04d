"""Messages that come in: header, descriptor, data, completion, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Kind

from ..accesses import AccessList, Reading
from .completion import Completions
from .context import WorkQueueContext
from .layout import HEADER_BYTES, unpack_sequence
from .state import read_header, refusal
from .transfers import Next, Transfers

__all__ = ["Receiver"]


class Receiver:
    """Takes packets to the places that their channels' next descriptors name."""

    def __init__(self, program: WorkQueueContext, transfers: Transfers, completions: Completions) -> None:
        self._program, self._processor = program, program.processor
        self._transfers, self._completions = transfers, completions
        self._header = AccessList()
        self._words = self.load_header(self._header)

    def load_header(self, accesses: AccessList) -> list[Reading]:
        """Load the header of the packet in the buffer."""
        self._processor.pay(accesses, packet=1)
        return accesses.load(self._program.layout.receive_buffer, HEADER_BYTES // 4)

    def arm(self, accesses: AccessList) -> None:
        """Give the buffer to the next packet."""
        self._processor.pay(accesses, rearm=1)
        accesses.write("RECEIVE_ADDRESS", address=self._program.layout.receive_buffer)
        accesses.write("RECEIVE_CONTROL", bytes=self._program.nic.mtu_bytes)

    async def rearm(self) -> None:
        """The same, in a step of its own."""
        accesses = AccessList()
        self.arm(accesses)
        async with self._processor.step("rearm", 0, accesses=accesses):
            pass

    async def receive(self) -> None:
        """Take in the packet in the buffer."""
        # A descriptor that was posted before the message came is not to be missed.
        await self._program.intake.take_doorbells()
        await self.take_next()

    async def take_next(self) -> None:
        """The same, when all doorbells have been taken."""
        async with self._processor.step("packet", 0, accesses=self._header):
            pass
        await self.take(self._words)

    async def take(self, words: Sequence[Reading]) -> None:
        """The same, when its header has been loaded, too."""
        program = self._program
        header = read_header(sum(word.get() << 32 * i for i, word in enumerate(words)))
        channel = header.flow if header.flow < program.nic.channels else 0
        queue = program.queue(channel, receive=True)
        index = queue.taken
        found = Next(None)
        sender, _ = unpack_sequence(header.sequence)
        if channel and header.kind is Kind.DATA and header.destination == program.node and queue.waiting:
            program.doing, before = f"takes in a message for channel {channel}", program.doing
            found = await self._transfers.next(queue, sender=(header.source, sender))
            program.doing = before if found.descriptor is None else program.doing
        elif channel:
            found = Next(await self._transfers.record(channel))
        record, descriptor, status = found.record, found.descriptor, found.status
        if record is None or descriptor is None:
            program.drops[refusal(header, program.node, record, queue.waiting)] += 1
            program.advance()
            await self.rearm()
            return
        size = header.length
        if status == CompletionStatus.OK and size > descriptor.bytes:
            status = CompletionStatus.TOO_LONG
        post = self._completions.post(queue, record, index, size, CompletionStatus.OK)
        if status == CompletionStatus.OK:
            at = program.layout.receive_buffer + HEADER_BYTES
            move = self._transfers.move(queue, record, descriptor, at, size)
            self.arm(move.end)
            self._completions.write_down(post, move.end)
            async with move.step:
                pass
            status = await move.status()
        program.received += 1
        if not post.begun:
            await self.rearm()
            post = self._completions.post(queue, record, index, size, status)
        await self._completions.end(post)
