"""A process as the driver has it: whether it lives, and its memory."""

from __future__ import annotations

from ..errors import MemoryUseError
from ..memory import Buffer, PageAllocator
from .errors import AmCode, AmError

__all__ = ["Owner"]


class Owner:
    """Process `number` of `node`; 0 until the driver has admitted it.

    - `alive`: whether it may call; False once it has ended.
    - `buffers`: memory that it has allocated.
    """

    def __init__(self, node: int, pages: PageAllocator) -> None:
        self.number, self.node = 0, node
        self.alive = False
        self.buffers: list[Buffer] = []
        self._pages = pages

    def __repr__(self) -> str:
        return f"node {self.node}, process {self.number}"

    def check(self) -> None:
        """Raise AmError if it is no more."""
        if not self.alive:
            raise AmError(AmCode.AM_ERR_NOT_INIT, f"{self}: it is no more")

    def ended(self) -> None:
        """Wake its threads, which find that it is no more; the driver calls this."""

    def allocate(self, length: int) -> Buffer:
        """Memory of the process, zero. Raises AmError if the host has not so much, or the process is gone."""
        self.check()
        try:
            buffer = self._pages.allocate(length)
        except MemoryUseError as error:
            raise AmError(AmCode.AM_ERR_RESOURCE, f"{self}: {error}") from None
        buffer.data[:] = 0
        self.buffers.append(buffer)
        return buffer

    def owns(self, buffer: Buffer) -> bool:
        """Whether these bytes are all in one buffer of its own."""
        return any(
            one.start <= buffer.start and buffer.start + buffer.length <= one.start + one.length
            for one in self.buffers
        )

    def release(self, buffer: Buffer) -> None:
        """Give memory back that is no endpoint's segment. Raises AmError for what was not allocated here."""
        if not any(buffer is one for one in self.buffers):
            raise AmError(AmCode.AM_ERR_BAD_ARG, f"{self}: memory at {buffer.start:#x} is not its own")
        self.buffers = [one for one in self.buffers if one is not buffer]
        self._pages.release(buffer)

    def release_all(self) -> None:
        """Give all memory back."""
        for buffer in self.buffers:
            self._pages.release(buffer)
        self.buffers = []
