"""Endpoint faults: which endpoint comes into which frame, and which one leaves for it (chun-1998 3.2).

Faults are served in the order of their arrival, one at a time. An endpoint that has come stays for `residency_ns`, so
that it does something before it leaves.

**The bound on a wait.** Let R be the residency, F the number of frames, and M the time in which a page leaves and
another one comes. The j-th load from now takes a frame whose endpoint came at least F loads before. So it is done at
t(j) <= max(t(j - 1), t(j - F) + R) + M, which is at most j * M + ceil(j / F) * R. A fault has at most one other fault
before it for each other endpoint of the host, as each is in the queue once. So none starves.

**Partners.** A message to an endpoint of the same host needs both to be resident. Say an endpoint is served that had
such messages when it left. Then the next load is that of the endpoint for which they are, its partner. Both stay for a
residency from then on. The partner keeps its own place in the queue. Several partners take turns, a fault each.

So a fault has two loads at most, and each load comes at most R + M after the one before. The j-th fault from now is
served after 2 * j * (R + M) at most. An endpoint with p partners has each of them by the p-th time that it is served.

M is two page moves and the answers to the packets of the endpoint that leaves. If a node does not answer, another
endpoint leaves instead after `unload_patience_ns`. Only when the endpoints of all frames have packets for silent nodes
does M last until the firmware gives one up.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.layout import AmLayout
from lanikai.firmware.am.words import CommandKind, CommandStatus
from lanikai.hdl.config import NicConfig

from ..bell import Bell
from ..bus import HostBus
from ..config import cycles
from .config import AmHostConfig
from .mailbox import Mailbox
from .mmu import PagedEndpoint, Place
from .partners import next_partner, unsent_here
from .policies import find_policy

__all__ = ["Pager"]


STAGING_AREAS = 2
"""Staging areas of an endpoint: to send and to receive."""


@dataclass(frozen=True, eq=False)
class _Pair:
    """An endpoint that stays until its partner has come, or until a cycle."""

    endpoint: PagedEndpoint
    partner: PagedEndpoint
    lapse_cycle: int


class Pager:
    """Moves endpoints between frames and host memory.

    - `frames`: frame -> its endpoint, None if it is empty. An endpoint that leaves has its frame until it has left.
    - `queue`: endpoints with a fault, the oldest first.
    - `find`: number -> endpoint of the host, None if there is none.
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
        self._layout = AmLayout(nic, config)
        self.find: Callable[[int], PagedEndpoint | None] = lambda number: None
        self._pair: _Pair | None = None
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
            self._since.pop(endpoint, None)
            self._ring()

    async def serve(self) -> None:
        """Serve faults, for ever."""
        while True:
            await self._bell.until(lambda: self._next() is not None)
            endpoint = self._next()
            assert endpoint is not None
            if endpoint.place is Place.RESIDENT:
                self.forget(endpoint)
                self._bring_partner(endpoint)
                continue
            frame = next((frame for frame, one in self.frames.items() if one is None), None)
            if frame is None:
                await self._make_room()
                continue
            began, pair = self._bus.cycle, self._pair
            async with endpoint.lock:
                await self._load(endpoint, frame)
            now = self._bus.cycle
            self._move_cycles = 2 * (now - began)
            self.longest_wait_cycles = max(self.longest_wait_cycles, now - self._since.pop(endpoint, now))
            if pair is not None and pair.partner is endpoint:
                pair.endpoint.loaded_cycle = now
                self._pair = None
            else:
                self.forget(endpoint)
                self._bring_partner(endpoint)
            self._ring()

    def _next(self) -> PagedEndpoint | None:
        """The endpoint that is to be loaded next: a partner, else that of the oldest fault that can be served. Its page
        is not on its way back, and nobody ends it. One that has come as a partner has its turn without a load."""
        if self._pair is not None and self._can_come(self._pair.partner):
            return self._pair.partner
        return next((one for one in self.queue if self._can_come(one) or self._is_here(one)), None)

    def _can_come(self, one: PagedEndpoint) -> bool:
        return one.place is Place.HOST and not one.lock.held

    def _is_here(self, one: PagedEndpoint) -> bool:
        return self._may_leave(one) and not one.leaving

    def _bring_partner(self, endpoint: PagedEndpoint) -> None:
        """An endpoint has its turn: have a partner of its resident, too, for a residency from now or from its load.

        If that cannot come for long, as its page waits for a silent node, the endpoint need not stay for it.
        """
        number = next_partner(endpoint) if self._pair is None and len(self.frames) > 1 else None
        partner = None if number is None else self.find(number)
        now = self._bus.cycle
        if partner is None or partner.place is Place.GONE:
            return
        if self._is_here(partner):
            partner.loaded_cycle = endpoint.loaded_cycle = now
            return
        lapse = now + 2 * (self._residency_cycles + self._move_cycles) + self._patience_cycles
        self._pair = _Pair(endpoint, partner, lapse)

    async def _make_room(self) -> None:
        """Have an endpoint leave, or wait for one that leaves, or until one may."""
        now = self._bus.cycle
        deadline: int | None = None
        pair = self._pair
        if pair is not None and (now >= pair.lapse_cycle or pair.partner.place is Place.GONE):
            pair = self._pair = None
        if self._leaving and now < self._left_cycle + self._patience_cycles:
            deadline = self._left_cycle + self._patience_cycles
        else:
            stay = [
                one
                for one in self.frames.values()
                if one is not None and self._may_leave(one) and not (pair and one is pair.endpoint)
            ]
            ready = [one for one in stay if now - one.loaded_cycle >= self._residency_cycles]
            if ready:
                victim = self._policy.victim(ready)
                assert isinstance(victim, PagedEndpoint)
                self._leaving += 1
                self._left_cycle, victim.leaving = now, True
                self._bus.spawn(self._leave(victim), f"pager[{self._bus.node}].unload")
                return
            if stay:
                deadline = min(one.loaded_cycle for one in stay) + self._residency_cycles
        if pair is not None:
            deadline = pair.lapse_cycle if deadline is None else min(deadline, pair.lapse_cycle)
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
        endpoint.leaving = False
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
        endpoint.partners = unsent_here(endpoint, self._layout, self._bus.node)
        if record.posted != record.taken:
            # It has messages to send, and its process may wait for nothing but their replies.
            self._bus.spawn(self._again(endpoint), f"pager[{self._bus.node}].again")

    async def _again(self, endpoint: PagedEndpoint) -> None:
        """Queue an endpoint with messages to send, after a time that is drawn by lot: below a residency and a move for
        each fault that waits, and one more.

        If all took their places at once, the frames of two hosts might go round in step for ever. So an endpoint might
        never be resident at the same time as that of the other host to which it sends.
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
