"""The host's page table as far as endpoints go: where each endpoint's page is, and who may write it.

A process reads and writes its endpoint's page by `EndpointPage`. The page is mapped to a frame of the card while the
endpoint is resident, else to host memory, where it may be read and not written (chun-1998 3.2). This is the protection
of virtual networks: a process has no other way to the card.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto

from lanikai.firmware.am.layout import AmLayout
from lanikai.firmware.am.words import EndpointRecord
from lanikai.firmware.lock import Lock
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES

from ..bell import Bell
from ..bus import HostBus
from .errors import AmCode, AmError
from .memory import EndpointMemory

__all__ = ["EndpointPage", "PagedEndpoint", "Place"]


class Place(Enum):
    """The place of an endpoint's page."""

    HOST = auto()
    """In host memory: reads go there, writes fault."""
    LOADING = auto()
    """On its way to a frame: reads go to host memory, writes fault."""
    RESIDENT = auto()
    """In a frame: reads and writes go there."""
    UNLOADING = auto()
    """On its way back: host memory is old, so reads wait and writes fault."""
    GONE = auto()
    """The endpoint is no more."""


class PagedEndpoint:
    """An endpoint as the driver has it: endpoint `number` of a node, of process `owner`.

    - `memory`: its page, record and staging areas in host memory.
    - `place`, `frame`: where its page is; frame 0: in none.
    - `loaded_cycle`, `used_cycle`, `referenced`: for the choice of a victim.
    - `queued`: it waits in the driver's queue of faults. `faults`: how often its process has waited for it.
    - `leaving`: it has been chosen to leave its frame.
    - `partners`: endpoints of its host for which it had messages when it left its frame; `last_partner` had its turn
      last (`partners.next_partner`).
    - `changed`: rung when its place changes; then `moved` is called.
    - `lock`: whoever moves or ends it has it. `ending`, `ended`: somebody ends it, and has done so.
    """

    def __init__(self, bus: HostBus, number: int, owner: int, memory: EndpointMemory) -> None:
        self.number, self.owner, self.memory = number, owner, memory
        self.place, self.frame = Place.HOST, 0
        self.loaded_cycle = self.used_cycle = 0
        self.referenced = self.queued = self.leaving = False
        self.partners: set[int] = set()
        self.last_partner = 0
        self.faults = 0
        self.changed = Bell(bus)
        self.moved: Callable[[], None] = lambda: None
        self.lock = Lock(bus.flag)
        self.ending = self.ended = False
        self.accesses = 0
        self.words = memory.page.data.view("<u4")

    @property
    def record(self) -> EndpointRecord:
        """Its record in host memory, which is true while it is not resident."""
        return EndpointRecord.unpack(self.memory.record.data.view("<u4").tolist())

    def set_record(self, record: EndpointRecord) -> None:
        """Write the record; it must not be resident."""
        self.memory.record.data.view("<u4")[:] = record.pack()

    def move(self, place: Place, frame: int = 0) -> None:
        """Note a change of place."""
        self.place, self.frame = place, frame
        self.changed.ring()
        self.moved()

    async def unmap(self, place: Place) -> None:
        """Take the mapping away, and return when all accesses that have begun by it have ended.

        Those are one burst of each thread at most. What a process writes from now on faults.
        """
        self.move(place, self.frame)
        await self.changed.until(lambda: not self.accesses)


class EndpointPage:
    """An endpoint's page, and the doorbell page that goes with its frame, as its process has them mapped.

    A process may write any word of the page, at any time. A burst of words goes to one place. Raises AmError
    (AM_ERR_NOT_INIT) when the endpoint is no more, and (AM_ERR_BAD_ARG) outside of the page.
    """

    def __init__(
        self,
        bus: HostBus,
        layout: AmLayout,
        endpoint: PagedEndpoint,
        *,
        fault: Callable[[PagedEndpoint], Awaitable[None]],
    ) -> None:
        self._bus, self._layout, self._fault = bus, layout, fault
        self.endpoint = endpoint

    @property
    def resident(self) -> bool:
        """Whether accesses go to the card."""
        return self.endpoint.place is Place.RESIDENT

    @property
    def at_rest(self) -> bool:
        """Whether it is in host memory, where reads take no time on the bus and nothing can come."""
        return self.endpoint.place in (Place.HOST, Place.LOADING)

    async def read_all(self, offsets: Sequence[int], *, after_cycles: int = 0) -> list[int]:
        """Words at offsets of the page, once `after_cycles` are over. Those of host memory take no time beside it."""
        self._check(offsets)
        one = self.endpoint
        while True:
            self._check_alive()
            if one.place is not Place.UNLOADING:
                break
            await one.changed.until(lambda: one.place is not Place.UNLOADING)
        if one.place is not Place.RESIDENT:
            words = [int(one.words[offset // 4]) for offset in offsets]
            if after_cycles:
                await self._bus.sleep(after_cycles)
            return words
        one.accesses += 1
        try:
            frame = self._layout.frame(one.frame)
            return await self._bus.read_all([frame + offset for offset in offsets], after_cycles=after_cycles)
        finally:
            self._ended()

    async def read(self, offset: int, *, after_cycles: int = 0) -> int:
        """The word at an offset of the page."""
        (word,) = await self.read_all([offset], after_cycles=after_cycles)
        return word

    async def write_all(
        self, writes: Sequence[tuple[int, int]], *, ring: int | None = None, after_cycles: int = 0
    ) -> None:
        """Write (offset, word) each, then ring the doorbell with `ring`. A fault makes it wait until all can be
        written."""
        self._check([offset for offset, _ in writes])
        one = self.endpoint
        while True:
            self._check_alive()
            if one.place is Place.RESIDENT:
                break
            await self._fault(one)
        one.accesses += 1
        one.used_cycle, one.referenced = self._bus.cycle, True
        try:
            frame = self._layout.frame(one.frame)
            words = [(frame + offset, word) for offset, word in writes]
            if ring is not None:
                words.append((DOORBELL_BASE + DOORBELL_PAGE_BYTES * one.frame, ring))
            await self._bus.write_all(words, after_cycles=after_cycles)
        finally:
            self._ended()

    async def until_moved(self, cycles: int) -> None:
        """Return when the page is somewhere else, or after so many cycles."""
        one, place = self.endpoint, self.endpoint.place
        await one.changed.until(lambda: one.place is not place, self._bus.cycle + cycles)

    def _ended(self) -> None:
        self.endpoint.accesses -= 1
        if not self.endpoint.accesses:
            self.endpoint.changed.ring()

    def _check(self, offsets: Sequence[int]) -> None:
        size = self._layout.config.page_bytes
        for offset in offsets:
            if offset % 4 or not 0 <= offset < size:
                raise AmError(
                    AmCode.AM_ERR_BAD_ARG,
                    f"node {self._bus.node}, endpoint {self.endpoint.number}: byte {offset} of its page: a multiple "
                    f"of 4 below {size}",
                )

    def _check_alive(self) -> None:
        if self.endpoint.place is Place.GONE:
            raise AmError(
                AmCode.AM_ERR_NOT_INIT, f"node {self._bus.node}: endpoint {self.endpoint.number} is no more"
            )
