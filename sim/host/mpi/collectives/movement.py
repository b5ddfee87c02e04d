"""Collective operations that move data: the messages of each step."""

from __future__ import annotations

from ..data.buffers import Data, Parts
from .exchange import Exchange, bytes_data

__all__ = ["allgather", "alltoall", "barrier", "bcast", "gather", "scatter"]


async def barrier(exchange: Exchange) -> None:
    """Dissemination: in step k a rank tells the one 2^k further and hears the one 2^k before it. It takes log2(size)
    steps."""
    rank, size = exchange.comm.rank, exchange.comm.size
    distance = 1
    while distance < size:
        await exchange.exchange(
            bytes_data(), (rank + distance) % size, bytes_data(), (rank - distance) % size
        )
        distance *= 2


async def bcast(exchange: Exchange, data: Data, root: int) -> None:
    """A binomial tree: a rank that has the elements passes them on, the furthest first. It takes log2(size) steps."""
    rank, size = exchange.comm.rank, exchange.comm.size
    place = (rank - root) % size
    step = 1
    while step < size:
        if place & step:
            await exchange.receive(data, (rank - step) % size)
            break
        step *= 2
    step //= 2
    while step:
        if place + step < size:
            await exchange.send(data, (rank + step) % size)
        step //= 2
    data.finish()


async def gather(exchange: Exchange, mine: Data | None, parts: Parts | None, root: int) -> None:
    """Everybody sends to the root, which receives in the ranks' order. `mine` is None at a root that has its part in
    place."""
    if parts is None:
        assert mine is not None
        await exchange.send(mine, root)
        return
    size = exchange.comm.size
    receives = [(rank, await exchange.irecv(parts.part(rank), rank)) for rank in range(size) if rank != root]
    if mine is not None:
        exchange.copy(mine, parts.part(root))
    for rank, request in receives:
        await exchange.finish(request, parts.part(rank), rank)
    parts.data.finish()


async def scatter(exchange: Exchange, parts: Parts | None, mine: Data | None, root: int) -> None:
    """The root sends to everybody. `mine` is None at a root that keeps its part where it is."""
    if parts is None:
        assert mine is not None
        await exchange.receive(mine, root)
        mine.finish()
        return
    size = exchange.comm.size
    sends = [await exchange.isend(parts.part(rank), rank) for rank in range(size) if rank != root]
    if mine is not None:
        exchange.copy(parts.part(root), mine)
        mine.finish()
    for request in sends:
        await exchange.wait(request)


async def allgather(exchange: Exchange, parts: Parts) -> None:
    """A ring: in every step a rank passes on the part that it got in the step before. It takes size - 1 steps. A rank's
    own part is in place."""
    rank, size = exchange.comm.rank, exchange.comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        await exchange.exchange(
            parts.part((rank - step) % size), right, parts.part((rank - step - 1) % size), left
        )
    parts.data.finish()


async def alltoall(exchange: Exchange, out: Parts, into: Parts) -> None:
    """In step k a rank sends to the one k further and receives from the one k before it. It takes size - 1 steps."""
    rank, size = exchange.comm.rank, exchange.comm.size
    exchange.copy(out.part(rank), into.part(rank))
    for step in range(1, size):
        dest, source = (rank + step) % size, (rank - step) % size
        await exchange.exchange(out.part(dest), dest, into.part(source), source)
    into.data.finish()
