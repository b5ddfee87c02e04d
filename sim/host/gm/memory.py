"""The memory of a GM port: that which its messages may use, and that which others may write and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lanikai.firmware.gm.layout import Operation

from ..errors import ArgumentTypeError, ClosedPortError, GmError, MemoryUseError, UnregisteredMemoryError
from ..memory import Buffer
from .library_calls import LibraryCalls
from .message import RemoteBuffer

__all__ = ["PortMemory"]


class PortMemory:
    """Registered and exposed memory of port `number` of a host; the part of `GmPort` that has to do with it."""

    def __init__(self, gm: LibraryCalls, number: int) -> None:
        self._gm = gm
        self._bus = gm.bus
        self.number = number
        self.is_open = False
        self._regions: list[Buffer] = []
        self._exposed: list[RemoteBuffer] = []

    async def dma_malloc(self, length: int) -> Buffer:
        """A new buffer, registered with this port. Raises MemoryUseError, ClosedPortError."""
        self._check_open()
        buffer = self._gm.memory.allocate(length)
        await self.register(buffer)
        return buffer

    async def dma_free(self, buffer: Buffer) -> None:
        """Deregister a buffer of `dma_malloc` and give its pages back. Raises as `deregister` does."""
        await self.deregister(buffer)
        self._gm.memory.release(buffer)

    async def register(self, buffer: Buffer) -> None:
        """Let this port's messages use a buffer. Raises MemoryUseError if it is not whole words of this
        host's memory."""
        self._check_open()
        self._check_buffer(buffer)
        self._check_aligned(buffer.start)
        if buffer.start < 0 or buffer.start + buffer.length > len(self._bus.memory):
            raise MemoryUseError(
                f"memory at {buffer.start:#x}, {buffer.length} bytes: node {self._gm.node} has "
                f"{len(self._bus.memory)} bytes"
            )
        self._check_own(buffer)
        await self._command(Operation.REGISTER, buffer.start, buffer.length)
        self._regions.append(buffer)

    async def deregister(self, buffer: Buffer) -> None:
        """Take a buffer back from this port's messages. Raises UnregisteredMemoryError, or MemoryUseError while a
        message or a token uses it."""
        self._check_open()
        self._check_buffer(buffer)
        if buffer not in self._regions:
            raise UnregisteredMemoryError(self._not_registered(buffer.start, buffer.length))
        others = [*self._regions]
        others.remove(buffer)
        if any(not _within(others, remote.start, remote.length) for remote in self._exposed):
            raise MemoryUseError(
                f"memory at {buffer.start:#x}, {buffer.length} bytes: exposed to other ports; hide it first"
            )
        if any(used.overlaps(buffer) for used in self._in_use()):
            raise MemoryUseError(
                f"memory at {buffer.start:#x}, {buffer.length} bytes: a message still uses it; wait for "
                "its end"
            )
        self._regions.remove(buffer)
        try:
            await self._command(Operation.DEREGISTER, buffer.start, buffer.length)
        except GmError:
            self._regions.append(buffer)  # the NIC still has it
            raise

    async def expose(self, buffer: Buffer) -> RemoteBuffer:
        """Let all ports write a registered buffer by `put` and read it by `get`, which need the value returned.

        The card holds them to its bounds. Raises ClosedPortError, UnregisteredMemoryError, MemoryUseError (exposed
        already), ArgumentTypeError.
        """
        self._check_open()
        self._check_buffer(buffer)
        self._check_registered(buffer.start, buffer.length)
        self._check_own(buffer)
        self._check_aligned(buffer.start)
        remote = RemoteBuffer(self._gm.node, self.number, buffer.start, buffer.length)
        if remote in self._exposed:
            raise MemoryUseError(f"memory at {buffer.start:#x}, {buffer.length} bytes: exposed already")
        await self._command(Operation.EXPOSE, buffer.start, buffer.length)
        self._exposed.append(remote)
        return remote

    async def hide(self, remote: RemoteBuffer) -> None:
        """Take exposed memory back: writes there that are under way fail. Raises ClosedPortError, MemoryUseError if
        this port has not exposed it, ArgumentTypeError."""
        self._check_open()
        self._check_remote(remote)
        if remote not in self._exposed:
            raise MemoryUseError(f"{remote} is not exposed by port {self.number} of node {self._gm.node}")
        self._exposed.remove(remote)
        await self._command(Operation.HIDE, remote.start, remote.length)

    async def _command(self, operation: Operation, first: int = 0, second: int = 0, third: int = 0) -> None:
        raise NotImplementedError

    def _in_use(self) -> Iterator[Buffer]:
        raise NotImplementedError

    def _check_open(self) -> None:
        if not self.is_open:
            raise ClosedPortError(f"port {self.number} of node {self._gm.node} is not open: open it first")

    @staticmethod
    def _check_buffer(buffer: Buffer) -> None:
        if not isinstance(buffer, Buffer):
            raise ArgumentTypeError(f"buffer: a Buffer of this host, not {type(buffer).__name__}")

    def _check_own(self, buffer: Buffer) -> None:
        if not buffer.part_of(self._bus.memory):
            raise MemoryUseError(
                f"memory at {buffer.start:#x}, {buffer.length} bytes: a buffer of another host than node "
                f"{self._gm.node}"
            )

    @staticmethod
    def _check_aligned(address: int) -> None:
        if address % 4:
            raise MemoryUseError(f"memory at {address:#x}: a DMA address is a multiple of 4")

    def _check_registered(self, address: int, length: int) -> None:
        if length < 0:
            raise MemoryUseError(f"a message of {length} bytes: 0 or more")
        if not _within(self._regions, address, length):
            raise UnregisteredMemoryError(self._not_registered(address, length))

    def _not_registered(self, address: int, length: int) -> str:
        return (
            f"memory at {address:#x}, {length} bytes, is not registered with port {self.number} of node "
            f"{self._gm.node}: take it from dma_malloc or register it"
        )

    @staticmethod
    def _check_remote(remote: RemoteBuffer) -> None:
        if not isinstance(remote, RemoteBuffer):
            raise ArgumentTypeError(
                f"remote: a RemoteBuffer, which expose gives, not {type(remote).__name__}"
            )


def _within(regions: Iterable[Buffer], address: int, length: int) -> bool:
    """Whether one of them has all of these bytes."""
    return any(r.start <= address and address + length <= r.start + r.length for r in regions)
