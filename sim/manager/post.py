"""The managers' messages as GM messages, on a port that is theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from ..host.errors import ClosedPortError, GmError
from ..host.gm.library import Gm
from ..host.gm.message import SendHandle
from ..host.gm.port import GmPort
from ..host.memory import Buffer
from .wire import MESSAGE_BYTES

__all__ = ["GmPost"]

PRIORITY = 1
"""High priority: among streams of low priority go-back-N of other programs' messages would hold the managers' up."""
RECEIVE_BUFFERS = 8
UNDER_WAY = 3
"""Messages to one node that GM has not ended: a call, an answer, a WORKING.

GM tries a message to a manager that takes none again and again. Messages that would come behind it are dropped, as the
network might drop them, and go out again later.
"""


class GmPost:
    """`Post` over GM: `port` of the node, and the same port of the others. `take` is called with each message that
    comes. `dropped`: messages that were not sent."""

    def __init__(self, gm: Gm, port: GmPort, take: Callable[[bytes], Awaitable[None]]) -> None:
        self._gm, self._port, self._take = gm, port, take
        self._free: list[Buffer] = []
        self._under_way: Counter[int] = Counter()
        self.dropped = 0

    async def start(self) -> None:
        """Provide receive buffers and begin to receive."""
        for _ in range(min(RECEIVE_BUFFERS, self._port.receive_tokens)):
            buffer = await self._port.dma_malloc(MESSAGE_BYTES)
            await self._port.provide_receive_buffer(buffer, priority=PRIORITY)
        self._gm.bus.spawn(self._receive(), f"manager[{self._gm.node}].receive")

    async def send(self, node: int, message: bytes) -> None:
        """Hand a message over; one to this node itself does not leave the host."""
        if node == self._gm.node:
            self._gm.bus.spawn(self._loop_back(message), f"manager[{node}].loop_back")
            return
        if self._under_way[node] >= UNDER_WAY:
            self.dropped += 1
            return
        self._under_way[node] += 1
        try:
            if not self._free:
                self._free.append(await self._port.dma_malloc(MESSAGE_BYTES))
            buffer = self._free.pop()
        except GmError:
            self._drop(node)
            return
        buffer.write(message)

        def ended(handle: SendHandle) -> None:
            # A message that failed (the other manager's port is not open) is one that got lost.
            self._under_way[node] -= 1
            self._free.append(buffer)

        try:
            await self._port.send(
                buffer, len(message), node=node, port=self._port.number, priority=PRIORITY, callback=ended
            )
        except GmError:  # no token is free, or the port is closed: the network might have lost it, too
            self._free.append(buffer)
            self._drop(node)

    def _drop(self, node: int) -> None:
        self._under_way[node] -= 1
        self.dropped += 1

    async def _loop_back(self, message: bytes) -> None:
        if self._port.is_open:
            await self._take(message)

    async def _receive(self) -> None:
        while True:
            try:
                message = await self._port.receive()
                content = message.read()
                await self._port.provide_receive_buffer(message.buffer, priority=PRIORITY)
            except ClosedPortError:
                return  # the manager has ended
            await self._take(content)
