"""One rank's MPI process: the protocols, eager and rendezvous, and what makes them go on.

A process is one thread (gulati-thesis-2001 4.4.1): all that it does, it does inside its own MPI calls, as MPICH
does. While it computes, what arrives waits in its receive buffers; a call first serves those.

- *Eager*, up to `MpiConfig.eager_bytes`: copied behind its header and sent. At the receiver it is copied to where the
  receive wants it; if there is no such receive yet, to memory of the MPI layer, and from there later.
- *Rendezvous*, above: ANNOUNCE goes in the message's place, so that matching is in order; the receiver answers with
  GRANT when a receive has matched; the sender then copies and sends fragments (DATA), which the receiver copies
  to their places.
- *Credits*: every fragment (EAGER, ANNOUNCE, DATA) uses one of the credits that the receiver has given the sender, one
  for each buffer it keeps for it, so none arrives without a buffer. Freed buffers are told of in the header of
  anything that goes there, or by a CREDIT once a quarter of them are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from .config import MpiConfig, MpiCosts
from .envelope import HEADER_BYTES, Envelope, Kind
from .errors import RankBusyError, RequestError, TruncationError
from .matching import Matcher, Wanted
from .request import NO_STATUS, Request, Status
from .transport import Incoming, Transport

__all__ = ["Process"]


@dataclass
class _Send:
    """A message on its way out: to rank `peer` of the world; `data` from `offset` to `end` is still to be sent."""

    request: Request
    peer: int
    envelope: Envelope
    data: memoryview
    offset: int = 0
    end: int = 0


@dataclass
class _Receive:
    """A receive: into `buffer`. Once a granted message has matched: its `status`, `left` bytes to come."""

    request: Request
    buffer: memoryview
    status: Status = NO_STATUS
    left: int = 0


@dataclass(frozen=True)
class _Message:
    """An unexpected message: from rank `peer` of the world; `payload` is None if it has only been announced."""

    peer: int
    envelope: Envelope
    payload: bytes | None


class Process:
    """The MPI process of one rank on `transport`. `Communicator` has the calls of a program.

    `next_context`: the lowest context number that no communicator of this rank has used. `advanced_cycle`: when it
    last took or sent a message; `pending`: 1 while it waits inside a call. `bandwidth`: the client of the bandwidth
    manager, for `qos`.
    """

    def __init__(
        self, transport: Transport, *, config: MpiConfig | None = None, costs: MpiCosts | None = None
    ) -> None:
        self.transport = transport
        self.config = MpiConfig() if config is None else config
        self.costs = MpiCosts() if costs is None else costs
        self.next_context = 0
        self.advanced_cycle = 0
        self.bandwidth: Any = None
        self._matcher: Matcher[_Receive, _Message] = Matcher()
        credits = self.config.credits(transport.size)
        self._credits = [credits] * transport.size
        self._owed = [0] * transport.size
        self._owed_most = max(1, credits // 4)
        self._control: deque[tuple[int, Envelope]] = deque()
        self._announced: list[deque[_Send]] = [deque() for _ in range(transport.size)]
        self._granted: list[deque[_Send]] = [deque() for _ in range(transport.size)]
        self._sends: dict[int, _Send] = {}
        self._receives: dict[int, _Receive] = {}
        self._numbers = 0
        self._turn = 0
        self._inside: str | None = None
        self._waits_for = ""
        self._ending = False

    @property
    def pending(self) -> int:
        """1 while it waits inside a call."""
        return int(bool(self._waits_for))

    @contextmanager
    def inside(self, call: str) -> Iterator[None]:
        """The rank is inside `call`. Raises RankBusyError if it is inside another."""
        if self._inside is not None:
            raise RankBusyError(
                f"{call} on rank {self.transport.rank} of the world, which is inside {self._inside}: a rank is one "
                "thread; await one call after the other"
            )
        self._inside = call
        try:
            yield
        finally:
            self._inside = None

    def check_owner(self, request: object, call: str) -> Request:
        """`request`, if it is one of this rank. Raises RequestError."""
        if not isinstance(request, Request):
            raise RequestError(f"{call}: {type(request).__name__} is no request; isend and irecv return them")
        if request.owner is not self:
            raise RequestError(
                f"{call} on rank {self.transport.rank} of the world: the request is another rank's"
            )
        return request

    async def isend(
        self, peer: int, context: int, source: int, tag: int, data: memoryview, description: str
    ) -> Request:
        """Begin to send `data` to rank `peer` of the world, as rank `source` of the communicator of `context`."""
        request = Request(self, description)
        envelope = Envelope(kind=Kind.EAGER, context=context, source=source, tag=tag, length=len(data))
        if peer == self.transport.rank:
            await self._spend_message(len(data))
            await self._match(_Message(peer, envelope, bytes(data)))
            request.complete(Status(-1, -1, len(data)))
            return request
        send = _Send(request, peer, envelope, data)
        if len(data) > self.config.eager_bytes:
            number = self._number()
            send.envelope = replace(envelope, kind=Kind.ANNOUNCE, send=number)
            self._sends[number] = send
        self._announced[peer].append(send)
        while self._announced[peer] and self._may_send(peer):
            await self._send_next(peer)
        return request

    async def irecv(self, wanted: Wanted, buffer: memoryview, description: str) -> Request:
        """Begin to receive what is `wanted` into `buffer`."""
        request = Request(self, description)
        receive = _Receive(request, buffer)
        message = self._matcher.post(wanted, receive)
        await self.transport.spend(self.costs.match_ns * self._matcher.looked)
        if message is not None:
            await self._give(message, receive)
        return request

    async def wait_done(self, request: Request) -> None:
        """Go on until a request is done, whether it has failed or not."""
        await self._until(lambda: request.done, request.description)

    async def wait(self, request: Request) -> Status:
        """Go on until a request is done; its status. Raises what it failed with."""
        await self.wait_done(request)
        return request.result()

    async def probe(self, wanted: Wanted, description: str) -> Status:
        """Go on until a message that is `wanted` has arrived; it stays where it is."""
        await self._until(lambda: self._matcher.find(wanted) is not None, description)
        message = self._matcher.find(wanted)
        assert message is not None
        return _status(message.envelope)

    async def test(self, request: Request) -> bool:
        """Serve what can be served without waiting; whether the request is done."""
        while not request.done and await self._advance():
            pass
        return request.done

    async def drain(self) -> None:
        """Go on until all that was sent has arrived."""
        await self._until(lambda: not self._unsent() and not self.transport.in_flight, "the end of its sends")

    def end_credits(self) -> None:
        """Return credits no more: what follows is the last barrier, after which nobody may send."""
        self._ending = True

    def _unsent(self) -> bool:
        return bool(self._control or self._sends) or any(map(len, (*self._announced, *self._granted)))

    async def _until(self, done: Callable[[], bool], what: str) -> None:
        while not done():
            if not await self._advance():
                self._waits_for = what
                await self.transport.wait()
                self._waits_for = ""

    async def _advance(self) -> bool:
        """Take one message and send one, where that can be done now; whether anything was done."""
        incoming = self.transport.poll()
        if incoming is not None:
            await self._take(incoming)
        sent = await self._push()
        if incoming is None and not sent:
            return False
        self.advanced_cycle = self.transport.cycle
        return True

    # -- what arrives --------------------------------------------------------------------------------------------

    async def _take(self, incoming: Incoming) -> None:
        peer = incoming.source
        envelope = Envelope.unpack(incoming.data)
        payload = incoming.data[HEADER_BYTES:]
        self._credits[peer] += envelope.credits
        if envelope.kind is Kind.EAGER:
            # To the receive's buffer, or to memory of this layer: one copy either way.
            await self._spend_message(len(payload))
            await self._match(_Message(peer, envelope, bytes(payload)), copied=True)
        else:
            await self._spend_message(0)
        if envelope.kind is Kind.ANNOUNCE:
            await self._match(_Message(peer, envelope, None))
        elif envelope.kind is Kind.GRANT:
            self._grant(envelope)
        elif envelope.kind is Kind.DATA:
            await self._take_data(envelope, payload)
        await self.transport.release(incoming)
        if not envelope.kind.control:
            self._owe(peer)

    async def _match(self, message: _Message, *, copied: bool = False) -> None:
        envelope = message.envelope
        receive = self._matcher.arrive(envelope.context, envelope.source, envelope.tag, message)
        await self.transport.spend(self.costs.match_ns * self._matcher.looked)
        if receive is not None:
            await self._give(message, receive, copied=copied)

    async def _give(self, message: _Message, receive: _Receive, *, copied: bool = False) -> None:
        """A receive has got its message. `copied`: the time of the copy has been spent."""
        status, room = _status(message.envelope), len(receive.buffer)
        wanted = min(status.length, room)
        if message.payload is not None:
            if not copied:
                await self.transport.spend(self.costs.copy_ns(wanted))
            receive.buffer[:wanted] = message.payload[:wanted]
            self._complete(receive, status)
            return
        number = self._number()
        receive.status, receive.left = status, wanted
        grant = Envelope(kind=Kind.GRANT, length=wanted, send=message.envelope.send, receive=number)
        self._control.append((message.peer, grant))
        if wanted:
            self._receives[number] = receive
        else:
            self._complete(receive, status)

    def _complete(self, receive: _Receive, status: Status) -> None:
        error, room = None, len(receive.buffer)
        if status.length > room:
            error = TruncationError(
                f"{receive.request.description}: the message from rank {status.source} with tag {status.tag} has "
                f"{status.length} bytes, the buffer {room}"
            )
        receive.request.complete(status, error)

    def _grant(self, envelope: Envelope) -> None:
        send = self._sends.pop(envelope.send)
        send.end = envelope.length
        if not send.end:
            send.request.complete(Status(-1, -1, 0))
            return
        send.envelope = Envelope(kind=Kind.DATA, receive=envelope.receive)
        self._granted[send.peer].append(send)

    async def _take_data(self, envelope: Envelope, payload: memoryview) -> None:
        receive = self._receives[envelope.receive]
        await self.transport.spend(self.costs.copy_ns(len(payload)))
        receive.buffer[envelope.offset : envelope.offset + len(payload)] = payload
        receive.left -= len(payload)
        if not receive.left:
            del self._receives[envelope.receive]
            self._complete(receive, receive.status)

    def _owe(self, peer: int) -> None:
        """A buffer of a peer's is free again."""
        self._owed[peer] += 1
        if self._owed[peer] == self._owed_most and not self._ending:
            self._control.append((peer, Envelope(kind=Kind.CREDIT)))

    # -- what goes out -------------------------------------------------------------------------------------------

    def _may_send(self, peer: int) -> bool:
        return self._credits[peer] > 0 and self.transport.room(peer, control=False)

    async def _push(self) -> bool:
        """Send one message, if there is one that can go: control first, then the peers in turn."""
        for place, (peer, envelope) in enumerate(self._control):
            if self.transport.room(peer, control=True):
                del self._control[place]
                if envelope.kind is Kind.CREDIT and not self._owed[peer]:
                    return True  # told of with another message meanwhile
                await self._spend_message(0)
                await self._out(peer, envelope, memoryview(b""))
                return True
        size = self.transport.size
        for peer in (*range(self._turn, size), *range(self._turn)):
            if (self._announced[peer] or self._granted[peer]) and self._may_send(peer):
                self._turn = (peer + 1) % size
                await self._send_next(peer)
                return True
        return False

    async def _send_next(self, peer: int) -> None:
        """Send the next fragment to a peer: announcements first, so that grants are there when they are needed."""
        if self._announced[peer]:
            send = self._announced[peer].popleft()
            if send.envelope.kind is Kind.ANNOUNCE:
                await self._spend_message(0)
                await self._out(peer, send.envelope, memoryview(b""))
                return
            await self._spend_message(len(send.data))
            await self._out(peer, send.envelope, send.data)
            send.request.complete(Status(-1, -1, len(send.data)))
            return
        send = self._granted[peer][0]
        payload = send.data[send.offset : min(send.end, send.offset + self.config.payload_bytes)]
        envelope = replace(send.envelope, offset=send.offset)
        send.offset += len(payload)
        if send.offset == send.end:
            self._granted[peer].popleft()
        await self._spend_message(len(payload))
        await self._out(peer, envelope, payload)
        if send.offset == send.end:
            send.request.complete(Status(-1, -1, send.end))

    async def _out(self, peer: int, envelope: Envelope, payload: memoryview) -> None:
        control = envelope.kind.control
        credits, self._owed[peer] = self._owed[peer], 0
        if not control:
            self._credits[peer] -= 1
        header = replace(envelope, credits=credits).pack()
        await self.transport.send(peer, header, payload, control=control)

    async def _spend_message(self, copied: int) -> None:
        await self.transport.spend(self.costs.message_ns + self.costs.copy_ns(copied))

    def _number(self) -> int:
        self._numbers = (self._numbers + 1) & 0xFFFFFFFF
        return self._numbers

    # -- for the watchdog ----------------------------------------------------------------------------------------

    def state(self) -> list[str]:
        """Queues and credits, a line each."""
        lines = [
            f"rank {self.transport.rank} of the world: {f'inside {self._inside}' if self._inside else 'outside MPI'}",
            f"  waits for {self._waits_for}" if self._waits_for else "  does not wait",
            f"  {len(self._matcher.waiting)} receives without a message, {self._matcher.unexpected} messages without "
            f"a receive; {len(self._sends)} sends announced, {len(self._receives)} receives granted",
            f"  credits {self._credits}, owed {self._owed}, {self.transport.in_flight} messages under way",
        ]
        return lines

    def waiting(self) -> list[str]:
        """What it waits for."""
        return [f"rank {self.transport.rank}: {self._waits_for}"] if self._waits_for else []


def _status(envelope: Envelope) -> Status:
    return Status(envelope.source, envelope.tag, envelope.length)
