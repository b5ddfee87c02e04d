"""The link between two kernel agents: messages come across once each and in order, or the node counts as silent.

Control packets are not reliable: the network may lose one, and a full ring of notices drops them. So an agent has one
message under way to each node. It repeats it every `RETRY_US` until the other end has answered, `TRIES` times at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace

from lanikai.hdl.config import NicConfig

from ..bell import Bell
from ..bus import HostBus
from ..config import cycles
from .messages import Message, MessageKind

__all__ = ["RETRY_US", "TRIES", "Link"]

RETRY_US = 200
"""Microseconds until a message without an answer is sent again: several times what a packet and its answer take on a
card that is busy."""
TRIES = 8
"""Times that a message is sent. After `TRIES` x `RETRY_US` without an answer the node is silent: the bound of every
wait for another agent."""
NUMBERS = 1 << 16
_ASKING = (MessageKind.REQUEST, MessageKind.PEER_REQUEST)


class Link:
    """One node's end of the link to `node`.

    - `send`: sends a packet to the node; returns when the card has taken it.
    - `hear`: called with each message that comes, in order.
    - `lost`: called with a message that the node did not answer.

    `post` queues a message, `came` takes a packet's message in. `silent` counts messages given up, `repeated` those
    that were sent again. `idle` says that nothing is under way.
    """

    def __init__(
        self,
        bus: HostBus,
        nic: NicConfig,
        node: int,
        *,
        send: Callable[[int, bytes], Awaitable[None]],
        hear: Callable[[int, Message], None],
        lost: Callable[[int, Message], None],
    ) -> None:
        self._bus, self.node = bus, node
        self._send, self._hear, self._lost = send, hear, lost
        self._retry_cycles = cycles(1000 * RETRY_US, nic)
        self._queue: deque[Message] = deque()
        self._bell = Bell(bus)
        self._answered = True
        self._number = 0
        self._heard = 0
        self._runs = False
        self.silent = self.repeated = 0

    @property
    def idle(self) -> bool:
        """Whether it has nothing to send and waits for no answer."""
        return not self._runs

    def post(self, message: Message) -> None:
        """Queue a message: it goes out behind those before it."""
        self._queue.append(message)
        if not self._runs:
            self._runs = True
            self._bus.spawn(self._run(), f"agent[{self._bus.node}].link[{self.node}]")

    def withdraw(self, request: int) -> int:
        """Take back the messages that ask for a connection by this request, as far as they have not been sent. Returns
        how many."""
        kept = [one for one in self._queue if one.kind not in _ASKING or one.request != request]
        withdrawn = len(self._queue) - len(kept)
        self._queue = deque(kept)
        return withdrawn

    @property
    def queued(self) -> int:
        """Messages that have not been sent yet."""
        return len(self._queue)

    async def came(self, message: Message) -> None:
        """Take in a message of the node: answer it, and hear it if it is new."""
        if message.kind is MessageKind.ACK:
            if message.number == self._number:
                self._answered = True
                self._bell.ring()
            return
        ahead = (message.number - self._heard) % NUMBERS
        if 0 < ahead < NUMBERS // 2:
            self._heard = message.number
            self._hear(self.node, message)
        await self._send(self.node, Message(kind=MessageKind.ACK, number=message.number).pack())

    async def _run(self) -> None:
        while self._queue:
            message = self._queue.popleft()
            self._number = (self._number + 1) % NUMBERS
            packet = replace(message, number=self._number).pack()
            self._answered = False
            for tried in range(TRIES):
                self.repeated += tried > 0
                await self._send(self.node, packet)
                if await self._bell.until(lambda: self._answered, self._bus.cycle + self._retry_cycles):
                    break
            else:
                self.silent += 1
                self._lost(self.node, message)
        self._runs = False
