"""One rank's MPI process: the protocols, eager and rendezvous, and their progress.

A process is one thread (gulati-thesis-2001 4.4.1): it does all its work inside its own MPI calls, as MPICH does. While
it computes, messages that arrive wait in its receive buffers; a call first serves those.

- *Eager*, up to `MpiConfig.eager_bytes`: copied behind its header and sent. At the receiver it is copied to where the
  receive wants it. If there is no such receive yet, it is copied to memory of the MPI layer, and from there later.
- *Rendezvous*, above: ANNOUNCE goes in the message's place, so that matching is in order. The receiver answers with
  GRANT when a receive has matched. The sender then copies and sends fragments (DATA), which the receiver copies to
  their places.
- *Credits*: every fragment (EAGER, ANNOUNCE, DATA) uses one of the credits that the receiver has given the sender.
  There is a credit for each buffer that it keeps for it, so none arrives without a buffer. Freed buffers are told of in
  the header of anything that goes there, or by a CREDIT once a quarter of them are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from .config import MpiConfig, MpiCosts
from .data.request import Request
from .data.status import Status
from .deadlock import Detector
from .envelope import HEADER_BYTES, Envelope, Kind
from .errors import LengthError, MpiError, RankBusyError, TruncationError
from .matching import Matcher, Wanted
from .outgoing import Outgoing, Send
from .schedule import Schedule
from .transport import Incoming, Transport

__all__ = ["Arrived", "Process"]


@dataclass
class _Receive:
    """A receive: into `buffer`, or, without one, into memory as long as the message. Once a granted message has matched
    it has its `status`, and `left` bytes to come."""

    request: Request
    buffer: memoryview | None
    status: Status
    left: int = 0


@dataclass(frozen=True)
class Arrived:
    """An unexpected message.

    - `peer`: the rank of the world that it came from.
    - `payload`: None if it has only been announced.
    - `sent`: the request of a synchronous send of this rank to itself.
    """

    peer: int
    envelope: Envelope
    payload: bytes | None
    sent: Request | None = None

    @property
    def status(self) -> Status:
        """Its source, tag and length."""
        return Status(self.envelope.source, self.envelope.tag, self.envelope.length)


class Process:
    """The MPI process of one rank on `transport`. `comm` has the calls of a program.

    - `next_context`: the lowest context number that no communicator of this rank has used.
    - `advanced_cycle`: when it last took or sent a message.
    - `pending`: 1 while it waits inside a call.
    - `ended`: its program calls MPI no more.
    - `taken`: messages taken so far.
    - `bandwidth`: the client of the bandwidth manager, for `qos`.
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
        self.out = Outgoing(transport, self.config, self.costs)
        self.detector = Detector()
        self.ended = False
        self.taken = 0
        self._matcher: Matcher[_Receive, Arrived] = Matcher()
        self._receives: dict[int, _Receive] = {}
        self._schedules: list[Schedule] = []
        self._numbers = 0
        self._inside: str | None = None
        self._waits_for = ""
        self._attached: int | None = None
        self._buffered: list[tuple[Request, int]] = []

    @property
    def pending(self) -> int:
        """1 while it waits inside a call."""
        return int(bool(self._waits_for))

    @asynccontextmanager
    async def call(self, name: str) -> AsyncIterator[None]:
        """Be inside the call `name` of the rank, which takes time. Raises RankBusyError if it is inside another."""
        if self._inside is not None:
            raise RankBusyError(
                f"{name} on rank {self.transport.rank} of the world, which is inside {self._inside}: a rank is one "
                "thread; await one call after the other"
            )
        self._inside = name
        try:
            await self.transport.spend(self.costs.call_ns)
            yield
        finally:
            self._inside = None

    # -- messages ------------------------------------------------------------------------------------------------

    async def isend(
        self,
        peer: int,
        envelope: Envelope,
        data: memoryview,
        description: str,
        *,
        synchronous: bool = False,
    ) -> Request:
        """Begin to send `data` to rank `peer` of the world, behind `envelope`, of kind EAGER. A `synchronous` send is
        done when a receive has been found for it."""
        request = Request(self, description)
        if peer == self.transport.rank:
            await self._spend_message(len(data))
            await self._match(Arrived(peer, envelope, bytes(data), request if synchronous else None))
            if not synchronous:
                request.complete(Status())
            return request
        send = Send(request, peer, envelope, data)
        if len(data) > self.config.eager_bytes or synchronous:
            send.envelope = envelope.announced(self._number())
        await self.out.begin(send)
        return request

    async def irecv(self, wanted: Wanted, buffer: memoryview | None, description: str) -> Request:
        """Begin to receive a message that is `wanted` into `buffer`; without one, into the request's `received`."""
        request = Request(self, description)
        receive = _Receive(request, buffer, Status())
        message = self._matcher.post(wanted, receive)
        await self.transport.spend(self.costs.match_ns * self._matcher.looked)
        if message is not None:
            await self._give(message, receive)
        return request

    async def receive_message(self, message: Arrived, buffer: memoryview | None, description: str) -> Request:
        """Begin to receive a message that `find` has taken."""
        request = Request(self, description)
        await self._give(message, _Receive(request, buffer, Status()))
        return request

    async def find(self, wanted: Wanted, description: str, *, wait: bool, take: bool) -> Arrived | None:
        """The oldest message that is `wanted`, once it has arrived or, without `wait`, if it has. With `take` no other
        receive gets it."""
        ready = lambda: self._matcher.find(wanted) is not None  # noqa: E731
        if wait:
            await self.until(ready, description)
        elif not await self.test(ready):
            return None
        message = self._matcher.find(wanted)
        if take and message is not None:
            self._matcher.remove(message)
        return message

    def cancel(self, request: Request) -> None:
        """End a request for which nothing has happened yet."""
        taken = self._matcher.withdraw(lambda receive: receive.request is request)
        if taken or self.out.cancel(request):
            request.complete(Status(cancelled=True))

    # -- buffered sends ------------------------------------------------------------------------------------------

    def attach(self, size: int) -> None:
        """Add memory for buffered sends. Raises LengthError if there is some already, or for a negative size."""
        if self._attached is not None:
            raise LengthError("Attach_buffer: a buffer is attached already: Detach_buffer first")
        if size < 0:
            raise LengthError(f"Attach_buffer: {size} bytes: 0 or more")
        self._attached = size

    async def detach(self) -> int:
        """Wait for all buffered sends to be out. Returns the size of the memory. Raises LengthError if there is
        none."""
        if self._attached is None:
            raise LengthError("Detach_buffer: no buffer is attached")
        for request, _ in self._buffered:
            await self.wait_done(request)
        size, self._attached = self._attached, None
        self._buffered.clear()
        return size

    async def buffered(self, peer: int, envelope: Envelope, data: memoryview, description: str) -> Request:
        """Begin a buffered send, which is done at once. Raises LengthError if the memory has no room for it."""
        self._buffered = [one for one in self._buffered if not one[0].done]
        left = (self._attached or 0) - sum(size for _, size in self._buffered)
        if len(data) > left:
            raise LengthError(
                f"{description}: {len(data)} bytes: the attached buffer has {left} bytes left; Attach_buffer a larger "
                "one"
            )
        await self.transport.spend(self.costs.copy_ns(len(data)))
        inner = await self.isend(peer, envelope, memoryview(bytes(data)), description)
        self._buffered.append((inner, len(data)))
        request = Request(self, description)
        request.complete(Status())
        return request

    # -- going on ------------------------------------------------------------------------------------------------

    async def begin(self, work: Coroutine[Any, Any, None], description: str) -> Request:
        """Begin work of several messages, which goes on inside the rank's calls."""
        request = Request(self, description)
        schedule = Schedule(work, request)
        if not await schedule.step():
            self._schedules.append(schedule)
        return request

    async def wait_done(self, request: Request) -> None:
        """Go on until a request is done, whether it has failed or not."""
        await self.until(lambda: request.over, request.description)

    async def test(self, done: Callable[[], bool]) -> bool:
        """Serve everything that can be served without waiting. Returns whether it is done."""
        while not done() and await self._advance():
            pass
        return done()

    async def drain(self) -> None:
        """Go on until all that was sent has arrived."""
        left = [send.request.description for send in self.out.unsent()]
        left += [schedule.request.description for schedule in self._schedules]
        await self.until(
            lambda: self.out.empty() and not self._schedules and not self.transport.in_flight,
            f"Finalize for its {left[0]}" if left else "Finalize for the end of its sends",
        )

    async def serve(self) -> None:
        """Serve all that can be served without waiting."""
        await self.test(lambda: False)

    def untaken(self) -> list[Arrived]:
        """Messages that have arrived and that no receive has taken, oldest first."""
        return list(self._matcher)

    def end_credits(self) -> None:
        """Return credits no more: the last barrier follows, after which nobody may send."""
        self.out.ending = True

    async def until(self, done: Callable[[], bool], what: str) -> None:
        """Go on until it is `done`; `what` says what it waits for. Raises DeadlockError if it never will be."""
        while not done():
            if not await self._advance():
                self._waits_for = what
                try:
                    self.detector.look()
                    await self.transport.wait()
                finally:
                    self._waits_for = ""

    async def _advance(self) -> bool:
        """Take one message and send one, where that can be done now. Returns whether anything was done."""
        incoming = self.transport.poll()
        if incoming is not None:
            await self._take(incoming)
        sent = await self.out.push()
        stepped = await self._step() if self._schedules else False
        if incoming is None and not sent and not stepped:
            return False
        self.advanced_cycle = self.transport.cycle
        return True

    async def _step(self) -> bool:
        """Go on with work that can go on. Returns whether there was any."""
        for schedule in [one for one in self._schedules if one.ready]:
            if await schedule.step():
                self._schedules.remove(schedule)
            return True
        return False

    # -- what arrives --------------------------------------------------------------------------------------------

    async def _take(self, incoming: Incoming) -> None:
        self.taken += 1
        peer = incoming.source
        envelope = Envelope.unpack(incoming.data)
        payload = incoming.data[HEADER_BYTES:]
        self.out.credits[peer] += envelope.credits
        if envelope.kind is Kind.EAGER:
            # To the receive's buffer, or to memory of this layer: one copy either way.
            await self._spend_message(len(payload))
            await self._match(Arrived(peer, envelope, bytes(payload)), copied=True)
        else:
            await self._spend_message(0)
        if envelope.kind is Kind.ANNOUNCE:
            await self._match(Arrived(peer, envelope, None))
        elif envelope.kind is Kind.GRANT:
            self.out.grant(envelope)
        elif envelope.kind is Kind.DATA:
            await self._take_data(envelope, payload)
        await self.transport.release(incoming)
        if not envelope.kind.control:
            self.out.owe(peer)

    async def _match(self, message: Arrived, *, copied: bool = False) -> None:
        envelope = message.envelope
        receive = self._matcher.arrive(envelope.context, envelope.source, envelope.tag, message)
        await self.transport.spend(self.costs.match_ns * self._matcher.looked)
        if receive is not None:
            await self._give(message, receive, copied=copied)

    async def _give(self, message: Arrived, receive: _Receive, *, copied: bool = False) -> None:
        """Give a receive its message. `copied`: the time of the copy has been spent."""
        status, request = message.status, receive.request
        request.told = (message.envelope.signature, message.envelope.elements)
        if receive.buffer is None:
            request.received = bytearray(status.length)
            receive.buffer = memoryview(request.received)
        wanted = min(status.length, len(receive.buffer))
        if message.payload is not None:
            if not copied:
                await self.transport.spend(self.costs.copy_ns(wanted))
            receive.buffer[:wanted] = message.payload[:wanted]
            self._complete(receive, status)
            if message.sent is not None:
                message.sent.complete(Status())
            return
        number = self._number()
        receive.status, receive.left = status, wanted
        grant = Envelope(kind=Kind.GRANT, length=wanted, send=message.envelope.send, receive=number)
        self.out.control(message.peer, grant)
        if wanted:
            self._receives[number] = receive
        else:
            self._complete(receive, status)

    def _complete(self, receive: _Receive, status: Status) -> None:
        error: MpiError | None = None
        assert receive.buffer is not None
        room = len(receive.buffer)
        if status.length > room:
            error = TruncationError(
                f"{receive.request.description}: the message from rank {status.source} with tag {status.tag} has "
                f"{status.length} bytes, the buffer {room}"
            )
        receive.request.complete(status, error)

    async def _take_data(self, envelope: Envelope, payload: memoryview) -> None:
        receive = self._receives[envelope.receive]
        assert receive.buffer is not None
        await self.transport.spend(self.costs.copy_ns(len(payload)))
        receive.buffer[envelope.offset : envelope.offset + len(payload)] = payload
        receive.left -= len(payload)
        if not receive.left:
            del self._receives[envelope.receive]
            self._complete(receive, receive.status)

    async def _spend_message(self, copied: int) -> None:
        await self.transport.spend(self.costs.message_ns + self.costs.copy_ns(copied))

    def _number(self) -> int:
        self._numbers = (self._numbers + 1) & 0xFFFFFFFF
        return self._numbers

    # -- for the watchdog ----------------------------------------------------------------------------------------

    def state(self) -> list[str]:
        """Queues and credits, a line each."""
        return [
            f"rank {self.transport.rank} of the world: {f'inside {self._inside}' if self._inside else 'outside MPI'}",
            f"  waits for {self._waits_for}" if self._waits_for else "  does not wait",
            f"  {len(self._matcher.waiting)} receives without a message, {self._matcher.unexpected} messages without "
            f"a receive; {self.out.ungranted} sends announced, {len(self._receives)} receives granted",
            f"  credits {self.out.credits}, owed {self.out.owed}, {self.transport.in_flight} messages under way",
        ]

    def waiting(self) -> list[str]:
        """The call that it waits in, and for whom."""
        return [f"rank {self.transport.rank}: {self._waits_for}"] if self._waits_for else []
