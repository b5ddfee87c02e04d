"""Collective operations on a `Port`: who sends which part to whom, in which step. They are the same over a network and
over MPI.

Sources: Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, 2005 (ring and
recursive doubling).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

__all__ = ["OPERATIONS", "Port", "Values", "expected"]

Values: TypeAlias = np.ndarray[Any, Any]


class Port(ABC):
    """The messages of one of `size` nodes, whose number is `rank`. Those of two nodes stay in order."""

    rank: int
    size: int

    @abstractmethod
    async def send(self, to: int, values: Values) -> None:
        """Begin to send values. They must not change until `flush`."""

    @abstractmethod
    async def receive(self, source: int, count: int) -> Values:
        """Wait for the next `count` values from a node."""

    @abstractmethod
    async def flush(self) -> None:
        """Wait until everything that was sent may change."""


async def incast(port: Port, values: Values) -> Values:
    """All nodes send their values to node 0, which adds them up."""
    if port.rank:
        await port.send(0, values)
        await port.flush()
        return values
    total = values.copy()
    for source in range(1, port.size):
        total += await port.receive(source, len(values))
    return total


async def all_reduce_ring(port: Port, values: Values) -> Values:
    """Every node has the sum: each part goes round the ring and is added to, then goes round once more."""
    size, rank = port.size, port.rank
    parts = [part.copy() for part in np.array_split(values, size)]
    after, before = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        await port.send(after, parts[(rank - step) % size])
        place = (rank - step - 1) % size
        parts[place] = parts[place] + await port.receive(before, len(parts[place]))
    for step in range(size - 1):
        await port.send(after, parts[(rank + 1 - step) % size])
        place = (rank - step) % size
        parts[place] = await port.receive(before, len(parts[place]))
    await port.flush()
    return np.concatenate(parts)


async def all_reduce_doubling(port: Port, values: Values) -> Values:
    """Every node has the sum: pairs at distance 1, 2, 4 ... exchange what they have.

    Of a number of nodes that is no power of two the first ones give theirs to a neighbour beforehand, and are told the
    sum at the end.
    """
    size, rank = port.size, port.rank
    power = 1 << (size.bit_length() - 1)
    extra = size - power
    total = values.copy()
    if rank < 2 * extra:
        if rank % 2 == 0:
            await port.send(rank + 1, total)
            await port.flush()
            return await port.receive(rank + 1, len(values))
        total = total + await port.receive(rank - 1, len(values))
    number = rank // 2 if rank < 2 * extra else rank - extra
    distance = 1
    while distance < power:
        other = number ^ distance
        peer = 2 * other + 1 if other < extra else other + extra
        await port.send(peer, total)
        total = total + await port.receive(peer, len(values))
        distance *= 2
    if rank < 2 * extra:
        await port.send(rank - 1, total)
    await port.flush()
    return total


async def all_to_all(port: Port, values: Values) -> Values:
    """Every node gives each other one a part of its values: in step s to the s-th one behind it."""
    size, rank = port.size, port.rank
    parts = np.array_split(values, size)
    length = len(parts[rank])
    found = [parts[rank]] * size
    for step in range(1, size):
        await port.send((rank + step) % size, parts[(rank + step) % size])
        source = (rank - step) % size
        found[source] = await port.receive(source, length)
    await port.flush()
    return np.concatenate(found)


OPERATIONS: Mapping[str, Callable[[Port, Values], Awaitable[Values]]] = {
    "incast": incast,
    "all_reduce_ring": all_reduce_ring,
    "all_reduce_doubling": all_reduce_doubling,
    "all_to_all": all_to_all,
}
"""Every operation, by name: a new one is a function, its line in `expected`, and a line here."""


def expected(operation: str, rank: int, inputs: list[Values]) -> Values:
    """The values that a node must have at the end, worked out from those of all nodes."""
    if operation == "all_to_all":
        return np.concatenate([np.array_split(one, len(inputs))[rank] for one in inputs])
    if operation == "incast" and rank:
        return inputs[rank]
    total: Values = np.sum(inputs, axis=0)
    return total
