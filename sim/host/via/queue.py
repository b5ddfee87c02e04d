"""A work queue of a VI: descriptors in a ring in host memory, as the program, the agent and the card see them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanikai.firmware.via.descriptor import (
    CONTROL_BYTES,
    IMMEDIATE_OFFSET,
    STATUS_OFFSET,
    TAIL_OFFSET,
    Descriptor,
    Op,
    SlotForm,
)
from lanikai.firmware.via.layout import COUNT_BITS
from lanikai.firmware.via.shadow import SHADOW_BYTES, SHADOW_SLOTS, pack_shadow
from lanikai.hdl.nic.owners.completion_layout import STATUS_LAYOUT, CompletionStatus

from ...inside.words import Fields
from ..bus import HostBus
from ..config import KitConfig
from ..kit.driver_calls import DriverCalls
from ..kit.pages import OwnerPage
from ..memory import Buffer
from .descriptor import VipDescriptor

__all__ = ["End", "ViQueue"]

_STATUS = Fields(STATUS_LAYOUT)


@dataclass(frozen=True)
class End:
    """The end of a descriptor: `status`, `length` in bytes, `immediate` data that have come."""

    status: CompletionStatus
    length: int = 0
    immediate: bytes | None = None


@dataclass(eq=False)
class _Entry:
    """A descriptor of the queue: the card has it as number `index`, or it has ended without the card."""

    descriptor: VipDescriptor
    index: int | None
    end: End | None = None


class ViQueue:
    """A VI's queue to send, or to receive (`receive`), of `entries` slots from byte `offset` of `ring`.

    - `page`: the page of the VI's protection tag, by which the queue is rung.
    - `shadow`: byte of the page's shadow window from which on its shadow stands, or None.
    - `posted`: descriptors that the card has been told of since the VI's channel was opened.
    - `told`: those of them whose ends a completion queue has named.
    - `reserved`: descriptors that are being posted, and are not in the queue yet.
    - `waited`: somebody waits for it. `handlers`: who is to be called of an end each, with their contexts.

    Descriptors end in the order of posting, and are taken off in it.
    """

    def __init__(
        self,
        driver: DriverCalls,
        page: OwnerPage,
        channel: int,
        ring: Buffer,
        offset: int,
        *,
        form: SlotForm,
        entries: int,
        receive: bool,
        shadow: int | None,
    ) -> None:
        self._driver, self._page, self.form = driver, page, form
        self.channel, self.receive, self.entries, self.shadow = channel, receive, entries, shadow
        self.start = ring.start + offset
        self._slots = ring.data[offset : offset + form.slot_bytes * entries].reshape(entries, form.slot_bytes)
        self._queue: deque[_Entry] = deque()
        self.watch = self._bus.watch(self.start, form.slot_bytes * entries)
        self.waited = False
        self.handlers: deque[tuple[Any, Callable[..., None]]] = deque()
        self.posted = self.told = self.reserved = 0
        self._refused: Op | None = None

    @property
    def _bus(self) -> HostBus:
        return self._driver.bus

    @property
    def _kit(self) -> KitConfig:
        return self._driver.kit

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def completed(self) -> int:
        """Descriptors that the card has ended since the VI's channel was opened."""
        for entry in self._queue:
            if entry.index is not None and self._end(entry) is None:
                return entry.index
        return self.posted

    async def post(self, descriptor: VipDescriptor, content: bytes) -> None:
        """Give the card a descriptor, whose slot begins with `content`; there must be a free slot.

        If the agent ends the connection meanwhile, the descriptor ends with it.
        """
        index = self.posted % (1 << COUNT_BITS)
        slot = self._slots[index % self.entries]
        slot[STATUS_OFFSET : STATUS_OFFSET + 4] = 0
        slot[: len(content)] = bytearray(content)
        entry = _Entry(descriptor, number := self.posted)
        self._queue.append(entry)
        self.posted += 1
        if self.shadow is not None and number - self.completed < SHADOW_SLOTS:
            plain = Descriptor.unpack(content.ljust(self.form.slot_bytes, b"\0"), self.form)
            words = pack_shadow(plain, index)
            at = self.shadow + SHADOW_BYTES * (index % SHADOW_SLOTS)
            if words is not None:
                await self._page.shadow(at, words)
            else:
                # The shadow of a descriptor of the same number, of a connection before, is not to be taken for it.
                await self._page.shadow(at + SHADOW_BYTES - 4, (0,))
        if entry.end is None:
            await self._page.ring(self.channel, self.posted % (1 << COUNT_BITS), receive=self.receive)

    def add_ended(self, descriptor: VipDescriptor, status: CompletionStatus) -> None:
        """Add a descriptor that has ended without the card."""
        self._queue.append(_Entry(descriptor, None, End(status)))
        self.watch.touch()

    async def done(self) -> VipDescriptor | None:
        """Look once at the head: the descriptor, taken off, if it has ended, else None. There must be a head."""
        entry = self._queue[0]
        found = self._end(entry)
        await self._driver.spend(self._kit.look_ns if found is None else self._kit.miss_ns)
        if found is None or not self._queue or self._queue[0] is not entry:
            return None
        self._queue.popleft()
        descriptor = entry.descriptor
        descriptor.end(found.status, found.length, found.immediate, receive=self.receive)
        descriptor.posted = False
        if found.status is CompletionStatus.REMOTE_ACCESS:
            self._refused = descriptor.request.op
        return descriptor

    @property
    def refused(self) -> Op | None:
        """The operation that the other end has refused, of a descriptor in the queue or taken off; None if none was."""
        for entry in self._queue:
            end = self._end(entry)
            if end is not None and end.status is CompletionStatus.REMOTE_ACCESS:
                return entry.descriptor.request.op
        return self._refused

    @property
    def bytes(self) -> int:
        """Bytes of the ring."""
        return self.form.slot_bytes * self.entries

    def move(self, page: OwnerPage) -> None:
        """Have the empty queue rung by another page; begin anew."""
        self._page = page
        self.posted = self.told = 0

    def flush(self, status: CompletionStatus) -> int:
        """End all that the card has not ended with `status`, when it does not look at the queue any more; begin anew.

        Returns how many ends no completion queue has named yet.
        """
        untold = self.posted - self.told
        for entry in self._queue:
            if entry.end is None:
                entry.end = self._end(entry) or End(status)
                entry.index = None
        self.posted = self.told = 0
        self._refused = None
        self.watch.touch()
        return untold

    def _end(self, entry: _Entry) -> End | None:
        """The end of an entry, by the card's words if it has it."""
        if entry.end is not None or entry.index is None:
            return entry.end
        slot = self._slots[entry.index % self.entries]
        word = _word(slot, STATUS_OFFSET)
        if not _STATUS.get(word, "done"):
            return None
        status = CompletionStatus(_STATUS.get(word, "status"))
        immediate = None
        if status in (CompletionStatus.IMMEDIATE, CompletionStatus.WRITTEN):
            size = min(_word(slot, TAIL_OFFSET), self.form.immediate_bytes)
            at = CONTROL_BYTES if self.form.area_bytes else IMMEDIATE_OFFSET
            immediate = slot[at : at + size].tobytes()
        return End(status, _STATUS.get(word, "bytes"), immediate)


def _word(slot, at: int) -> int:
    return int.from_bytes(slot[at : at + 4].tobytes(), "little")
