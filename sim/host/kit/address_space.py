"""A process' virtual memory: pages anywhere in host memory, as a card with page tables sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import MemoryUseError
from ..memory import PAGE_BYTES, Buffer, PageAllocator

__all__ = ["AddressSpace", "VirtualBuffer"]

BASE = 0x1000_0000
"""First virtual address that is handed out: far from the addresses of host memory, so that one is not taken for the
other."""


@dataclass(frozen=True, eq=False)
class VirtualBuffer:
    """Memory of a process: `start` virtual address, `length` in bytes, `pages`, each a page of host memory."""

    start: int
    length: int
    pages: tuple[Buffer, ...]

    def pieces(self, offset: int, length: int) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
        """The very bytes of host memory, page by page. Raises ValueError for bytes that are not in the buffer."""
        if offset < 0 or length < 0 or offset + length > self.length:
            raise ValueError(f"{length} bytes at {offset}: the buffer has {self.length} bytes")
        at = self.start % PAGE_BYTES + offset
        while length:
            page, place = divmod(at, PAGE_BYTES)
            size = min(length, PAGE_BYTES - place)
            yield self.pages[page].data[place : place + size]
            at, length = at + size, length - size

    def write(self, content: bytes, offset: int = 0) -> None:
        """Put bytes into it. Raises ValueError if they do not fit."""
        done = 0
        for piece in self.pieces(offset, len(content)):
            piece[:] = np.frombuffer(content[done : done + len(piece)], np.uint8)
            done += len(piece)

    def read(self, length: int | None = None, offset: int = 0) -> bytes:
        """A copy of `length` bytes (all, by default) from `offset` on. Raises ValueError."""
        wanted = self.length - offset if length is None else length
        return b"".join(piece.tobytes() for piece in self.pieces(offset, wanted))


class AddressSpace:
    """Hands out virtual memory of one process, page-aligned.

    Neighbouring pages are no neighbours in host memory: they lie the other way round, as in a machine that has been up
    for some time. So a program that forgets to translate, or translates only the first page, is found out.
    """

    def __init__(self, pages: PageAllocator) -> None:
        self._pages, self._next = pages, BASE

    def allocate(self, length: int) -> VirtualBuffer:
        """`length` bytes (at least a page is taken), zero. Raises MemoryUseError if the host has no room, or for a
        negative length."""
        if length < 0:
            raise MemoryUseError(f"a buffer of {length} bytes: 0 or more")
        count = max(1, -(-length // PAGE_BYTES))
        frames: list[Buffer] = []
        try:
            for _ in range(count):
                frames.insert(0, self._pages.allocate(PAGE_BYTES))
        except MemoryUseError:
            for frame in frames:
                self._pages.release(frame)
            raise
        for frame in frames:
            frame.data[:] = 0
        start, self._next = self._next, self._next + count * PAGE_BYTES
        return VirtualBuffer(start, length, tuple(frames))

    def release(self, buffer: VirtualBuffer) -> None:
        """Give the pages of a buffer back; it must not be registered any more. Raises MemoryUseError."""
        for page in buffer.pages:
            self._pages.release(page)
