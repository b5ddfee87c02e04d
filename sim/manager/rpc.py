"""Calls between managers over a network that may lose, repeat and delay messages: each is served at most once.

A manager has one call at a time to each other manager. It goes out again after `answer_ticks` without an answer,
`tries` times in all; `WORKING` from the other side starts the count anew. The other side remembers the last call of
each manager. It serves a newer one, answers the same one from memory, and ignores an older one, whose caller has given
it up.

The memory of both sides outlives the end of a manager (`CallMemory`), so that one that is started again goes on where
its former self stopped. A node that has been started anew remembers nothing and has a later incarnation. Its call is
newer than all of its former self's.

Calls to a master, calls from one, and calls for a lease are apart (`Kind.line`). While a manager waits for the master,
the master may have to call it, and both may be on one node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from lanikai.firmware.lock import Lock
from lanikai.firmware.ports import Flag, Scheduler

from .wire import Answer, Envelope, Kind, Reply, Status

__all__ = ["INCARNATION_CYCLES", "CallMemory", "Calls", "Post", "SilentError", "incarnation_at"]


class SilentError(Exception):
    """The manager of `node` does not answer: whether it has served the call is not known."""

    def __init__(self, node: int) -> None:
        super().__init__(f"the manager of node {node} does not answer")
        self.node = node


class Post(Protocol):
    """Takes a message to another node's manager, or to one's own; it may get lost."""

    async def send(self, node: int, message: bytes) -> None:
        """Hand a message over. Returns without waiting for its arrival."""


Serve = Callable[[Envelope], Awaitable[Answer]]
"""Serves a call. Raises ValueError for one that it does not understand."""


Line = tuple[int, int]
"""The other manager's node, and the `Kind.line` of the calls."""


@dataclass
class _Served:
    """The last call of a manager, and its answer once there is one. `given_up`: the manager that served it has ended
    before."""

    incarnation: int
    sequence: int
    answer: bytes | None = None
    given_up: bool = False


@dataclass
class CallMemory:
    """The memory of calls.

    - `incarnation`: the cycle in which the memory began.
    - `sequences`: the last number of a call to each other manager.
    - `served`: the last call of each that was served.
    - `incarnations`: the incarnations in which others were seen.
    """

    incarnation: int
    sequences: dict[Line, int] = field(default_factory=dict)
    served: dict[Line, _Served] = field(default_factory=dict)
    incarnations: dict[int, int] = field(default_factory=dict)

    def copy(self) -> CallMemory:
        """A copy for a manager that takes over: a call that was being served is served again when it comes again."""
        served = {
            line: _Served(one.incarnation, one.sequence, one.answer, given_up=one.answer is None)
            for line, one in self.served.items()
        }
        return CallMemory(self.incarnation, dict(self.sequences), served, dict(self.incarnations))


@dataclass
class _Waiting:
    """The call that waits for an answer from a node."""

    kind: Kind
    sequence: int
    flag: Flag
    answer: bytes | None = None
    working: bool = False


INCARNATION_CYCLES = 256
"""Cycles in which a node is started once at most: far less than a start takes."""


def incarnation_at(cycle: int) -> int:
    """The incarnation of a memory that begins in `cycle`: 32 bits that grow for 2^40 cycles, 9 hours at 33 MHz."""
    return cycle // INCARNATION_CYCLES & 0xFFFFFFFF


