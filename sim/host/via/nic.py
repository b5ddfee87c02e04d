"""An open NIC: all that a process has of its card."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import MemoryUseError
from ..kit.address_space import AddressSpace, VirtualBuffer
from ..kit.driver_calls import DriverCalls
from ..kit.pages import OwnerPage
from ..kit.regions import Region
from ..memory import PAGE_BYTES
from .attributes import MemAttributes
from .errors import ErrorReport, VipError, VipReturn

__all__ = ["Ptag", "Registered", "VipNic"]

MOST_REPORTS = 64
"""Asynchronous errors that are kept until there is a handler."""


@dataclass(eq=False)
class Ptag:
    """VIP_PROTECTION_HANDLE: an owner of the card, by whose page its VIs are rung, and whose regions they may use.

    - `users`: VIs and memory that have it.
    - `shadows`: free places for a VI's queues in the page's shadow window.
    """

    nic: VipNic
    owner: int
    page: OwnerPage
    shadows: deque[int]
    users: int = 0


@dataclass(eq=False)
class Registered:
    """Registered memory: the card's region, and its attributes."""

    region: Region
    attributes: MemAttributes


class VipNic:
    """VIP_NIC_HANDLE: the open NIC of one process, made by `VipOpenNic`.

    - `node`, `driver`: the node, and its kernel agent.
    - `owner`, `page`: the page of the card's window by which its completion queues are consumed.
    - `ptags`, `memory` (handle -> registered memory): what it has, beside what the agent knows.
    - `named`: it uses the name service.
    - `alive`: False once it is closed, or the process is gone.

    `allocate` and `release` are the process' own memory, as a heap gives it, `most_memory_bytes` at most.
    """

    def __init__(self, driver: DriverCalls, owner: int, *, most_memory_bytes: int | None = None) -> None:
        self.driver, self.owner = driver, owner
        self.node = driver.bus.node
        self.page = OwnerPage(driver.bus, owner)
        self.alive = True
        self.ptags: list[Ptag] = []
        self.memory: dict[int, Registered] = {}
        self.named = False
        self._most_memory_bytes = most_memory_bytes
        self._space = AddressSpace(driver.pages)
        self._buffers: dict[int, VirtualBuffer] = {}
        self._handler: Callable[[Any, ErrorReport], None] | None = None
        self._context: Any = None
        self._reports: deque[ErrorReport] = deque(maxlen=MOST_REPORTS)

    def __repr__(self) -> str:
        return f"node {self.node}, process {self.owner}"

    def allocate(self, length: int) -> VirtualBuffer:
        """Memory of the process, zero, not registered. Raises MemoryUseError; VipError if the process is gone."""
        self.check()
        has = PAGE_BYTES * sum(len(buffer.pages) for buffer in self._buffers.values())
        wants, most = PAGE_BYTES * max(1, -(-length // PAGE_BYTES)), self._most_memory_bytes
        if most is not None and has + wants > most:
            raise MemoryUseError(
                f"{self}: it has {has} bytes of memory and wants {wants}, and a process may have {most} "
                "(ViaConfig.limits.most_memory_bytes)"
            )
        buffer = self._space.allocate(length)
        self._buffers[buffer.start] = buffer
        return buffer

    def release(self, buffer: VirtualBuffer) -> None:
        """Give memory back. Raises MemoryUseError for what was not allocated here, or is registered."""
        if self._buffers.get(buffer.start) is not buffer:
            raise MemoryUseError(
                f"{self}: memory at {buffer.start:#x} was not allocated here, or is free already"
            )
        end = buffer.start + max(1, buffer.length)
        for one in self.memory.values():
            held = one.region.buffer
            if held.start < end and buffer.start < held.start + held.length:
                raise MemoryUseError(
                    f"{self}: memory at {buffer.start:#x} is registered: deregister it before it is given back"
                )
        del self._buffers[buffer.start]
        self._space.release(buffer)

    def release_all(self) -> None:
        """Give all memory back, none of which may be registered any more."""
        for buffer in list(self._buffers.values()):
            self.release(buffer)

    def find(self, address: int, length: int) -> VirtualBuffer | None:
        """These bytes of the process' memory; None if they are not all in one buffer of it."""
        for buffer in self._buffers.values():
            if buffer.start <= address and address + length <= buffer.start + buffer.length:
                first = (address - buffer.start) // PAGE_BYTES
                last = (address - buffer.start + max(length, 1) - 1) // PAGE_BYTES
                return replace(buffer, start=address, length=length, pages=buffer.pages[first : last + 1])
        return None

    def check(self) -> None:
        """Raise VipError if the process is gone, or has closed the NIC."""
        if not self.alive:
            raise VipError(VipReturn.VIP_ERROR, f"{self}: it has closed this NIC, or is no more")

    def handle_errors(self, context: Any, handler: Callable[[Any, ErrorReport], None] | None) -> None:
        """Call `handler(context, report)` of each asynchronous error, those that have been before first; None: keep
        them, the last `MOST_REPORTS`."""
        self._context, self._handler = context, handler
        while handler is not None and self._reports:
            handler(context, self._reports.popleft())

    def report(self, report: ErrorReport) -> None:
        """Tell the process of an asynchronous error."""
        if not self.alive:
            return
        if self._handler is None:
            self._reports.append(report)
        else:
            self._handler(self._context, report)
