"""Collective operations that combine elements.

For an operation that does not commute the operand of the lower ranks always stands on the left. For another one it is
the operand of the rank that comes first in the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.buffers import Data, Parts
from ..data.ops import Op
from .exchange import Exchange
from .movement import alltoall, bcast, gather

__all__ = ["allreduce", "reduce", "reduce_scatter", "scan"]

Array = np.ndarray[Any, Any]


def _data(array: Array) -> Data:
    view = array.view(np.uint8).data if array.nbytes else memoryview(bytearray())
    return Data(view, array.dtype, len(array))


async def _combine(exchange: Exchange, op: Op, first: Array, second: Array) -> Array:
    await exchange.spend_reduce(first.nbytes)
    return op.apply(first, second)


async def allreduce(exchange: Exchange, mine: Array, op: Op) -> Array:
    """Recursive doubling among the largest power of two of ranks.

    Each rank above gives its values to one of these before, and gets the result after. An operation that does not
    commute is reduced to rank 0 and broadcast.
    """
    rank, size = exchange.comm.rank, exchange.comm.size
    mine = mine.copy()
    if not op.commutes:
        result = await reduce(exchange, mine, op, 0)
        mine = mine if result is None else result
        await bcast(exchange, _data(mine), 0)
        return mine
    theirs = np.empty_like(mine)
    power = 1 << size.bit_length() - 1
    extra = size - power
    if rank >= power:
        await exchange.send(_data(mine), rank - power)
        await exchange.receive(_data(mine), rank - power)
        return mine
    if rank < extra:
        await exchange.receive(_data(theirs), rank + power)
        mine = await _combine(exchange, op, mine, theirs)
    distance = 1
    while distance < power:
        partner = rank ^ distance
        await exchange.exchange(_data(mine), partner, _data(theirs), partner)
        # Both partners compute it in the same order: the results are equal to the bit.
        lower = rank < partner
        mine = await _combine(exchange, op, mine if lower else theirs, theirs if lower else mine)
        theirs = np.empty_like(mine)
        distance *= 2
    if rank < extra:
        await exchange.send(_data(mine), rank + power)
    return mine


async def reduce(exchange: Exchange, mine: Array, op: Op, root: int) -> Array | None:
    """The result at the root, None elsewhere. It is a binomial tree; for an operation that does not commute the values
    are gathered and combined in the ranks' order."""
    rank, size = exchange.comm.rank, exchange.comm.size
    if not op.commutes:
        everybody = np.empty(len(mine) * size, mine.dtype) if rank == root else None
        await gather(exchange, _data(mine), None if everybody is None else _equal(everybody, size), root)
        return None if everybody is None else await _fold(exchange, op, everybody.reshape(size, -1))
    mine, place = mine.copy(), (rank - root) % size
    step = 1
    while step < size:
        if place & step:
            await exchange.send(_data(mine), (rank - step) % size)
            return None
        if place + step < size:
            theirs = np.empty_like(mine)
            await exchange.receive(_data(theirs), (rank + step) % size)
            mine = await _combine(exchange, op, mine, theirs)
        step *= 2
    return mine


async def reduce_scatter(exchange: Exchange, mine: Array, op: Op, counts: list[int]) -> Array:
    """The part of the result that is this rank's: everybody's values of it, combined in the ranks' order."""
    rank, size = exchange.comm.rank, exchange.comm.size
    places = [sum(counts[:one]) for one in range(size)]
    into = np.empty(counts[rank] * size, mine.dtype)
    await alltoall(exchange, Parts(_data(mine), counts, places), _equal(into, size))
    return await _fold(exchange, op, into.reshape(size, -1))


async def scan(exchange: Exchange, mine: Array, op: Op, *, inclusive: bool) -> Array | None:
    """Rank r gets the values of ranks 0 to r combined; not `inclusive`: to r - 1, and rank 0 None.

    In step k a rank passes its values to the one 2^k further.
    """
    rank, size = exchange.comm.rank, exchange.comm.size
    mine = mine.copy()
    distance = 1
    while distance < size:
        theirs = np.empty_like(mine)
        source, dest = rank - distance, rank + distance
        if source >= 0 and dest < size:
            await exchange.exchange(_data(mine), dest, _data(theirs), source)
        elif dest < size:
            await exchange.send(_data(mine), dest)
        elif source >= 0:
            await exchange.receive(_data(theirs), source)
        if source >= 0:
            mine = await _combine(exchange, op, theirs, mine)
        distance *= 2
    if inclusive:
        return mine
    before = np.empty_like(mine)
    request = None if rank == 0 else await exchange.irecv(_data(before), rank - 1)
    if rank + 1 < size:
        await exchange.send(_data(mine), rank + 1)
    if request is None:
        return None
    await exchange.finish(request, _data(before), rank - 1)
    return before


async def _fold(exchange: Exchange, op: Op, rows: Array) -> Array:
    result = rows[0].copy()
    for row in rows[1:]:
        result = await _combine(exchange, op, result, row)
    return result


def _equal(array: Array, size: int) -> Parts:
    count = len(array) // size
    return Parts(_data(array), [count] * size, [count * rank for rank in range(size)])