class Calls:
    """The calls of the manager of `node`, in both directions.

    - `post` takes messages.
    - `serve` serves calls.
    - `restarted` is told the node of a manager that calls in a new incarnation, before its call is served.
    - `answer_cycles`, `tries`: see above.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        node: int,
        post: Post,
        serve: Serve,
        restarted: Callable[[int], Awaitable[None]],
        answer_cycles: int,
        tries: int,
        memory: CallMemory | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._node = node
        self._post, self._serve, self._restarted = post, serve, restarted
        self._answer_cycles, self._tries = answer_cycles, tries
        memory = CallMemory(incarnation_at(scheduler.cycle)) if memory is None else memory
        self.incarnation = memory.incarnation
        self._locks: dict[Line, Lock] = {}
        self._waiting: dict[Line, _Waiting] = {}
        self._sequences, self._served = memory.sequences, memory.served
        self._incarnations = memory.incarnations

    async def call(self, node: int, kind: Kind, body: bytes = b"") -> Answer:
        """Have another manager do something. Raises SilentError: it may have done it."""
        line = node, kind.line
        lock = self._locks.setdefault(line, Lock(self._scheduler.flag))
        async with lock:
            sequence = self._sequences[line] = self._sequences.get(line, 0) + 1
            waiting = self._waiting[line] = _Waiting(kind, sequence, self._scheduler.flag())
            message = self._envelope(kind, Reply.CALL, self.incarnation, sequence, body)
            tries = 0
            try:
                while tries < self._tries:
                    tries += 1
                    await self._post.send(node, message)
                    await self._wait(waiting)
                    if waiting.answer is not None:
                        return Answer.unpack(waiting.answer)
                    if waiting.working:
                        waiting.working, tries = False, 0
            finally:
                del self._waiting[line]
        raise SilentError(node)

    def met(self, node: int, incarnation: int) -> None:
        """Note that the manager of `node` was seen in this incarnation, if it has not called yet.

        A call in a later incarnation comes from a manager that has been started again.
        """
        self._incarnations.setdefault(node, incarnation)

    async def _wait(self, waiting: _Waiting) -> None:
        """Wait until the answer comes, or long enough."""
        if waiting.answer is not None:
            return  # it came while the message was being handed over

        async def alarm(flag: Flag) -> None:
            await self._scheduler.sleep(self._answer_cycles)
            flag.set()

        # A flag of its own for each wait: an alarm that is still to ring wakes nobody later.
        waiting.flag = self._scheduler.flag()
        self._scheduler.spawn(alarm(waiting.flag), f"manager[{self._node}].alarm")
        await waiting.flag.wait()

    async def take(self, message: bytes) -> None:
        """Take a message that has come, and ignore it if it is none."""
        try:
            envelope = Envelope.unpack(message)
        except ValueError:
            return
        if envelope.reply is Reply.CALL:
            await self._called(envelope)
            return
        waiting = self._waiting.get((envelope.sender, envelope.kind.line))
        mine = (self.incarnation, waiting and waiting.sequence, waiting and waiting.kind)
        if waiting is None or (envelope.incarnation, envelope.sequence, envelope.kind) != mine:
            return
        if envelope.reply is Reply.WORKING:
            waiting.working = True
        elif waiting.answer is None:
            waiting.answer = envelope.body
            waiting.flag.set()

    async def _called(self, call: Envelope) -> None:
        """Serve a new call, answer an old one again."""
        line = call.sender, call.kind.line
        last = self._served.get(line)
        if last is not None and (call.incarnation, call.sequence) <= (last.incarnation, last.sequence):
            if (call.incarnation, call.sequence) == (last.incarnation, last.sequence):
                if last.given_up:
                    last.given_up = False
                    self._begin(call, last, again=False)
                    return
                reply = Reply.WORKING if last.answer is None else Reply.ANSWER
                await self._reply(call, reply, last.answer or b"")
            return
        known = self._incarnations.get(call.sender, call.incarnation)
        if call.incarnation < known:
            return
        self._incarnations[call.sender] = call.incarnation
        served = self._served[line] = _Served(call.incarnation, call.sequence)
        self._begin(call, served, again=call.incarnation > known)

    def _begin(self, call: Envelope, served: _Served, *, again: bool) -> None:
        self._scheduler.spawn(self._work(call, served, again), f"manager[{self._node}].serve[{call.sender}]")

    async def _work(self, call: Envelope, served: _Served, again: bool) -> None:
        if again:
            await self._restarted(call.sender)
            if self._served[call.sender, call.kind.line] is not served:
                return  # its caller has given it up meanwhile; served now it would come after a newer one
        try:
            answer = await self._serve(call)
        except ValueError:
            answer = Answer(status=Status.BAD)
        served.answer = answer.pack()
        if self._served[call.sender, call.kind.line] is served:
            await self._reply(call, Reply.ANSWER, served.answer)

    async def _reply(self, call: Envelope, reply: Reply, body: bytes) -> None:
        await self._post.send(
            call.sender, self._envelope(call.kind, reply, call.incarnation, call.sequence, body)
        )

    def _envelope(self, kind: Kind, reply: Reply, incarnation: int, sequence: int, body: bytes) -> bytes:
        return Envelope(
            kind=kind,
            reply=reply,
            sender=self._node,
            incarnation=incarnation,
            sequence=sequence,
            body=body,
        ).pack()
