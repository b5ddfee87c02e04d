"""The segment driver of a node: it gives processes endpoints, and endpoints frames of the card (chun-1998 3.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.layout import AmLayout
from lanikai.firmware.am.words import CommandKind, CommandStatus, EndpointRecord, Notice, NoticeKind
from lanikai.firmware.lock import Lock
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE

from ..bus import HostBus
from ..config import cycles
from ..errors import MemoryUseError
from ..memory import PageAllocator
from .config import AmHostConfig
from .errors import AmCode, AmError
from .mailbox import Mailbox, NoticeRing
from .memory import EndpointMemoryPool
from .mmu import EndpointPage, PagedEndpoint
from .owner import Owner
from .pager import Pager

__all__ = ["SegmentDriver"]

NO_ROUTE = (1 << 48) - 1
"""The route that says that there is none."""


class SegmentDriver:
    """The driver of one host's card, whose firmware speaks "am" with the same `config`.

    - `layout`: places in pages and in the SRAM. `pages`: host memory that is not in use.
    - `endpoints`: number -> endpoint, of all processes. `processes`: those that live.
    - `pager`: moves endpoints. `mailbox`: commands to the firmware.
    - `routes`: node -> source route. The mapper may change them (`set_route`).
    - `hear_raw`: called with the notice and the payload of each raw packet.
    - `events`, `arrivals`: notices heard, of events and of faults by an arrival. `unreachable`: node -> notices that it
      gives no answer.

    `start` spawns the interrupt's handler and the pager. Raises ConfigError as `AmLayout` does.
    """

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: VirtualNetworkConfig | None = None,
        costs: AmHostConfig | None = None,
    ) -> None:
        self.bus, self.nic, self.routes = bus, nic, dict(routes)
        self.config = VirtualNetworkConfig.for_nic(nic) if config is None else config
        self.costs = AmHostConfig() if costs is None else costs
        self.layout = AmLayout(nic, self.config)
        self.pages = PageAllocator(bus.memory)
        self.mailbox = Mailbox(bus, self.layout, self.pages)
        self.pager = Pager(bus, self.mailbox, nic=nic, config=self.config, costs=self.costs)
        self.endpoints: dict[int, PagedEndpoint] = {}
        self.pager.find = self.endpoints.get
        self.processes: list[Owner] = []
        self.hear_raw: Callable[[Notice, bytes], None] = lambda notice, payload: None
        self.events = self.arrivals = 0
        self.unreachable: dict[int, int] = {}
        self._notices = NoticeRing(self.layout, self.pages)
        self._memory = EndpointMemoryPool(self.pages, self.layout)
        self._numbers = deque(range(1, self.config.endpoints_max))
        self._owners = 0
        self._wakers: dict[PagedEndpoint, Callable[[], None]] = {}
        self._cycles: dict[int, int] = {}
        self._lock = Lock(bus.flag)
        self._raw_turn = Lock(bus.flag)

    def start(self) -> None:
        """Spawn the interrupt's handler and the pager."""
        self.bus.spawn(self._interrupts(), f"driver[{self.bus.node}].interrupts")
        self.bus.spawn(self.pager.serve(), f"driver[{self.bus.node}].pager")

    @property
    def node(self) -> int:
        """The node's number."""
        return self.bus.node

    async def spend(self, nanoseconds: int) -> None:
        """Let host CPU time pass."""
        if wait := self.cycles(nanoseconds):
            await self.bus.sleep(wait)

    def cycles(self, nanoseconds: int) -> int:
        """Card cycles of a time, rounded up."""
        found = self._cycles.get(nanoseconds)
        if found is None:
            found = self._cycles[nanoseconds] = cycles(nanoseconds, self.nic)
        return found

    # Processes.

    async def admit(self, process: Owner) -> None:
        """Let a process use the card. It is a system call."""
        await self.spend(self.costs.system_call_ns)
        self._owners = self._owners % 0xFFFF + 1
        process.number, process.alive = self._owners, True
        self.processes.append(process)

    async def kill(self, process: Owner) -> None:
        """End a process, whatever it does or waits for: its calls end with AM_ERR_NOT_INIT.

        All that it has is taken back when this returns: endpoints, frames, memory. Messages that it has sent and that
        are not delivered are forgotten. Those for it come back to their senders.
        """
        if not process.alive:
            return
        process.alive = False
        self.processes.remove(process)
        process.ended()
        async with self._lock:  # a call that creates an endpoint ends first
            own = [one for one in self.endpoints.values() if one.owner == process.number]
        ended = [self.bus.flag() for _ in own]

        async def end(place: int) -> None:
            await self.destroy(own[place])
            ended[place].set()

        for place in range(len(own)):
            self.bus.spawn(end(place), f"driver[{self.node}].end")
        for flag in ended:
            await flag.wait()
        process.release_all()

    # Endpoints.

    async def create(self, process: Owner, *, tag: int, wake: Callable[[], None]) -> EndpointPage:
        """An endpoint of a process, in host memory, as the process has it mapped. It is a system call.

        `wake`: called when the card says that a receive queue is no longer empty, and when the endpoint ends. Raises
        AmError if the host has no more memory or numbers, or the process ends meanwhile.
        """
        await self.spend(self.costs.system_call_ns)
        async with self._lock:
            process.check()
            if not self._numbers:
                raise AmError(
                    AmCode.AM_ERR_RESOURCE,
                    f"node {self.node}: all {self.config.endpoints_max - 1} endpoints of the host are in use",
                )
            try:
                memory = self._memory.take()
            except MemoryUseError as error:
                raise AmError(
                    AmCode.AM_ERR_RESOURCE,
                    f"node {self.node}: no memory for another endpoint beside {len(self.endpoints)}: {error}",
                ) from None
            endpoint = PagedEndpoint(self.bus, self._numbers.popleft(), process.number, memory)
            endpoint.set_record(
                EndpointRecord(
                    endpoint=endpoint.number,
                    owner=process.number,
                    tag=tag,
                    send_staging=memory.send_staging.start,
                    receive_staging=memory.receive_staging.start,
                )
            )
            self.endpoints[endpoint.number] = endpoint
            self._wakers[endpoint] = wake
            await self.mailbox.ask(CommandKind.CREATE, endpoint=endpoint.number)
        if not process.alive:
            process.check()  # `kill` ends the endpoint
        return EndpointPage(self.bus, self.layout, endpoint, fault=self.pager.fault)

    async def destroy(self, endpoint: PagedEndpoint) -> None:
        """End an endpoint, and take back all that it has. It does nothing if somebody has."""
        if self.endpoints.get(endpoint.number) is not endpoint or endpoint.ending:
            await endpoint.changed.until(lambda: endpoint.ended)
            return
        endpoint.ending = True
        await self.pager.end(endpoint)
        self._wakers.pop(endpoint)()
        del self.endpoints[endpoint.number]
        self._memory.give_back(endpoint.memory)
        # A number is given again when all others have been: late messages for the one before find none there.
        self._numbers.append(endpoint.number)
        endpoint.ended = True
        endpoint.changed.ring()

    async def change_record(self, endpoint: PagedEndpoint, **fields: int) -> None:
        """Change fields of an endpoint's record. It is a system call, and unloads the endpoint if it is resident."""
        await self.spend(self.costs.system_call_ns)
        await self.pager.in_memory(
            endpoint,
            lambda: endpoint.set_record(replace(endpoint.record, **fields)),  # type: ignore[arg-type]
            unload=True,
        )

    async def set_word(self, page: EndpointPage, offset: int, word: int) -> None:
        """Write a word into an endpoint's page: directly if it is resident, else by a system call into host memory.

        So a thread that only asks to be woken does not have its page loaded for that.
        """
        endpoint = page.endpoint
        if page.resident:
            await page.write_all([(offset, word)])
            return
        await self.spend(self.costs.system_call_ns)

        if not await self.pager.in_memory(endpoint, lambda: endpoint.words.__setitem__(offset // 4, word)):
            await page.write_all([(offset, word)])

    # The mapper's.

    async def set_route(self, node: int, route: int | None) -> None:
        """Have the firmware send packets for a node by another route; None: there is none."""
        if route is None:
            self.routes.pop(node, None)
        else:
            self.routes[node] = route
        await self.mailbox.ask(CommandKind.SET_ROUTE, node=node, route=NO_ROUTE if route is None else route)

    async def send_raw(self, route: int, payload: bytes) -> None:
        """Have the firmware send a raw packet; returns when it has left. Raises AmError for one that is too long."""
        padded = payload.ljust(-(-len(payload) // 4) * 4, b"\0")
        words = [int.from_bytes(padded[i : i + 4], "little") for i in range(0, len(padded), 4)]
        status = CommandStatus.TOO_LONG
        if len(payload) <= self.layout.raw_bytes:
            async with self._raw_turn:
                status = await self.mailbox.ask(
                    CommandKind.SEND_RAW, route=route, length=len(payload), raw=words
                )
        if status is not CommandStatus.OK:
            raise AmError(
                AmCode.AM_ERR_BAD_ARG,
                f"node {self.node}: a raw packet of {len(payload)} bytes: at most {self.layout.raw_bytes}",
            )

    # Notices.

    async def _interrupts(self) -> None:
        """Give the firmware its ring of notices, then serve the card's interrupt."""
        await self.mailbox.ask(CommandKind.SET_RING, page=self._notices.start)
        status, mask = HOST_REGISTERS["HOST_ISR"], HOST_REGISTERS["HOST_IMR"]
        bit = status.fields["firmware"].mask
        await self.bus.write(REGISTER_BASE + mask.offset, bit)
        while True:
            await self.bus.interrupt()
            await self.spend(self.costs.interrupt_ns)
            await self.bus.write(REGISTER_BASE + status.offset, bit)
            while self._notices.take(self._hear):
                if self._notices.owed:
                    await self._notices.tell(self.mailbox)

    def _hear(self, notice: Notice, payload: bytes) -> None:
        endpoint = self.endpoints.get(notice.endpoint)
        match notice.kind:
            case NoticeKind.ENDPOINT_FAULT if endpoint is not None:
                self.arrivals += 1
                self.pager.request(endpoint)
            case NoticeKind.EVENT if endpoint is not None:
                self.events += 1
                self._wakers[endpoint]()
            case NoticeKind.UNREACHABLE:
                self.unreachable[notice.node] = self.unreachable.get(notice.node, 0) + 1
            case NoticeKind.RAW_PACKET:
                self.hear_raw(notice, payload)
