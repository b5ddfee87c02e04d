"""A process' parts of its card: its page, its memory, its queues and channels."""

from __future__ import annotations

from lanikai.firmware.work_queue.layout import DESCRIPTOR_BYTES
from lanikai.hdl.nic.owners.completion_layout import ENTRY_BYTES, INDEX_BITS

from .address_space import AddressSpace, VirtualBuffer
from .completion_queue import CompletionQueue
from .driver import Driver
from .errors import KitError, ResourceError
from .pages import OwnerPage
from .regions import Region
from .work_queue import Channel, WorkQueue

__all__ = ["Process"]


class Process:
    """A process on a host, with a page of the card's window of its own: owner `owner`.

    `await Process.open(driver)` makes one. Its calls here go through the driver; `page`, work queues and completion
    queues are its own. It has its host memory from `memory` (`AddressSpace`).
    """

    def __init__(self, driver: Driver, owner: int) -> None:
        self._driver, self.owner = driver, owner
        self.page = OwnerPage(driver.bus, owner)
        self.memory = AddressSpace(driver.pages)
        self._shadow = 0  # bytes of the shadow window that are in use
        self._who = f"node {driver.bus.node}, owner {owner}"

    @classmethod
    async def open(cls, driver: Driver) -> Process:
        """A process with a page of its own. It takes a system call, and with shadow queues words with the card. Raises
        ResourceError if the card has no owner left."""
        process = cls(driver, driver.take("owner"))
        await driver.spend(driver.kit.system_call_ns)
        if size := driver.layout.window_bytes:
            await driver.set_up(
                ("SHADOW_ADDRESS", {"address": driver.layout.window(process.owner)}),
                ("SHADOW_WINDOW", {"owner": process.owner, "bytes": size}),
            )
        return process

    async def allocate(self, length: int, *, writable: bool = True) -> Region:
        """A new buffer, registered. Raises as `Regions.register` does."""
        return await self.register(self.memory.allocate(length), writable=writable)

    async def register(self, buffer: VirtualBuffer, *, writable: bool = True) -> Region:
        """`Regions.register` for this process."""
        return await self._driver.regions.register(self.owner, buffer, writable=writable)

    async def deregister(self, region: Region) -> None:
        """`Regions.deregister`. Raises KitError for another process' region, too."""
        if region.owner != self.owner:
            raise KitError(
                f"{self._who}: memory at {region.buffer.start:#x} is registered for owner {region.owner}: only its own "
                "process may deregister it"
            )
        await self._driver.regions.deregister(region)

    async def completion_queue(
        self, entries: int, *, batch: int = 1, lag_cycles: int = 0, stall: bool = False
    ) -> CompletionQueue:
        """A completion queue of `entries`, a power of two. It takes a system call, and words with the card.

        The card collects entries until there are `batch`, or the oldest is `lag_cycles` old. With `stall` a full queue
        holds the card up, all of it, so only a process that the driver trusts may have one (`Driver.may_stall`).
        Without `stall` it is overrun.

        Raises KitError for a size that the card does not have and for a queue that may not stall, ResourceError,
        MemoryUseError.
        """
        driver, least = self._driver, max(2, self._driver.nic.completion_batch)
        most = 1 << (INDEX_BITS - 1)
        if entries & (entries - 1) or not least <= entries <= most:
            raise KitError(f"a completion queue of {entries} entries: a power of two, {least} to {most}")
        if not 0 <= batch <= least:
            raise KitError(f"batch = {batch}: 0 to {least}")
        if not 0 <= lag_cycles < 1 << 16:
            raise KitError(f"lag_cycles = {lag_cycles}: 0 to {(1 << 16) - 1}")
        if stall and self.owner not in driver.may_stall:
            raise KitError(
                f"{self._who}: a completion queue that stalls can hold up the whole card: only for owners in "
                "the driver's may_stall"
            )
        ring = driver.pages.allocate(entries * ENTRY_BYTES)
        number = driver.take("completion queue")
        queue = CompletionQueue(
            driver, self.page, number, ring, entries=entries, batch=batch, lag_cycles=lag_cycles, stall=stall
        )
        await driver.spend(driver.kit.system_call_ns)
        await driver.make_queue(queue)
        return queue

    async def channel(self, send: CompletionQueue, receive: CompletionQueue | None = None) -> Channel:
        """A channel, not connected yet, whose descriptors' ends are told in `send` and `receive` (the same one, by
        default).

        It takes a system call. Raises KitError for a completion queue that is not this process', ResourceError if the
        card has no channel left, or the shadow window no room; MemoryUseError.
        """
        driver = self._driver
        for queue in (send, send if receive is None else receive):
            if queue.owner != self.owner or not driver.has_made(queue):
                raise KitError(
                    f"{self._who}: completion queue {queue.number} is not its own: a channel's ends are told in queues "
                    "of its own process"
                )
        length = driver.config.queue_entries
        shadows: list[int | None] = [None, None]
        if window := driver.layout.window_bytes:
            if self._shadow + 2 * driver.layout.shadow_bytes > window:
                raise ResourceError(
                    f"{self._who}: its shadow window of {window} bytes is full: fewer "
                    "channels, or fewer queue_entries"
                )
            shadows = [self._shadow, self._shadow + driver.layout.shadow_bytes]
            self._shadow += 2 * driver.layout.shadow_bytes
        number = driver.take("channel")
        queues = []
        for is_receive, shadow in enumerate(shadows):
            ring = driver.pages.allocate(length * DESCRIPTOR_BYTES)
            queues.append(WorkQueue(driver, self.page, number, ring, receive=bool(is_receive), shadow=shadow))
        await driver.spend(driver.kit.system_call_ns)
        return Channel(
            driver, self.owner, (queues[0], queues[1]), (send, send if receive is None else receive)
        )
