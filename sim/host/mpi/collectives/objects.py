"""Collective operations on Python objects, pickled; the receiver of a pickle need not know its length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.ops import Op
from ..data.pickled import packed, unpacked
from ..errors import CollectiveError
from .exchange import Exchange, bytes_data

__all__ = ["allgather", "alltoall", "bcast", "gather", "reduce", "scan", "scatter"]


async def bcast(exchange: Exchange, obj: Any, root: int) -> Any:
    """A binomial tree: the root's object at everybody."""
    rank, size = exchange.comm.rank, exchange.comm.size
    place = (rank - root) % size
    content = packed(obj, exchange.what) if place == 0 else bytes_data()
    step = 1
    while step < size:
        if place & step:
            raw = await exchange.receive_bytes((rank - step) % size)
            obj, content = unpacked(raw, exchange.what), bytes_data(raw)
            break
        step *= 2
    step //= 2
    while step:
        if place + step < size:
            await exchange.send(content, (rank + step) % size)
        step //= 2
    return obj


async def gather(exchange: Exchange, obj: Any, root: int) -> list[Any] | None:
    """Everybody's objects at the root, by rank; None elsewhere."""
    rank, size = exchange.comm.rank, exchange.comm.size
    if rank != root:
        await exchange.send(packed(obj, exchange.what), root)
        return None
    found = []
    for source in range(size):
        if source == root:
            found.append(obj)
        else:
            found.append(unpacked(await exchange.receive_bytes(source), exchange.what))
    return found


async def scatter(exchange: Exchange, objects: Sequence[Any] | None, root: int) -> Any:
    """The root's objects, one a rank. Raises CollectiveError for too many or too few."""
    rank, size = exchange.comm.rank, exchange.comm.size
    if rank != root:
        return unpacked(await exchange.receive_bytes(root), exchange.what)
    found = _one_a_rank(exchange, objects)
    for dest in range(size):
        if dest != root:
            await exchange.send(packed(found[dest], exchange.what), dest)
    return found[root]


async def allgather(exchange: Exchange, obj: Any) -> list[Any]:
    """A ring: everybody's objects at everybody, by rank."""
    rank, size = exchange.comm.rank, exchange.comm.size
    found: list[Any] = [None] * size
    found[rank], passed = obj, packed(obj, exchange.what)
    for step in range(size - 1):
        raw = await exchange.exchange_bytes(passed, (rank + 1) % size, (rank - 1) % size)
        place = (rank - step - 1) % size
        found[place], passed = unpacked(raw, exchange.what), bytes_data(raw)
    return found


async def alltoall(exchange: Exchange, objects: Sequence[Any] | None) -> list[Any]:
    """Object r of everybody to rank r."""
    rank, size = exchange.comm.rank, exchange.comm.size
    mine = _one_a_rank(exchange, objects)
    found: list[Any] = [None] * size
    found[rank] = mine[rank]
    for step in range(1, size):
        dest, source = (rank + step) % size, (rank - step) % size
        raw = await exchange.exchange_bytes(packed(mine[dest], exchange.what), dest, source)
        found[source] = unpacked(raw, exchange.what)
    return found


async def reduce(exchange: Exchange, obj: Any, op: Op, root: int) -> Any:
    """Everybody's objects combined in the ranks' order, at the root; None elsewhere."""
    everybody = await gather(exchange, obj, root)
    if everybody is None:
        return None
    result = everybody[0]
    for rank, other in enumerate(everybody[1:], 1):
        result = _combine(exchange, op, result, other, (rank - 1, rank))
    return result


async def scan(exchange: Exchange, obj: Any, op: Op, *, inclusive: bool) -> Any:
    """Rank r gets the objects of ranks 0 to r combined; not `inclusive`: to r - 1, and rank 0 None."""
    rank, size = exchange.comm.rank, exchange.comm.size
    before = None
    if rank:
        before = unpacked(await exchange.receive_bytes(rank - 1), exchange.what)
    result = obj if rank == 0 else _combine(exchange, op, before, obj, (rank - 1, rank))
    if rank + 1 < size:
        await exchange.send(packed(result, exchange.what), rank + 1)
    return result if inclusive else before


def _one_a_rank(exchange: Exchange, objects: Sequence[Any] | None) -> list[Any]:
    size = exchange.comm.size
    try:
        found = list(objects or [])
    except TypeError:
        raise CollectiveError(
            f"{exchange.what}: {type(objects).__name__}: a sequence of {size} objects"
        ) from None
    if len(found) != size:
        raise CollectiveError(f"{exchange.what}: {len(found)} objects: {size}, one a rank")
    return found


def _combine(exchange: Exchange, op: Op, one: Any, other: Any, ranks: tuple[int, int]) -> Any:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        mine, theirs = ((array.shape, array.dtype.name) for array in (one, other))
        if mine != theirs:
            raise CollectiveError(
                f"{exchange.what}: rank {ranks[1]} gave an array of {theirs[1]} with the shape {theirs[0]}, rank "
                f"{ranks[0]} one of {mine[1]} with the shape {mine[0]}"
            )
    return op(one, other)
