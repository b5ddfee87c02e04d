"""Everything of a rank that is still to go out, in the order in which it goes.

- Control first: grants and credits need no credit.
- Then the peers in turn, a fragment each. To a peer announcements go first, so that its grants are there when they are
  needed, then the data of what it has granted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from .config import MpiConfig, MpiCosts
from .data.request import Request
from .data.status import Status
from .envelope import Envelope, Kind
from .transport import Transport

__all__ = ["Outgoing", "Send"]


@dataclass
class Send:
    """A message on its way out: to rank `peer` of the world; `data` from `offset` to `end` is still to be sent."""

    request: Request
    peer: int
    envelope: Envelope
    data: memoryview
    offset: int = 0
    end: int = 0


class Outgoing:
    """A rank's messages on their way out, over `transport`.

    - `credits`: fragments that each peer still has a buffer for.
    - `owed`: buffers that are free again and that the peer has not been told of.
    - `counts`: messages sent to each so far.
    """

    def __init__(self, transport: Transport, config: MpiConfig, costs: MpiCosts) -> None:
        self._transport, self._config, self._costs = transport, config, costs
        size = transport.size
        credits = config.credits(size)
        self.credits = [credits] * size
        self.owed = [0] * size
        self.counts = [0] * size
        self.ending = False
        self._owed_most = max(1, credits // 4)
        self._control: deque[tuple[int, Envelope]] = deque()
        self._announced: list[deque[Send]] = [deque() for _ in range(size)]
        self._granted: list[deque[Send]] = [deque() for _ in range(size)]
        self._waiting: dict[int, Send] = {}
        self._turn = 0

    @property
    def ungranted(self) -> int:
        """Messages that have been announced, or are to be, and that no receive has taken."""
        return len(self._waiting)

    def unsent(self) -> list[Send]:
        """Messages that are not out yet, oldest first for each peer."""
        found = [send for queue in (*self._announced, *self._granted) for send in queue]
        return found + [send for send in self._waiting.values() if send not in found]

    def empty(self) -> bool:
        """Whether nothing is left to send."""
        return not (self._control or self._waiting or any(map(len, (*self._announced, *self._granted))))

    async def begin(self, send: Send) -> None:
        """Begin a message: it is out at once if it can be."""
        if send.envelope.kind is Kind.ANNOUNCE:
            self._waiting[send.envelope.send] = send
        self._announced[send.peer].append(send)
        while self._announced[send.peer] and self._may_send(send.peer):
            await self._send_next(send.peer)

    def cancel(self, request: Request) -> bool:
        """Take back a message of which nothing has gone out. Returns whether it was so."""
        for queue in self._announced:
            for send in queue:
                if send.request is request:
                    queue.remove(send)
                    self._waiting.pop(send.envelope.send, None)
                    return True
        return False

    def grant(self, envelope: Envelope) -> None:
        """Note that a peer wants a message that was announced."""
        send = self._waiting.pop(envelope.send)
        send.end = envelope.length
        if not send.end:
            send.request.complete(Status())
            return
        send.envelope = Envelope(kind=Kind.DATA, receive=envelope.receive)
        self._granted[send.peer].append(send)

    def control(self, peer: int, envelope: Envelope) -> None:
        """Add a grant for a peer."""
        self._control.append((peer, envelope))

    def owe(self, peer: int) -> None:
        """Note that a buffer of a peer's is free again."""
        self.owed[peer] += 1
        if self.owed[peer] == self._owed_most and not self.ending:
            self._control.append((peer, Envelope(kind=Kind.CREDIT)))

    async def push(self) -> bool:
        """Send one message, if there is one that can go."""
        for place, (peer, envelope) in enumerate(self._control):
            if self._transport.room(peer, control=True):
                del self._control[place]
                if envelope.kind is Kind.CREDIT and not self.owed[peer]:
                    return True  # told of with another message meanwhile
                await self._spend_message(0)
                await self._out(peer, envelope, memoryview(b""))
                return True
        size = self._transport.size
        for peer in (*range(self._turn, size), *range(self._turn)):
            if (self._announced[peer] or self._granted[peer]) and self._may_send(peer):
                self._turn = (peer + 1) % size
                await self._send_next(peer)
                return True
        return False

    def _may_send(self, peer: int) -> bool:
        return self.credits[peer] > 0 and self._transport.room(peer, control=False)

    async def _send_next(self, peer: int) -> None:
        if self._announced[peer]:
            send = self._announced[peer].popleft()
            if send.envelope.kind is Kind.ANNOUNCE:
                await self._spend_message(0)
                await self._out(peer, send.envelope, memoryview(b""))
                return
            await self._spend_message(len(send.data))
            await self._out(peer, send.envelope, send.data)
            send.request.complete(Status())
            return
        send = self._granted[peer][0]
        payload = send.data[send.offset : min(send.end, send.offset + self._config.payload_bytes)]
        envelope = replace(send.envelope, offset=send.offset)
        send.offset += len(payload)
        if send.offset == send.end:
            self._granted[peer].popleft()
        await self._spend_message(len(payload))
        await self._out(peer, envelope, payload)
        if send.offset == send.end:
            send.request.complete(Status())

    async def _out(self, peer: int, envelope: Envelope, payload: memoryview) -> None:
        control = envelope.kind.control
        credits, self.owed[peer] = self.owed[peer], 0
        if not control:
            self.credits[peer] -= 1
        header = replace(envelope, credits=credits).pack()
        self.counts[peer] += 1
        await self._transport.send(peer, header, payload, control=control)

    async def _spend_message(self, copied: int) -> None:
        await self._transport.spend(self._costs.message_ns + self._costs.copy_ns(copied))
