"""A card with VIA in plain Python: its window as the host sees it, and host memory as the card does, checked."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.descriptor import Segment
from lanikai.firmware.via.layout import (
    AGENT_CHANNEL,
    COUNT_BITS,
    RECORD_WORDS,
    ViaLayout,
    ViRecord,
)
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.owner_page import CONSUME_WORD, DOORBELL_WORD, PART_BYTES, PagePart
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE
from lanikai.sim.host.bus import BusError
from lanikai.sim.inside.words import Fields

from ..firmware.scheduler import World

PIO = 5
"""Cycles of a programmed write."""
_DOORBELL, _CONSUME = Fields(DOORBELL_WORD), Fields(CONSUME_WORD)
_HOST = {REGISTER_BASE + register.offset: name for name, register in HOST_REGISTERS.items()}


class Watch:
    """A watch of a range of host memory."""

    def __init__(self, world: World, start: int, length: int) -> None:
        self.start, self.end = start, start + length
        self._flag = world.flag()

    async def wait(self) -> None:
        await self._flag.wait()
        self._flag.clear()

    def touch(self) -> None:
        self._flag.set()


@dataclass
class Ring:
    """A completion queue of the card."""

    owner: int
    address: int
    entries: int
    produced: int = 0
    consumed: int = 0
    armed: bool = False
    dead: bool = False


@dataclass
class Half:
    """A work queue: descriptors posted and taken."""

    posted: int = 0
    taken: int = 0


@dataclass
class Channel:
    """A channel that its owner may ring."""

    owner: int
    seen: ViRecord | None = None
    send: Half = field(default_factory=Half)
    receive: Half = field(default_factory=Half)


class CardWindow:
    """A node's card and its `HostBus`, in a `Net`. `dead`: it takes and gives nothing any more."""

    def __init__(self, net: Any, node: int, *, nic: NicConfig, config: ViaConfig, memory_bytes: int) -> None:
        self.net, self.world, self.node, self.nic = net, net.world, node, nic
        self.layout = ViaLayout(nic, config)
        self.config = config
        self.memory = np.zeros(memory_bytes, np.uint8)
        self.sleep, self.flag, self.spawn = self.world.sleep, self.world.flag, self.world.spawn
        self.sram: dict[int, int] = {}
        self.registers: dict[str, dict[str, int]] = {}
        self.watches: list[Watch] = []
        self.channels: dict[int, Channel] = {AGENT_CHANNEL: Channel(0)}
        self.regions: dict[int, dict[str, int]] = {}
        self.rings: dict[int, Ring] = {}
        self.line = self.world.flag()
        self.told: deque[int] = deque()
        self.says = False
        self.noticed = 0
        self.waiting_notices: deque[tuple[int, int, int, bytes]] = deque()
        self.dropped = 0
        self.dead = False
        self.under_way: set[int] = set()

    # The host's side: `HostBus`.

    @property
    def cycle(self) -> int:
        return self.world.cycle

    def watch(self, start: int, length: int) -> Watch:
        self.watches.append(Watch(self.world, start, length))
        return self.watches[-1]

    async def interrupt(self) -> None:
        await self.line.wait()

    async def read(self, address: int) -> int:
        await self.sleep(PIO)
        if _HOST.get(address) == "HOST_COMPLETION":
            found = self.told.popleft() | 1 << 31 if self.told else 0
            self._raise()
            return found
        return self.sram.get(address, 0)

    async def write_all(self, writes: list[tuple[int, int]], *, after_cycles: int = 0) -> None:
        for address, data in writes:
            await self.write(address, data)

    async def write(self, address: int, data: int) -> None:
        await self.sleep(PIO)
        if address >= DOORBELL_BASE:
            self._page((address - DOORBELL_BASE) >> 12, address & 0xFFF, data)
        elif address in _HOST:
            if _HOST[address] == "HOST_ISR":
                self.says = False
                self._raise()
        else:
            self.sram[address] = data

    def _page(self, owner: int, offset: int, data: int) -> None:
        part = PagePart(offset >> 10)
        if part is PagePart.COMPLETION:
            ring = self.rings.get(_CONSUME.get(data, "queue"))
            if ring is None or ring.owner != owner:
                raise BusError(f"node {self.node}: page {owner} consumes what is not its own")
            ring.consumed = _CONSUME.get(data, "index")
            if _CONSUME.get(data, "arm"):
                ring.armed = True
                if ring.produced % 65536 != ring.consumed:
                    self._tell(ring)
            return
        if part is PagePart.SHADOW:
            if not self.layout.window_bytes:
                raise BusError(f"node {self.node}: there are no shadow windows here")
            self.sram[self.layout.window(owner) + offset % PART_BYTES] = data
            return
        number = _DOORBELL.get(data, "channel")
        channel = self.channels.get(number)
        if channel is None or channel.owner != owner:
            raise BusError(f"node {self.node}: page {owner} rings what is not its own")
        if number == AGENT_CHANNEL:
            self.spawn(self._mailbox(), "mailbox")
            return
        half = channel.receive if part is PagePart.RECEIVE else channel.send
        count = _DOORBELL.get(data, "word") % (1 << COUNT_BITS)
        half.posted += (count - half.posted) % (1 << COUNT_BITS)
        if half is channel.send:
            self._kick(number)

    def _raise(self) -> None:
        if self.told or self.says:
            self.line.set()
        else:
            self.line.clear()

    def _tell(self, ring: Ring) -> None:
        ring.armed = False
        self.told.append(next(number for number, one in self.rings.items() if one is ring))
        self._raise()

    def put(self, address: int, content: bytes) -> None:
        """Write host memory, as a DMA does."""
        self.memory[address : address + len(content)] = np.frombuffer(content, np.uint8)
        for watch in self.watches:
            if watch.start < address + len(content) and address < watch.end:
                watch.touch()

    def get(self, address: int, length: int) -> bytes:
        return self.memory[address : address + length].tobytes()

    def check(
        self, owner: int, tag: int, address: int, length: int, *, write: bool = False
    ) -> CompletionStatus:
        region = self.regions.get(tag & 0xFF)
        if region is None or region["key"] != tag >> 8:
            return CompletionStatus.NO_REGION
        if region["owner"] != owner:
            return CompletionStatus.NOT_OWNER
        if address < region["start"] or address + length > region["start"] + region["bytes"]:
            return CompletionStatus.OUTSIDE
        if write and not region["writable"]:
            return CompletionStatus.READ_ONLY
        return CompletionStatus.OK

    def places(self, tag: int, address: int, length: int) -> list[tuple[int, int]]:
        region, found = self.regions[tag & 0xFF], []
        while length:
            page = (address >> 12) - (region["start"] >> 12)
            entry = int.from_bytes(self.get(region["table"] + 4 * page, 4), "little")
            assert entry & 1, "a page without an entry"
            size = min(length, 4096 - address % 4096)
            found.append((entry & ~0xFFF | address & 0xFFF, size))
            address, length = address + size, length - size
        return found

    def load(self, tag: int, address: int, length: int) -> bytes:
        return b"".join(self.get(at, size) for at, size in self.places(tag, address, length))

    def store(self, tag: int, address: int, content: bytes) -> None:
        for at, size in self.places(tag, address, len(content)):
            self.put(at, content[:size])
            content = content[size:]

    def scatter(self, owner: int, segments: tuple[Segment, ...], content: bytes) -> CompletionStatus:
        for segment in segments:
            part, content = content[: segment.bytes], content[segment.bytes :]
            status = self.check(owner, segment.handle, segment.address, len(part), write=True)
            if status is not CompletionStatus.OK:
                return status
            self.store(segment.handle, segment.address, part)
        return CompletionStatus.OK

    def record(self, channel: int) -> ViRecord | None:
        at = self.layout.record(channel)
        return ViRecord.unpack([self.sram.get(at + 4 * i, 0) for i in range(RECORD_WORDS)])

    async def _mailbox(self) -> None:
        """The agent has rung."""
        raise NotImplementedError

    def _kick(self, number: int) -> None:
        """A process has rung to send."""
        raise NotImplementedError
