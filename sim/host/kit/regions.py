"""Registered memory: regions that the card lets a process' messages use, and their page tables."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from lanikai.hdl.nic.owners.protection import KEY_BITS
from lanikai.hdl.nic.owners.translation import Scope

from ..memory import Buffer
from .address_space import VirtualBuffer
from .driver_calls import DriverCalls
from .errors import KitError, ResourceError

__all__ = ["Region", "Regions"]


@dataclass(frozen=True, eq=False)
class Region:
    """A buffer that is registered: region `number` of the card, with `key`, for `owner`."""

    buffer: VirtualBuffer
    number: int
    key: int
    owner: int
    writable: bool

    @property
    def tag(self) -> int:
        """The word by which a descriptor names it."""
        return self.key << 8 | self.number


class Regions:
    """The driver's share in registered memory (nagar-thesis-2001 4.1.2: `VipRegisterMemory`; 4.2.1).

    A region has a page table in host memory, made when it is registered: its pages are pinned, so entries never change.
    A number that is used again gets another key, and the card forgets its cached entries of the pages: a tag of before
    is refused. No process is ever given a tag twice. So an old tag is never good again for as long as its owner lives,
    and for another owner it never was.

    The bound: a process registers memory `regions` x 2^`KEY_BITS` times at most (64 regions: 16,384 times). A program
    that registers for every message is to keep its regions instead.
    """

    def __init__(self, driver: DriverCalls) -> None:
        self._driver = driver
        self._free = deque(range(driver.nic.regions))
        self._keys = [0] * driver.nic.regions
        self._given: dict[int, set[tuple[int, int]]] = {}
        self._tables: dict[int, tuple[Region, Buffer]] = {}

    async def register(self, owner: int, buffer: VirtualBuffer, *, writable: bool = True) -> Region:
        """Pin a buffer and tell the card. It costs a system call, `register_ns`, `register_page_ns` a page, and the
        words with the card.

        Raises ResourceError if the card has no region left, or this process none whose tag it has never had. Raises
        MemoryUseError if the host has no memory for the page table.
        """
        driver, kit = self._driver, self._driver.kit
        if not self._free:
            raise ResourceError(
                f"node {driver.bus.node}: all {driver.nic.regions} memory regions of the card are in use: "
                "deregister one"
            )
        number, key = self._new_tag(owner)
        table = driver.pages.allocate(4 * len(buffer.pages))
        self._free.remove(number)
        self._keys[number] = key
        self._given.setdefault(owner, set()).add((number, key))
        region = Region(buffer, number, key, owner, writable)
        self._tables[number] = region, table
        await driver.spend(kit.system_call_ns + kit.register_ns + kit.register_page_ns * len(buffer.pages))
        for i, page in enumerate(buffer.pages):
            table.write((page.start | 1).to_bytes(4, "little"), 4 * i)
        await self._tell(region, table)
        return region

    def _new_tag(self, owner: int) -> tuple[int, int]:
        """A free region's number, the one that has been free for longest, and a key of it that the owner has never had.
        Raises ResourceError."""
        given, keys = self._given.get(owner, set()), 1 << KEY_BITS
        for number in self._free:
            for step in range(1, keys + 1):
                key = (self._keys[number] + step) % keys
                if (number, key) not in given:
                    return number, key
        raise ResourceError(
            f"node {self._driver.bus.node}, owner {owner}: it has had every tag of the memory regions that are free, "
            f"{len(given)} registrations in all: keep regions registered, as an old tag must never be good again"
        )

    async def deregister(self, region: Region) -> None:
        """End a region, and unpin it when the card cannot use it any more. Raises KitError if it is none."""
        driver, kit = self._driver, self._driver.kit
        self._check(region)
        _, table = self._tables.pop(region.number)
        pages = len(region.buffer.pages)
        await driver.spend(kit.system_call_ns + kit.register_ns + kit.deregister_page_ns * pages)
        await driver.set_up(
            ("REGION", {"region": region.number}),
            ("TRANSLATION_INVALIDATE", {"region": region.number, "scope": Scope.REGION}),
        )
        driver.pages.release(table)
        self._free.append(region.number)

    async def move(self, region: Region, owner: int) -> Region:
        """Give a region, which keeps its tag, to another owner of the same process. Returns it anew. Raises KitError as
        `deregister` does."""
        self._check(region)
        _, table = self._tables[region.number]
        moved = replace(region, owner=owner)
        self._tables[region.number] = moved, table
        self._given.setdefault(owner, set()).add((region.number, region.key))
        await self._driver.spend(self._driver.kit.system_call_ns)
        await self._tell(moved, table)
        return moved

    def forget(self, owner: int) -> None:
        """Forget which tags an owner has had, as its process is gone: none of them is in use."""
        self._given.pop(owner, None)

    async def _tell(self, region: Region, table: Buffer) -> None:
        await self._driver.set_up(
            ("REGION_START", {"address": region.buffer.start}),
            ("REGION_BYTES", {"bytes": region.buffer.length}),
            ("REGION_TABLE", {"address": table.start}),
            (
                "REGION",
                {
                    "region": region.number,
                    "key": region.key,
                    "owner": region.owner,
                    "writable": int(region.writable),
                    "valid": 1,
                },
            ),
        )

    def _check(self, region: Region) -> None:
        """Raise KitError for a region that is none, or none any more."""
        if self._tables.get(region.number, (None,))[0] is not region:
            raise KitError(
                f"node {self._driver.bus.node}: memory at {region.buffer.start:#x}, {region.buffer.length} bytes, is "
                "not registered: register it first, and deregister it once"
            )
