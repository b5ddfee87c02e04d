"""DMA-able memory of a host: pages handed out and taken back, and the uses of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import whole
from .errors import ArgumentTypeError, MemoryUseError

__all__ = ["PAGE_BYTES", "Buffer", "PageAllocator"]

PAGE_BYTES = 4096
"""A page of the host's MMU (x86); DMA-able memory comes in whole pages."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory of a host: `start` address, `length` in bytes. `data` are the very bytes that DMA reads and writes."""

    start: int
    length: int
    data: np.ndarray[Any, np.dtype[np.uint8]]

    def overlaps(self, other: Buffer) -> bool:
        """Whether the two have bytes in common."""
        return self.start < other.start + other.length and other.start < self.start + self.length

    def part_of(self, memory: np.ndarray[Any, np.dtype[np.uint8]]) -> bool:
        """Whether its bytes are those of this host's memory at its address. A buffer without bytes is anybody's."""
        if not self.length:
            return True
        place, whole_of_it = (array.__array_interface__["data"][0] for array in (self.data, memory))
        return bool(place == whole_of_it + self.start and len(self.data) >= self.length)

    def write(self, content: bytes, offset: int = 0) -> None:
        """Put bytes into it. Raises MemoryUseError if they do not fit, ArgumentTypeError."""
        offset = whole("offset", offset)
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError(f"content: bytes to write, not {type(content).__name__}")
        if offset < 0 or offset + len(content) > self.length:
            raise MemoryUseError(
                f"{len(content)} bytes at {offset} do not fit a buffer of {self.length} bytes"
            )
        self.data[offset : offset + len(content)] = np.frombuffer(content, np.uint8)

    def read(self, length: int | None = None, offset: int = 0) -> bytes:
        """A copy of `length` bytes (all, by default) from `offset`. Raises MemoryUseError if it has not so many,
        ArgumentTypeError."""
        offset = whole("offset", offset)
        length = self.length - offset if length is None else whole("length", length)
        if offset < 0 or length < 0 or offset + length > self.length:
            raise MemoryUseError(f"{length} bytes at {offset} are not in a buffer of {self.length} bytes")
        return self.data[offset : offset + length].tobytes()


class PageAllocator:
    """Hands out runs of pages of `memory`, first fit. Page 0 stays unused, so that no buffer is at address 0."""

    def __init__(self, memory: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        self._memory = memory
        self._free = [(PAGE_BYTES, len(memory) // PAGE_BYTES * PAGE_BYTES - PAGE_BYTES)]
        self._used: dict[int, int] = {}

    @property
    def free_bytes(self) -> int:
        """Bytes not handed out."""
        return sum(size for _, size in self._free)

    def allocate(self, length: int) -> Buffer:
        """A page-aligned buffer of `length` bytes (at least a page is taken). Raises MemoryUseError,
        ArgumentTypeError."""
        length = whole("length", length)
        if length < 0:
            raise MemoryUseError(f"a buffer of {length} bytes: 0 or more")
        size = max(1, -(-length // PAGE_BYTES)) * PAGE_BYTES
        for place, (start, room) in enumerate(self._free):
            if room >= size:
                self._free[place : place + 1] = [(start + size, room - size)] if room > size else []
                self._used[start] = size
                return Buffer(start, length, self._memory[start : start + length])
        largest = max((room for _, room in self._free), default=0)
        raise MemoryUseError(
            f"no room for {length} bytes of DMA-able memory: the largest free run has {largest} bytes, the "
            f"host {len(self._memory)} in all"
        )

    def release(self, buffer: Buffer) -> None:
        """Take a buffer's pages back. Raises MemoryUseError if they were not handed out."""
        size = self._used.pop(buffer.start, None)
        if size is None:
            raise MemoryUseError(f"memory at {buffer.start:#x} was not allocated here, or is free already")
        self._free.append((buffer.start, size))
        self._free.sort()
        joined: list[tuple[int, int]] = []
        for start, room in self._free:
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + room)
            else:
                joined.append((start, room))
        self._free = joined
