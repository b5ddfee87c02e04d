"""The ports of collective operations: messages of a network, and MPI."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import numpy as np

from .algorithms import Port, Values

if TYPE_CHECKING:
    from ...host.mpi.comm.intracomm import Intracomm
    from ...host.mpi.data.request import Request
    from ...systems.message_network import MessageHost, MessageNetwork

__all__ = ["MpiPort", "NetworkPort", "Wire"]

_TAGS = 1 << 27


class Wire:
    """The values that are under way: a message of a message network says by its tag which ones it carries."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, int], Values] = {}
        self._next = 0

    def put(self, source: int, values: Values) -> int:
        """Keep what a node sends. Returns the tag of its message."""
        tag = self._next % _TAGS
        self._next += 1
        self._values[source, tag] = values
        return tag

    def take(self, source: int, tag: int) -> Values:
        """The values of a message that has arrived. A message that was not sent, or comes twice, raises KeyError."""
        return self._values.pop((source, tag))


class NetworkPort(Port):
    """A host of a message network, whose messages are cut in packets of `packet_flits` at most.

    A transfer takes one VL, the next in turn, so that its packets stay in order. Flits and bytes of values are counted,
    as `sent_flits`, `received_flits`, `sent_bytes` and `received_bytes`.
    """

    def __init__(
        self, host: MessageHost, network: MessageNetwork, wire: Wire, *, packet_flits: int, vls: int
    ) -> None:
        self.rank, self.size = host.node, len(network.hosts)
        self._host, self._wire, self._vls = host, wire, vls
        link = network.config.traffic.link
        self._header = link.header_flits
        self._flit_bytes = link.flit_bits // 8
        self._room = (packet_flits - link.header_flits) * self._flit_bytes
        self._turn: dict[int, int] = defaultdict(int)
        self._arrived: dict[tuple[int, int], deque[tuple[Values, int]]] = defaultdict(deque)
        self._news = host.flag()
        self.sent_flits = self.received_flits = 0
        self.sent_bytes = self.received_bytes = 0
        self.last_cycle = 0
        self._expected: dict[int, int] = defaultdict(int)
        network.clock.spawn(self._listen(), f"port {self.rank}")

    async def send(self, to: int, values: Values) -> None:
        """As `Port.send`; the values are copied."""
        content = values.view(np.uint8)
        vl = self._turn[to] % self._vls
        self._turn[to] += 1
        self.sent_bytes += len(content)
        for begin in range(0, len(content), self._room):
            part = content[begin : begin + self._room].copy()
            flits = self._header + -(-len(part) // self._flit_bytes)
            self.sent_flits += flits
            await self._host.send(to, flits, vl=vl, tag=self._wire.put(self.rank, part))

    async def receive(self, source: int, count: int) -> Values:
        """As `Port.receive`."""
        vl = self._expected[source] % self._vls
        self._expected[source] += 1
        missing, parts = count * 8, []
        while missing:
            while not self._arrived[source, vl]:
                self._news.clear()
                await self._news.wait()
            part, cycle = self._arrived[source, vl].popleft()
            self.last_cycle = max(self.last_cycle, cycle)
            missing -= len(part)
            parts.append(part)
        return np.concatenate(parts).view(np.int64) if parts else np.empty(0, np.int64)

    async def flush(self) -> None:
        """Nothing: values were copied."""

    async def _listen(self) -> None:
        while True:
            message = await self._host.receive()
            self.received_flits += message.flits
            part = self._wire.take(message.source, message.tag)
            self.received_bytes += len(part)
            self._arrived[message.source, message.vl].append((part, message.cycle))
            self._news.set()


class MpiPort(Port):
    """A rank of an MPI program. The bytes of values are counted, as `sent_bytes` and `received_bytes`."""

    def __init__(self, world: Intracomm) -> None:
        self.rank, self.size = world.rank, world.size
        self._world = world
        self.sent_bytes = self.received_bytes = 0
        self._requests: list[tuple[Request, Any]] = []

    async def send(self, to: int, values: Values) -> None:
        """As `Port.send`."""
        if len(values):
            kept = values.copy()
            self.sent_bytes += kept.nbytes
            self._requests.append((await self._world.Isend(kept, to), kept))

    async def receive(self, source: int, count: int) -> Values:
        """As `Port.receive`."""
        found = np.empty(count, np.int64)
        if count:
            await self._world.Recv(found, source)
            self.received_bytes += found.nbytes
        return found

    async def flush(self) -> None:
        """As `Port.flush`."""
        for request, _ in self._requests:
            await request.Wait()
        self._requests.clear()
