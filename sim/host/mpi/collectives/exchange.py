"""Messages of one collective operation.

All ranks call the collective operations of a communicator in the same order. So each is numbered, and the number is its
messages' tag: operations that go on at once do not get one another's messages. Every message tells its operation, its
reduction, and how many elements of which type it holds. A rank that gave something else is named.
"""

from __future__ import annotations

import numpy as np

from ..data.buffers import Data
from ..data.datatypes import signature, type_name
from ..data.ops import OPS, Op
from ..data.request import Request
from ..errors import CollectiveError, TruncationError
from ..schedule import wait_for
from .ranks import Ranks

__all__ = ["CALLS", "Exchange", "bytes_data", "check_taken"]

CALLS = (
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Reduce",
    "Allreduce",
    "Reduce_scatter_block",
    "Reduce_scatter",
    "Scan",
    "Exscan",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "Dup",
    "Split",
    "Create",
    "Create_cart",
    "Sub",
    "Finalize",
)
"""Collective operations; their places are their numbers on the wire, from 1."""
_OPS = (None, *OPS)
USER_OP = 255


class Exchange:
    """One collective operation of a rank: `call`, on `comm`, with the operation `op`.

    `blocking`: it waits inside its own call, else as the work of a Schedule.
    """

    def __init__(self, comm: Ranks, call: str, op: Op | None = None, *, blocking: bool = True) -> None:
        self.comm, self.call = comm, call
        self._blocking = blocking
        self._kind = CALLS.index(call if call in CALLS else call[1:].capitalize()) + 1
        self._op = 0 if op is None else _OPS.index(op.name) if OPS.get(op.name) is op else USER_OP
        self._tag = comm.next_collective()

    @property
    def what(self) -> str:
        """The call, in words."""
        return f"{self.call} on {self.comm.name}"

    async def spend_reduce(self, nbytes: int) -> None:
        """Let the time of an operation on two vectors pass."""
        process = self.comm.process
        await process.transport.spend(process.costs.reduce_ns(nbytes))

    async def send(self, data: Data, dest: int) -> None:
        """Send to a rank. Returns when the data are the caller's again."""
        await self.wait(await self.isend(data, dest))

    async def receive(self, into: Data, source: int) -> None:
        """Receive from a rank the elements that `into` holds. Raises CollectiveError if it sends something else."""
        await self.finish(await self.irecv(into, source), into, source)

    async def exchange(self, out: Data, dest: int, into: Data, source: int) -> None:
        """Send and receive at once."""
        receive = await self.irecv(into, source)
        send = await self.isend(out, dest)
        await self.wait(send)
        await self.finish(receive, into, source)

    async def receive_bytes(self, source: int) -> bytearray:
        """Receive a pickle."""
        return await self.finish_bytes(await self._irecv(None, source), source)

    async def exchange_bytes(self, out: Data, dest: int, source: int) -> bytearray:
        """Send a pickle and receive one at once."""
        receive = await self._irecv(None, source)
        send = await self.isend(out, dest)
        await self.wait(send)
        return await self.finish_bytes(receive, source)

    async def isend(self, data: Data, dest: int) -> Request:
        """Begin to send to a rank."""
        mark = self._kind << 24 | self._op << 16 | signature(data.dtype)
        return await self.comm._isend(
            data, dest, self._tag, self._words("to", dest), collective=mark, elements=data.count
        )

    async def irecv(self, into: Data, source: int) -> Request:
        """Begin to receive from a rank; `finish` ends it."""
        return await self._irecv(into, source)

    async def _irecv(self, into: Data | None, source: int) -> Request:
        return await self.comm._irecv(into, source, self._tag, self._words("from", source), collective=True)

    async def wait(self, request: Request) -> None:
        """Return when a request is done."""
        if self._blocking:
            await self.comm.process.wait_done(request)
        else:
            await wait_for(request)

    async def finish(self, request: Request, into: Data, source: int) -> None:
        """Return when a receive is done. Raises CollectiveError if the elements are not those that `into` holds."""
        await self.wait(request)
        mark, elements = request.told
        self._check(mark, source)
        theirs, mine = mark & 0xFFFF, signature(into.dtype)
        if (theirs, elements) != (mine, into.count):
            raise CollectiveError(
                f"{self.what}: rank {source} gave {_amount(elements, theirs)}, rank {self.comm.rank} has "
                f"{_amount(into.count, mine)}"
            )
        if request.error is not None and not isinstance(request.error, TruncationError):
            raise request.error

    async def finish_bytes(self, request: Request, source: int) -> bytearray:
        """Return the bytes of a pickle when its receive is done."""
        await self.wait(request)
        self._check(request.told[0], source)
        request.result()
        assert request.received is not None
        return request.received

    def copy(self, source: Data, target: Data) -> None:
        """Put a rank's own elements where they belong. Raises CollectiveError if they are others."""
        theirs, mine = signature(source.dtype), signature(target.dtype)
        if (theirs, source.count) != (mine, target.count):
            raise CollectiveError(
                f"{self.what}: rank {self.comm.rank} gives {_amount(source.count, theirs)}, its own part is of "
                f"{_amount(target.count, mine)}"
            )
        target.view[:] = source.view

    def _check(self, mark: int, source: int) -> None:
        kind, op = mark >> 24, mark >> 16 & 0xFF
        me = self.comm.rank
        if kind != self._kind:
            raise CollectiveError(
                f"{self.what}: rank {source} is in {CALLS[kind - 1]}, rank {me} in {self.call}: all ranks call the "
                "same collective operations in the same order"
            )
        if op != self._op:
            raise CollectiveError(
                f"{self.what}: rank {source} gave {_op_name(op)}, rank {me} {_op_name(self._op)}"
            )

    def _words(self, way: str, rank: int) -> str:
        return f"{self.call} {way} rank {rank}, on {self.comm.name}"


def check_taken(comm: Ranks) -> None:
    """Raise CollectiveError if a rank has sent messages of a collective operation that this one did not call."""
    for message in comm.process.untaken():
        if message.envelope.context % 2:
            call = CALLS[(message.envelope.signature >> 24) - 1]
            raise CollectiveError(
                f"Finalize on {comm.name}: rank {message.peer} is in {call} with a message for rank {comm.rank}, which "
                f"has not taken it: all ranks call the same collective operations with the same arguments"
            )


def _amount(elements: int, bits: int) -> str:
    return f"{elements} element{'s' * (elements != 1)} of {type_name(bits)}"


def _op_name(op: int) -> str:
    return "an operation of its own" if op == USER_OP else str(_OPS[op])


def bytes_data(content: bytes | bytearray | None = None) -> Data:
    """Bytes of this layer: none, by default."""
    content = bytearray() if content is None else content
    return Data(memoryview(content), np.dtype("u1"), len(content))
