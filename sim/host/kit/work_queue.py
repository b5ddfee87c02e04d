"""A channel of a process: its two work queues, to send and to receive."""

from __future__ import annotations

from lanikai.firmware.work_queue.layout import (
    COUNT_BITS,
    DESCRIPTOR_BYTES,
    FETCHED_BYTES,
    STATUS_OFFSET,
    Descriptor,
)
from lanikai.hdl.nic.owners.completion_layout import STATUS_LAYOUT, CompletionStatus

from ...inside.words import Fields
from ..memory import Buffer
from .completion_queue import CompletionQueue
from .driver_calls import ChannelCalls, DriverCalls
from .errors import KitError, QueueFullError, RefusedError
from .pages import OwnerPage
from .regions import Region

__all__ = ["Channel", "WorkQueue"]

_STATUS = Fields(STATUS_LAYOUT)


class WorkQueue:
    """Descriptors of a channel in host memory, `ring`, mapped into the process of `page` (nagar-thesis-2001 4.1.1).

    - `posted`: how many so far. Descriptor i stands in slot i modulo the queue's length, and again when it is done.
    - `shadow`: byte of the owner's shadow window from which on its shadow stands, or None.
    """

    def __init__(
        self,
        driver: DriverCalls,
        page: OwnerPage,
        channel: int,
        ring: Buffer,
        *,
        receive: bool,
        shadow: int | None,
    ) -> None:
        self._driver, self._page, self.ring = driver, page, ring
        self.channel, self.receive, self.shadow = channel, receive, shadow
        self._words = ring.data.view("<u4").reshape(-1, DESCRIPTOR_BYTES // 4)
        self.posted = 0

    @property
    def entries(self) -> int:
        """Descriptors that may be under way at once."""
        return len(self._words)

    @property
    def free(self) -> int:
        """Descriptors that can be posted now: those that are done, from the oldest on, and those not used yet."""
        free = self.entries - min(self.posted, self.entries)
        for number in range(max(0, self.posted - self.entries), self.posted):
            if not _STATUS.get(self._status(number), "done"):
                break
            free += 1
        return free

    async def post(self, region: Region, *, offset: int = 0, length: int | None = None) -> int:
        """Post `length` bytes (all, by default) from `offset` of a registered buffer: a message to send, or room for
        one to come.

        Returns the descriptor's running number. Raises QueueFullError, ValueError for bytes that are not in the buffer,
        RefusedError if the channel is not (or not any more) the process'.

        Faults that the card finds (another's region, a message longer than a packet) end the descriptor with a status.
        """
        (number,) = await self.post_all([(region, offset, length)])
        return number

    async def post_all(self, buffers: list[tuple[Region, int, int | None]]) -> list[int]:
        """Post several, (region, offset, length) each as of `post`, with one doorbell. None is posted if one cannot be,
        or if the card refuses the doorbell."""
        sizes = [
            region.buffer.length - offset if length is None else length for region, offset, length in buffers
        ]
        for (region, offset, _), size in zip(buffers, sizes, strict=True):
            if offset < 0 or size < 0 or offset + size > region.buffer.length:
                raise ValueError(f"{size} bytes at {offset}: the buffer has {region.buffer.length} bytes")
        descriptors = [
            Descriptor(address=region.buffer.start + offset, tag=region.tag, bytes=size).words()
            for (region, offset, _), size in zip(buffers, sizes, strict=True)
        ]
        if len(buffers) > self.free:
            raise QueueFullError(
                f"node {self._driver.bus.node}, channel {self.channel}: its queue to "
                f"{'receive' if self.receive else 'send'} has {self.free} of {self.entries} descriptors free, "
                f"{len(buffers)} are asked for: wait for some to end"
            )
        first, before, numbers = self.posted, self._words.copy(), []
        try:
            for words in descriptors:
                await self._driver.spend(self._driver.kit.post_ns)
                slot = self.posted % self.entries
                self._words[slot, STATUS_OFFSET // 4] = 0
                self._words[slot, : len(words)] = words
                if self.shadow is not None:
                    await self._page.shadow(self.shadow + FETCHED_BYTES * slot, words)
                numbers.append(self.posted)
                self.posted += 1
            await self._page.ring(self.channel, self.posted % (1 << COUNT_BITS), receive=self.receive)
        except RefusedError:
            # The card has heard of none of them, and is not to with the next doorbell.
            for number in range(first, first + len(descriptors)):
                self._words[number % self.entries] = before[number % self.entries]
            self.posted = first
            raise
        return numbers

    async def done(self, number: int) -> tuple[CompletionStatus, int] | None:
        """The status with which descriptor `number` ended and its bytes, by its own status word (`VipSendDone`).

        It is None if the descriptor has not ended. For a slot that was posted again it is not known any more: raises
        KitError.
        """
        if not self.posted - self.entries <= number < self.posted:
            raise KitError(
                f"node {self._driver.bus.node}, channel {self.channel}: descriptor {number}: the queue has those from "
                f"{max(0, self.posted - self.entries)} to {self.posted - 1}"
            )
        word, kit = self._status(number), self._driver.kit
        await self._driver.spend(kit.miss_ns if word else kit.look_ns)
        if not _STATUS.get(word, "done"):
            return None
        return CompletionStatus(_STATUS.get(word, "status")), _STATUS.get(word, "bytes")

    def _status(self, number: int) -> int:
        return int(self._words[number % self.entries, STATUS_OFFSET // 4])


class Channel:
    """A channel of a process, made by `Process.channel`. It carries nothing before it is connected.

    It has `number`, `send` and `receive` (`WorkQueue`), and the queues that tell their descriptors' ends.
    """

    def __init__(
        self,
        driver: ChannelCalls,
        owner: int,
        queues: tuple[WorkQueue, WorkQueue],
        completions: tuple[CompletionQueue, CompletionQueue],
    ) -> None:
        self._driver, self.owner = driver, owner
        self.send, self.receive = queues
        self.send_completions, self.receive_completions = completions
        self.number = self.send.channel

    async def connect(self, *, node: int, channel: int) -> None:
        """Let it send to `channel` of `node`, and take the messages of that one: messages of anybody else are dropped.

        It takes a system call, and words with the card. Raises KitError for a node without a route.
        """
        await self._driver.spend(self._driver.kit.system_call_ns)
        await self._driver.connect(self, node=node, number=channel)

    async def close(self) -> None:
        """Close it: it hears its process no more, and messages that come for it are dropped. Its number is not given
        away again."""
        await self._driver.spend(self._driver.kit.system_call_ns)
        await self._driver.disconnect(self)
