"""The outgoing half of a GM port: send, put, get, abort."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lanikai.firmware.gm.layout import Opening, Operation, Purpose, SendDescriptor
from lanikai.firmware.lock import Lock

from ..checks import whole
from ..errors import ArgumentTypeError, GmError, MemoryUseError, MessageTooLongError, NoTokensError
from ..memory import Buffer
from .library_calls import LibraryCalls
from .memory import PortMemory
from .message import RemoteBuffer, SendCallback, SendHandle
from .sizes import length_for_size

__all__ = ["PortSends"]


@dataclass(frozen=True)
class _Send:
    """A message on its way out."""

    handle: SendHandle
    buffer: Buffer
    node: int
    port: int
    length: int


class PortSends(PortMemory):
    """The sends of a port; the part of `GmPort` that has to do with them. `send_tokens`: how many are free."""

    def __init__(self, gm: LibraryCalls, number: int) -> None:
        super().__init__(gm, number)
        self._counts = gm.counts[number]
        self._sends: dict[int, _Send] = {}
        self._free_sends = deque(range(gm.gm.send_tokens))
        self._idle = gm.bus.flag()
        self._turns = Lock(gm.bus.flag)

    @property
    def send_tokens(self) -> int:
        """Free send tokens."""
        return len(self._free_sends)

    async def send(
        self,
        buffer: Buffer,
        length: int | None = None,
        *,
        node: int,
        port: int,
        priority: int = 0,
        offset: int = 0,
        size: int | None = None,
        callback: SendCallback | None = None,
    ) -> SendHandle:
        """Send `length` bytes (all, by default) from `offset` of a registered buffer to `port` of `node`: to its
        receive buffers of `size`, or to those without a size.

        Returns when the NIC has been told. The handle tells how the message ends, and `callback` is called with it
        then, once. The end comes after `GmConfig.send_tries` or `send_timeout_ticks` at the latest, counted from when
        the message is the first of its flow. The bytes must not change before.

        Raises, before anything moves: ClosedPortError, UnknownNodeError, UnknownPortError, UnregisteredMemoryError,
        MemoryUseError (offset, size, another host's buffer), MessageTooLongError (for its size), TooManyFlowsError,
        NoTokensError, ArgumentTypeError.
        """
        opening = None
        if size is not None:
            most = length_for_size(size)
            opening = Opening(purpose=Purpose.SIZED, size=size)
        part = self._part(buffer, length, offset)
        if size is not None and part.length > most:
            raise MessageTooLongError(f"{part.length} bytes: a message of size {size} has at most {most}")
        what = f"{part.length} bytes from"
        return await self._start(part, what, node, port, priority, callback, opening)

    async def put(
        self,
        buffer: Buffer,
        remote: RemoteBuffer,
        length: int | None = None,
        *,
        offset: int = 0,
        remote_offset: int = 0,
        priority: int = 0,
        callback: SendCallback | None = None,
    ) -> SendHandle:
        """Write `length` bytes (all, by default) from `offset` of a registered buffer to `remote_offset` of exposed
        memory.

        It takes no receive token. The memory's port is not told; a message that is sent behind it comes after it.
        Raises as `send` does; MemoryUseError, too, if the bytes do not fit there. The card there has the last word:
        then the handle has the error.
        """
        part = self._part(buffer, length, offset)
        address = self._place(remote, part.length, remote_offset)
        opening = Opening(purpose=Purpose.PUT, length=part.length, address=address)
        what = f"a put of {part.length} bytes from"
        return await self._start(part, what, remote.node, remote.port, priority, callback, opening)

    async def get(
        self,
        buffer: Buffer,
        remote: RemoteBuffer,
        length: int | None = None,
        *,
        offset: int = 0,
        remote_offset: int = 0,
        priority: int = 0,
        callback: SendCallback | None = None,
    ) -> SendHandle:
        """Read `length` bytes from `remote_offset` of exposed memory to `offset` of a registered buffer, without a
        token there.

        `length` is as many as fit, by default. The handle is done when the bytes have come. They come as a flow of that
        port to this one, at its IDT. Raises as `put` does.
        """
        part = self._part(buffer, length, offset)
        address = self._place(remote, part.length, remote_offset)
        opening = Opening(purpose=Purpose.GET, length=part.length, address=address)
        what = f"a get of {part.length} bytes by"
        return await self._start(part, what, remote.node, remote.port, priority, callback, opening)

    def _part(self, buffer: Buffer, length: int | None, offset: int) -> Buffer:
        """Checked bytes of a registered buffer."""
        self._check_open()
        self._check_buffer(buffer)
        offset = whole("offset", offset)
        length = buffer.length - offset if length is None else whole("length", length)
        address = buffer.start + offset
        if not 0 <= offset <= buffer.length:
            raise MemoryUseError(f"offset = {offset}: 0 to {buffer.length}, the buffer's bytes")
        self._check_registered(address, length)
        if offset + length > buffer.length:
            raise MemoryUseError(f"{length} bytes at {offset} are not in a buffer of {buffer.length} bytes")
        self._check_own(buffer)
        self._check_aligned(address)
        return Buffer(address, length, buffer.data[offset : offset + length])

    def _place(self, remote: RemoteBuffer, length: int, offset: int) -> int:
        """The checked address of bytes of exposed memory."""
        self._check_remote(remote)
        offset = whole("remote_offset", offset)
        if offset < 0 or offset + length > remote.length:
            raise MemoryUseError(
                f"{length} bytes at {offset} do not fit the {remote.length} bytes of {remote}"
            )
        self._check_aligned(remote.start + offset)
        return remote.start + offset

    async def _start(
        self,
        part: Buffer,
        what: str,
        node: int,
        port: int,
        priority: int,
        callback: SendCallback | None,
        opening: Opening | None,
    ) -> SendHandle:
        """Post a message whose memory has been checked."""
        node, port, priority = whole("node", node), whole("port", port), whole("priority", priority)
        if callback is not None and not callable(callback):
            raise ArgumentTypeError(f"callback: a function of a SendHandle, not {type(callback).__name__}")
        self._gm.check_target(self.number, node, port, priority)
        if not self._free_sends:
            raise NoTokensError(
                f"port {self.number} of node {self._gm.node}: all {self._gm.gm.send_tokens} send tokens are "
                "in use; wait for a send to end"
            )
        self._gm.remember(self.number, node, port, priority)
        token = self._free_sends.popleft()
        text = f"{what} port {self.number} of node {self._gm.node} to port {port} of node {node}"
        if opening is not None and opening.purpose is Purpose.GET:
            text = f"{what} port {self.number} of node {self._gm.node} of port {port} of node {node}"
        handle = SendHandle(text, self._bus.flag(), self._bus.cycle, callback)
        self._sends[token] = _Send(handle, part, node, port, part.length)
        self._idle.clear()
        descriptor = SendDescriptor(
            address=part.start,
            length=part.length,
            node=node,
            port=port,
            priority=priority,
            token=token,
            opening=opening,
        )
        async with self._turns:
            place = self._gm.layout.send_descriptor(self.number, self._counts.sends)
            self._counts.sends += 1
            await self._post(place, descriptor.words(), self._gm.host.send_ns)
        return handle

    async def abort(self, handle: SendHandle) -> None:
        """Give up a message of this port that has not ended: it fails with AbortedError, though it may arrive.

        Returns when it has ended, and changes nothing if it has already. Raises ClosedPortError, and GmError for a
        message of another port.
        """
        self._check_open()
        if not isinstance(handle, SendHandle):
            raise ArgumentTypeError(f"handle: a SendHandle of this port, not {type(handle).__name__}")
        if handle.done:
            return
        mine = [token for token, send in self._sends.items() if send.handle is handle]
        if not mine:
            raise GmError(f"{handle.description} is no message of port {self.number} of node {self._gm.node}")
        await self._command(Operation.ABORT, mine[0])

    async def _post(self, place: int, words: tuple[int, ...], nanoseconds: int) -> None:
        raise NotImplementedError
