"""Endpoint faults: which endpoint comes into which frame, and which one leaves for it (chun-1998 3.2).

Faults are served in the order of their arrival, one at a time. An endpoint that has come stays for `residency_ns`, so
that it does something before it leaves.

**The bound on a wait.** Let R be the residency, F the number of frames, and M the time in which a page leaves and
another one comes. The j-th load from now takes a frame whose endpoint came at least F loads before. So it is done at
t(j) <= max(t(j - 1), t(j - F) + R) + M, which is at most j * M + ceil(j / F) * R. A fault has at most one other fault
before it for each other endpoint of the host, as each is in the queue once. So none starves.

M is two page moves and the answers to the packets of the endpoint that leaves. If a node does not answer, another
endpoint leaves instead after `unload_patience_ns`. Only when the endpoints of all frames have packets for silent nodes
does M last until the firmware gives one up.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.words import CommandKind, CommandStatus
from lanikai.hdl.config import NicConfig

from ..bell import Bell
from ..bus import HostBus
from ..config import cycles
from .config import AmHostConfig
from .mailbox import Mailbox
from .mmu import PagedEndpoint, Place
from .policies import find_policy

__all__ = ["Pager"]


STAGING_AREAS = 2
"""Staging areas of an endpoint: to send and to receive."""


class Pager:
    """Moves endpoints between frames and host memory.

    - `frames`: frame -> its endpoint, None if it is empty. An endpoint that leaves has its frame until it has left.
    - `queue`: endpoints with a fault, the oldest first.
    - `loads`, `unloads`: pages moved. `longest_wait_cycles`: of a fault, from its arrival until the page was there.
    - `pinned`: staging areas that are pinned for DMA.
    """

    def __init__(
        self,
        bus: HostBus,
        mailbox: Mailbox,
        *,
        nic: NicConfig,
        config: VirtualNetworkConfig,
        costs: AmHostConfig,
    ) -> None:
        self._bus, self._mailbox, self._nic, self._costs = bus, mailbox, nic, costs
        self.frames: dict[int, PagedEndpoint | None] = dict.fromkeys(range(1, config.frames + 1))
        self.queue: deque[PagedEndpoint] = deque()
        self._since: dict[PagedEndpoint, int] = {}
        self._bell = Bell(bus)
        self._policy = find_policy(costs.policy)(seed=bus.node)
        self._random = random.Random(bus.node)
        self._residency_cycles = cycles(costs.residency_ns(config), nic)
        self._patience_cycles = cycles(costs.unload_patience_ns(config), nic)
        self._leaving = self._left_cycle = self._changes = self._move_cycles = 0
        self.loads = self.unloads = self.longest_wait_cycles = self.pinned = 0

    async def fault(self, endpoint: PagedEndpoint) -> None:
        """A process has written to a page that is not resident: return when it is, or when the endpoint is gone.

        The process sleeps meanwhile.
        """
        endpoint.faults += 1
        await self.spend(self._costs.fault_ns)
        self.request(endpoint)
        await endpoint.changed.until(lambda: endpoint.place in (Place.RESIDENT, Place.GONE))
        await self.spend(self._costs.wake_ns)

    def request(self, endpoint: PagedEndpoint) -> None:
        """Queue a fault of an endpoint, unless it has one, or is resident, or gone."""
        if endpoint.queued or endpoint.place in (Place.RESIDENT, Place.LOADING, Place.GONE):
            return
        endpoint.queued = True
        self.queue.append(endpoint)
        self._since[endpoint] = self._bus.cycle
        self._ring()

    def forget(self, endpoint: PagedEndpoint) -> None:
        """Take an endpoint out of the queue."""
        if endpoint.queued:
            endpoint.queued = False
            self.queue.remove(endpoint)
            del self._since[endpoint]
            self._ring()

    async def serve(self) -> None:
        """Serve faults, for ever."""
        while True:
            await self._bell.until(lambda: self._next() is not None)
            frame = next((frame for frame, endpoint in self.frames.items() if endpoint is None), None)
            if frame is None:
                await self._make_room()
                continue
            endpoint = self._next()
            assert endpoint is not None
            since = self._since[endpoint]
            self.forget(endpoint)
            began = self._bus.cycle
            async with endpoint.lock:
                await self._load(endpoint, frame)
            self._move_cycles = 2 * (self._bus.cycle - began)
            self.longest_wait_cycles = max(self.longest_wait_cycles, self._bus.cycle - since)
            self._ring()

    def _next(self) -> PagedEndpoint | None:
        """The oldest fault that can be served: its page is not on its way back, and nobody ends it."""
        return next((one for one in self.queue if one.place is Place.HOST and not one.lock.held), None)

    async def _make_room(self) -> None:
        """Have an endpoint leave, or wait for one that leaves, or until one may."""
        now = self._bus.cycle
        deadline: int | None = None
        if self._leaving and now < self._left_cycle + self._patience_cycles:
            deadline = self._left_cycle + self._patience_cycles
        else:
            stay = [one for one in self.frames.values() if one is not None and self._may_leave(one)]
            ready = [one for one in stay if now - one.loaded_cycle >= self._residency_cycles]
            if ready:
                victim = self._policy.victim(ready)
                assert isinstance(victim, PagedEndpoint)
                self._leaving += 1
                self._left_cycle = now
                self._bus.spawn(self._leave(victim), f"pager[{self._bus.node}].unload")
                return
            if stay:
                deadline = min(one.loaded_cycle for one in stay) + self._residency_cycles
        seen = self._changes
        await self._bell.until(lambda: self._changes != seen, deadline)

    def _ring(self) -> None:
        self._changes += 1
        self._bell.ring()

    async def _load(self, endpoint: PagedEndpoint, frame: int) -> None:
        """Load an endpoint into an empty frame; the caller has its lock."""
        self.frames[frame] = endpoint
        endpoint.move(Place.LOADING, frame)
        await self._pin(endpoint, 1)
        memory = endpoint.memory
        status = await self._mailbox.ask(
            CommandKind.LOAD,
            frame=frame,
            endpoint=endpoint.number,
            page=memory.page.start,
            record=memory.record.start,
        )
        if status is not CommandStatus.OK:
            raise RuntimeError(f"node {self._bus.node}: loading endpoint {endpoint.number}: {status.name}")
        await self.spend(self._costs.map_ns)
        self.loads += 1
        endpoint.loaded_cycle = endpoint.used_cycle = self._bus.cycle
        endpoint.referenced = True
        endpoint.move(Place.RESIDENT, frame)
        self._bell.ring()

    def _may_leave(self, endpoint: PagedEndpoint) -> bool:
        return endpoint.place is Place.RESIDENT and not endpoint.lock.held

    async def _leave(self, endpoint: PagedEndpoint) -> None:
        try:
            async with endpoint.lock:
                if endpoint.place is Place.RESIDENT:
                    await self.unload(endpoint)
        finally:
            self._leaving -= 1
            self._ring()

    async def unload(self, endpoint: PagedEndpoint) -> None:
        """Unload a resident endpoint; the caller has its lock.

        First its page is unmapped. What its process writes from then on waits, and is not lost. An endpoint with
        messages that are not sent yet has a fault soon.
        """
        frame = endpoint.frame
        await endpoint.unmap(Place.UNLOADING)
        await self.spend(self._costs.map_ns)
        status = await self._mailbox.ask(CommandKind.UNLOAD, frame=frame)
        if status is not CommandStatus.OK:
            raise RuntimeError(f"node {self._bus.node}: unloading endpoint {endpoint.number}: {status.name}")
        self.unloads += 1
        await self._pin(endpoint, -1)
        self.release(endpoint, Place.HOST)
        record = endpoint.record
        if record.posted != record.taken:
            # It has messages to send, and its process may wait for nothing but their replies.
            self._bus.spawn(self._again(endpoint), f"pager[{self._bus.node}].again")

    async def _again(self, endpoint: PagedEndpoint) -> None:
        """Queue an endpoint with messages to send, after a time that is drawn by lot: below a residency and a move for
        each fault that waits, and one more.

        If all took their places at once, the frames would go round in one order for ever. Then two endpoints of a host
        that send to each other might never be resident at the same time.
        """
        turn = self._residency_cycles + self._move_cycles
        await self._bus.sleep(1 + self._random.randrange(1 + turn * (1 + len(self.queue))))
        self.request(endpoint)

    async def _pin(self, endpoint: PagedEndpoint, sign: int) -> None:
        """Pin its staging areas, or unpin them: only those of resident endpoints may not leave the memory."""
        await self.spend(STAGING_AREAS * self._costs.pin_ns)
        self.pinned += sign * STAGING_AREAS

    def release(self, endpoint: PagedEndpoint, place: Place) -> None:
        """Note that an endpoint is out of its frame, if it had one."""
        if endpoint.frame:
            self.frames[endpoint.frame] = None
        endpoint.move(place)
        self._ring()

    async def in_memory(
        self, endpoint: PagedEndpoint, change: Callable[[], None], *, unload: bool = False
    ) -> bool:
        """Call `change` while an endpoint's page is in host memory. Returns whether it was called.

        A resident endpoint is unloaded for it, if `unload`; it comes back with its next fault.
        """
        async with endpoint.lock:
            if unload and endpoint.place is Place.RESIDENT:
                await self.unload(endpoint)
            here = endpoint.place is Place.HOST
            if here:
                change()
        self._ring()
        return here

    async def end(self, endpoint: PagedEndpoint) -> None:
        """End an endpoint, wherever its page is: nothing of it is left in the card when this returns."""
        self.forget(endpoint)
        async with endpoint.lock:
            self.forget(endpoint)
            resident = endpoint.place is Place.RESIDENT
            if resident:
                await endpoint.unmap(Place.GONE)
            else:
                endpoint.move(Place.GONE)
            await self._mailbox.ask(CommandKind.KILL, endpoint=endpoint.number)
            if resident:
                await self._pin(endpoint, -1)
            self.release(endpoint, Place.GONE)

    async def spend(self, nanoseconds: int) -> None:
        """Let host CPU time pass."""
        if wait := cycles(nanoseconds, self._nic):
            await self._bus.sleep(wait)
