"""A process' parts of its card beside VIs: protection tags, registered memory, completion queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.layout import RegionFlag
from lanikai.firmware.via.shadow import SHADOW_QUEUE_BYTES
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import ENTRY_BYTES

from ..bus import HostBus
from ..config import KitConfig
from ..errors import MemoryUseError
from ..kit.address_space import VirtualBuffer
from ..kit.completion_queue import CompletionQueue
from ..kit.errors import ResourceError
from ..kit.pages import OwnerPage
from .attributes import MemAttributes
from .completion_queue import VipCompletionQueue
from .errors import ErrorCode, ErrorReport, ResourceCode
from .mail import MailDriver
from .nic import Ptag, Registered, VipNic

__all__ = ["Holdings"]


_NAMES = {
    "vis": "VIs",
    "tags": "protection tags",
    "regions": "memory regions",
    "completion_queues": "completion queues",
}


class Holdings(MailDriver):
    """A driver that gives processes protection tags, registered memory and completion queues, and takes them back.

    `completion_queues` are those of all processes. Whoever calls has the lock.
    """

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: ViaConfig | None = None,
        kit: KitConfig | None = None,
    ) -> None:
        super().__init__(bus, nic=nic, routes=routes, config=config, kit=kit)
        self.completion_queues: list[VipCompletionQueue] = []

    def may_have_one_more(self, nic: VipNic, what: str, has: int) -> None:
        """Check a process that has `has` of something: `vis`, `tags`, `regions` or `completion_queues`.

        Raises ResourceError if it has as many as `ViaConfig.limits` allows.
        """
        most = getattr(self.config.limits, f"most_{what}")
        if most is not None and has >= most:
            raise ResourceError(
                f"{nic}: it has {has} {_NAMES[what]}, and a process may have {most} (ViaConfig.limits.most_{what})"
            )

    async def create_ptag(self, nic: VipNic) -> Ptag:
        """A protection tag: the first is the process' own page, each other one a page more. Raises ResourceError."""
        self.may_have_one_more(nic, "tags", len(nic.ptags))
        own = all(ptag.owner != nic.owner for ptag in nic.ptags)
        owner = nic.owner if own else self.take("owner")
        window = self.layout.window_bytes
        size = 2 * SHADOW_QUEUE_BYTES
        shadows = deque(range(0, window - size + 1, size)) if window else deque()
        ptag = Ptag(nic, owner, OwnerPage(self.bus, owner), shadows)
        nic.ptags.append(ptag)
        if window:
            await self.set_up(
                ("SHADOW_ADDRESS", {"address": self.layout.window(owner)}),
                ("SHADOW_WINDOW", {"owner": owner, "bytes": window}),
            )
        return ptag

    def destroy_ptag(self, ptag: Ptag) -> None:
        """Take a tag back that nothing has any more."""
        ptag.nic.ptags.remove(ptag)
        if ptag.owner != ptag.nic.owner:
            self.regions.forget(ptag.owner)
            self.give_back("owner", ptag.owner)

    async def register(self, nic: VipNic, buffer: VirtualBuffer, attributes: MemAttributes) -> int:
        """Register memory. Returns its handle. Raises ResourceError, MemoryUseError."""
        self.may_have_one_more(nic, "regions", len(nic.memory))
        region = await self.regions.register(attributes.ptag.owner, buffer)
        await self._flag(region.number, attributes)
        attributes.ptag.users += 1
        nic.memory[region.tag] = Registered(region, attributes)
        return region.tag

    async def deregister(self, nic: VipNic, handle: int) -> None:
        """Deregister memory."""
        registered = nic.memory.pop(handle)
        await self._flag(registered.region.number, None)
        await self.regions.deregister(registered.region)
        registered.attributes.ptag.users -= 1

    async def change(self, registered: Registered, attributes: MemAttributes) -> None:
        """Give registered memory other attributes; its handle stays. Not while it is written: remote access is off
        first, then on."""
        await self._flag(registered.region.number, None)
        if attributes.ptag is not registered.attributes.ptag:
            registered.region = await self.regions.move(registered.region, attributes.ptag.owner)
        await self._flag(registered.region.number, attributes)
        attributes.ptag.users += 1
        registered.attributes.ptag.users -= 1
        registered.attributes = attributes

    async def _flag(self, region: int, attributes: MemAttributes | None) -> None:
        """Tell the firmware what other ends may do to a region; None: nothing."""
        flags = 0
        if attributes is not None:
            flags = (
                RegionFlag.RDMA_WRITE * attributes.rdma_write | RegionFlag.RDMA_READ * attributes.rdma_read
            )
        await self.bus.write(self.layout.region_flag(region), flags)

    async def create_queue(self, nic: VipNic, entries: int) -> VipCompletionQueue:
        """A completion queue of `entries`, a power of two. Raises ResourceError, MemoryUseError."""
        has = sum(queue.nic is nic for queue in self.completion_queues)
        self.may_have_one_more(nic, "completion_queues", has)
        number = self.take("completion queue")
        try:
            ring = self.pages.allocate(entries * ENTRY_BYTES)
        except MemoryUseError:
            self.give_back("completion queue", number)
            raise
        kit = CompletionQueue(self, nic.page, number, ring, entries=entries)

        def tell(code: ErrorCode) -> None:
            nic.report(
                ErrorReport(code=code, resource=ResourceCode.VIP_RESOURCE_CQ, nic=nic, completion_queue=queue)
            )

        queue = VipCompletionQueue(
            nic,
            kit,
            overrun=lambda: tell(ErrorCode.VIP_ERROR_VI_OVERRUN),
            dead=lambda: tell(ErrorCode.VIP_ERROR_COMP_PROT),
        )
        await self.make_queue(kit)
        self.completion_queues.append(queue)
        return queue

    async def destroy_queue(self, queue: VipCompletionQueue) -> None:
        """Take a completion queue back that no VI has any more."""
        await self.end_queue(queue.kit)
        queue.kit.wake()
        self.pages.release(queue.kit.ring)
        self.completion_queues.remove(queue)
        self.give_back("completion queue", queue.kit.number)

    async def resize_queue(self, queue: VipCompletionQueue, entries: int) -> None:
        """Give a completion queue a ring of `entries`; no end is lost. Raises MemoryUseError."""
        old = queue.kit
        ring = self.pages.allocate(entries * ENTRY_BYTES)
        await self.end_queue(old)
        queue.drain()
        queue.kit = CompletionQueue(self, queue.nic.page, old.number, ring, entries=entries)
        await self.make_queue(queue.kit)
        queue.make_up()
        self.pages.release(old.ring)
        old.wake()
