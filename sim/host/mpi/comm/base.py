"""Ground of a communicator: its ranks, its contexts, the checks that every call makes, time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ..data.arguments import whole
from ..data.buffers import Data, data_of
from ..data.request import Request
from ..data.status import Status, check_status
from ..envelope import MAX_LENGTH, MAX_TAG, Envelope, Kind
from ..errors import AbortError, CommunicatorError, LengthError, RankError, TagError
from ..matching import ANY_SOURCE, ANY_TAG, PROC_NULL, Wanted
from ..process import Process
from .group import Group

__all__ = ["Comm", "with_finish"]


class Comm:
    """A communicator.

    - `world_ranks`: the ranks of the world that are its ranks 0, 1, ...
    - `rank`: this one's.
    - `process`: the process that it runs in.
    - `context`: the number of its messages; `context + 1` is that of its collective operations.

    All calls that send, receive or wait are coroutines of the rank's one thread. All raise RankBusyError, and
    CommunicatorError once it is freed. Before anything is sent they raise RankError, TagError, LengthError,
    BufferKindError, DatatypeError for impossible arguments. They raise TransportError if a message is lost;
    DeadlockError.
    """

    def __init__(self, process: Process, world_ranks: Sequence[int], context: int, name: str) -> None:
        self.process = process
        self.world_ranks = tuple(world_ranks)
        self.rank = self.world_ranks.index(process.transport.rank)
        self.context = context
        self.name = name
        self._freed = False
        self._collectives = 0

    def __repr__(self) -> str:
        return f"<{self.name}: rank {self.rank} of {self.size}>"

    @property
    def size(self) -> int:
        """Its number of ranks."""
        return len(self.world_ranks)

    def Get_rank(self) -> int:
        """This rank."""
        return self.rank

    def Get_size(self) -> int:
        """Its number of ranks."""
        return self.size

    def Get_name(self) -> str:
        """Its name, in messages."""
        return self.name

    def Set_name(self, name: str) -> None:
        """Name it, for messages."""
        self.name = str(name)

    @property
    def group(self) -> Group:
        """`Get_group`."""
        return self.Get_group()

    def Get_group(self) -> Group:
        """Its ranks as a group."""
        return Group(self.world_ranks, self.process.transport.rank)

    def Wtime(self) -> float:
        """Seconds of simulated time since reset: all ranks have the same clock."""
        return self.process.transport.cycle / self.process.transport.clock_hz

    def Wtick(self) -> float:
        """Seconds of a clock cycle, in which Wtime counts."""
        return 1 / self.process.transport.clock_hz

    async def Abort(self, errorcode: int = 0) -> None:
        """End the program of all ranks. Raises AbortError, which ends `run_ranks`."""
        code = whole(errorcode, f"Abort on {self.name}: errorcode", CommunicatorError)
        raise AbortError(
            f"rank {self.process.transport.rank} of the world called Abort({code}) on {self.name}"
        )

    # -- for the modules of this package: without a call's checks and costs -------------------------------------------

    def next_collective(self) -> int:
        """The number of the next collective operation, the same at every rank."""
        self._collectives = (self._collectives + 1) & MAX_TAG
        return self._collectives

    @asynccontextmanager
    async def _call(self, name: str) -> AsyncIterator[None]:
        self._check_usable(name)
        async with self.process.call(f"{name} on {self.name}"):
            yield

    async def _isend(
        self,
        data: Data,
        dest: int,
        tag: int,
        what: str,
        *,
        synchronous: bool = False,
        collective: int = 0,
        elements: int = 0,
    ) -> Request:
        """Begin to send to a checked rank. `collective`: the signature of the operation that the message is of."""
        if dest == PROC_NULL:
            return self._nothing(what)
        envelope = self._envelope(data, tag, what, collective, elements)
        return await self.process.isend(
            self.world_ranks[dest], envelope, data.view, what, synchronous=synchronous
        )

    def _envelope(self, data: Data, tag: int, what: str, collective: int = 0, elements: int = 0) -> Envelope:
        if len(data.view) > MAX_LENGTH:
            raise LengthError(f"{what}: {len(data.view)} bytes: at most {MAX_LENGTH}")
        return Envelope(
            kind=Kind.EAGER,
            context=self.context + bool(collective),
            source=self.rank,
            tag=tag,
            length=len(data.view),
            offset=collective,
            receive=elements,
        )

    async def _irecv(
        self, data: Data | None, source: int, tag: int, what: str, *, collective: bool = False
    ) -> Request:
        """Begin to receive from a checked rank; without `data` into memory as long as the message."""
        if source == PROC_NULL:
            return self._nothing(what)
        wanted = Wanted(self.context + collective, source, tag)
        request = await self.process.irecv(wanted, None if data is None else data.view, what)
        return with_finish(request, data)

    async def _finished(self, request: Request, status: Status | None) -> Any:
        """Wait for a request inside a call. Returns its value."""
        await self.process.wait_done(request)
        return request.take(status)

    def _nothing(self, what: str) -> Request:
        request = Request(self.process, what)
        request.complete(Status(PROC_NULL, ANY_TAG, 0))
        return request

    def _check_usable(self, call: str) -> None:
        if self._freed:
            raise CommunicatorError(f"{call} on {self.name}: the communicator has been freed")

    def _check_rank(self, rank: Any, call: str, what: str) -> int:
        found = whole(rank, f"{call} on {self.name}: {what}", RankError)
        if not 0 <= found < self.size:
            raise RankError(f"{call} on {self.name}: {what} = {found}: ranks are 0 to {self.size - 1}")
        return found

    def _check_target(self, dest: Any, tag: Any, call: str, what: str = "dest") -> tuple[int, int, str]:
        """Rank, tag, and the call in words."""
        found = whole(dest, f"{call} on {self.name}: {what}", RankError)
        if found != PROC_NULL:
            self._check_rank(found, call, what)
        number = whole(tag, f"{call} on {self.name}: tag", TagError)
        if not 0 <= number <= MAX_TAG:
            raise TagError(f"{call} on {self.name}: tag = {number}: 0 to {MAX_TAG}")
        return found, number, self._describe(call, "to", found, number)

    def _check_source(self, source: Any, tag: Any, call: str) -> tuple[int, int, str]:
        """Rank, tag, and the call in words."""
        found = whole(source, f"{call} on {self.name}: source", RankError)
        if found not in (PROC_NULL, ANY_SOURCE):
            self._check_rank(found, call, "source")
        number = whole(tag, f"{call} on {self.name}: tag", TagError)
        if not 0 <= number <= MAX_TAG and number != ANY_TAG:
            raise TagError(f"{call} on {self.name}: tag = {number}: 0 to {MAX_TAG}, or ANY_TAG")
        return found, number, self._describe(call, "from", found, number)

    def _check_status(self, status: Any, call: str) -> None:
        check_status(status, f"{call} on {self.name}")

    def _describe(self, call: str, way: str, rank: int, tag: int) -> str:
        who = {ANY_SOURCE: "any rank", PROC_NULL: "PROC_NULL"}.get(rank, f"rank {rank}")
        return f"{call} {way} {who}, {'any tag' if tag == ANY_TAG else f'tag {tag}'}, on {self.name}"

    @staticmethod
    def _outgoing(buffer: Any, what: str) -> Data:
        return data_of(buffer, what)

    @staticmethod
    def _incoming(buffer: Any, what: str) -> Data:
        return data_of(buffer, what, writable=True)


def with_finish(request: Request, data: Data | None) -> Request:
    """Let a receive put its bytes where they belong."""
    if data is not None and data.target is not None:
        if request.done:
            data.finish()
        else:
            request.finish = data.finish
    return request
