"""Collective operations, made of messages in a communicator's second context, as MPICH makes them.

A rank calls the collective operations of a communicator in the same order as all others do, and messages of a pair of
ranks do not overtake one another, so one tag is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import CollectiveError, TruncationError
from .ops import Operation
from .request import bytes_of

if TYPE_CHECKING:
    from .communicator import Communicator

__all__ = ["allgather", "allreduce", "barrier", "broadcast"]

_TAG = 0
_NOTHING = b""


async def barrier(comm: Communicator) -> None:
    """Dissemination: in step k a rank tells the one 2^k further and hears the one 2^k before it. log2(size) steps."""
    distance = 1
    while distance < comm.size:
        await _exchange(
            comm,
            _NOTHING,
            (comm.rank + distance) % comm.size,
            bytearray(),
            (comm.rank - distance) % comm.size,
            "barrier",
        )
        distance *= 2


async def broadcast(comm: Communicator, buffer: Any, root: int) -> None:
    """A binomial tree: who has the bytes passes them on, the furthest first. log2(size) steps. Raises CollectiveError
    if the buffers differ in length."""
    place = (comm.rank - root) % comm.size
    view = bytes_of(buffer, None, f"broadcast on {comm.name}", writable=comm.rank != root)
    step = 1
    while step < comm.size:
        if place & step:
            await _receive(comm, view, (comm.rank - step) % comm.size, "broadcast")
            break
        step *= 2
    step //= 2
    while step:
        if place + step < comm.size:
            await _send(comm, view, (comm.rank + step) % comm.size, "broadcast")
        step //= 2


async def allreduce(
    comm: Communicator, values: np.ndarray[Any, Any], operation: Operation
) -> np.ndarray[Any, Any]:
    """Recursive doubling among the largest power of two of ranks; each rank above gives its values to one of these
    before, and gets the result after. Raises CollectiveError if lengths differ."""
    mine = np.array(values, order="C")
    theirs = np.empty_like(mine)
    power = 1 << comm.size.bit_length() - 1
    extra = comm.size - power

    async def combine(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        await comm.process.transport.spend(comm.process.costs.reduce_ns(mine.nbytes))
        return operation.apply(first, second)

    if comm.rank >= power:
        await _send(comm, mine, comm.rank - power, "allreduce")
        await _receive(comm, mine, comm.rank - power, "allreduce")
        return mine
    if comm.rank < extra:
        await _receive(comm, theirs, comm.rank + power, "allreduce")
        mine = await combine(mine, theirs)
    distance = 1
    while distance < power:
        partner = comm.rank ^ distance
        await _exchange(comm, mine, partner, theirs, partner, "allreduce")
        # Both partners compute it in the same order: the results are equal to the bit.
        lower = comm.rank < partner
        mine = await combine(mine if lower else theirs, theirs if lower else mine)
        theirs = np.empty_like(mine)
        distance *= 2
    if comm.rank < extra:
        await _send(comm, mine, comm.rank + power, "allreduce")
    return mine


async def allgather(comm: Communicator, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A ring: in every step a rank passes on what it got in the step before. size - 1 steps. Raises CollectiveError if
    lengths differ."""
    mine = np.array(values, order="C")
    everybody = np.zeros((comm.size, *mine.shape), mine.dtype)
    everybody[comm.rank] = mine
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for step in range(comm.size - 1):
        passed = (comm.rank - step) % comm.size
        coming = (comm.rank - step - 1) % comm.size
        # A slice of one row: a contiguous array, also when the values have no dimension.
        await _exchange(
            comm, everybody[passed : passed + 1], right, everybody[coming : coming + 1], left, "allgather"
        )
    return everybody


async def _exchange(
    comm: Communicator, out: Any, destination: int, into: Any, source: int, what: str
) -> None:
    receive = await comm._irecv(into, source, _TAG, None, what, collective=True)
    send = await comm._isend(out, destination, _TAG, None, what, collective=True)
    await comm._wait(send)
    await _finish(comm, receive, into, source, what)


async def _send(comm: Communicator, data: Any, destination: int, what: str) -> None:
    await comm._wait(await comm._isend(data, destination, _TAG, None, what, collective=True))


async def _receive(comm: Communicator, into: Any, source: int, what: str) -> None:
    receive = await comm._irecv(into, source, _TAG, None, what, collective=True)
    await _finish(comm, receive, into, source, what)


async def _finish(comm: Communicator, receive: Any, into: Any, source: int, what: str) -> None:
    expected = memoryview(into).nbytes
    try:
        got = (await comm._wait(receive)).length
    except TruncationError:
        got = receive.status.length
    if got != expected:
        raise CollectiveError(
            f"{what} on {comm.name}: rank {source} gave {got} bytes, rank {comm.rank} has {expected}"
        )
