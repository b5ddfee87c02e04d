"""Hosts of the quality-of-service experiments: senders and receivers of measured messages on an adapter network.

A message carries the cycle of its birth as its immediate data, so that its receiver knows its latency. Its contents do
not matter here: all messages of a host come from one buffer, and go to buffers that are used in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lanikai.hdl.config import HcaConfig
from lanikai.hdl.packet import Kind

from ...host.hca.completion_queue import Completion, CompletionQueue
from ...host.hca.driver import HcaDriver
from ...host.hca.queue_pair import QueuePair
from ...host.hca.region import Region
from .messages import PACKET_FLITS, payload_bytes

__all__ = ["OWNER", "Arrival", "Ended", "QosHost", "Receiver", "Sender"]

OWNER = 1
"""The process that all of a host's queue pairs belong to."""
_CYCLES = 1 << 32


class Ended(NamedTuple):
    """The end of a send.

    - `born`, `posted`, `ended`: cycles of its birth, its doorbell and its completion.
    - `begun`, `departed`: the cycles in which its header was put into the buffer of its VL, and on the link. Without
      meaning if `status` is not OK.
    - `destination`, `flits`: its receiver's node, and its length.
    - `status`: a `CqeStatus`.
    """

    born: int
    posted: int
    ended: int
    destination: int
    flits: int
    status: int
    begun: int
    departed: int


class Arrival(NamedTuple):
    """A message that has arrived.

    - `born`, `arrived`: cycles of its birth, and of its completion.
    - `source`, `source_qp`: the node and queue pair that sent it.
    - `bytes`: its length.
    """

    born: int
    arrived: int
    source: int
    source_qp: int
    bytes: int


class Sender:
    """A send queue with a completion queue of its own.

    - `pair`: its queue pair. `on_end`: called with every end, in the order of their VL.
    """

    def __init__(self, host: QosHost, pair: QueuePair, queue: CompletionQueue) -> None:
        self.pair = pair
        self.on_end: Callable[[Ended], None] = lambda _end: None
        self._host, self._queue = host, queue
        self._waiting: dict[int, tuple[int, int, int, int]] = {}
        host.port.spawn(self._listen(), f"sends of node {host.port.node}, queue pair {pair.number}")

    @property
    def under_way(self) -> int:
        """Messages posted that have not ended."""
        return len(self._waiting)

    @property
    def room(self) -> int:
        """Messages that could be posted now."""
        return self.pair.send_room

    def post(
        self,
        flits: int,
        *,
        vl: int,
        born: int,
        destination: int,
        destination_qp: int = 0,
        service_level: int = 0,
        kind: Kind = Kind.DATA,
        bandwidth: int = 0,
        generation: int = 0,
        not_before: int | None = None,
    ) -> int:
        """Post a message of one packet of `flits`. Returns the cycle of its doorbell. Arguments: as `QueuePair.send`.
        Raises QueueFullError."""
        host = self._host
        length = payload_bytes(flits, host.config.link)
        tag, when = self.pair.send(
            host.source,
            host.source.start,
            length,
            vl=vl,
            destination=destination,
            destination_qp=destination_qp,
            service_level=service_level,
            immediate=born % _CYCLES,
            kind=kind,
            bandwidth=bandwidth,
            generation=generation,
            not_before=not_before,
        )
        self._waiting[tag] = (born, when, destination, flits)
        return when

    async def _listen(self) -> None:
        waiting, port = self._waiting, self._host.port
        while True:
            for one in await self._queue.wait():
                born, posted, destination, flits = waiting.pop(one.tag)
                now = port.now
                departed = one.departed(now)
                begun = departed - one.buffered_cycles
                self.on_end(Ended(born, posted, now, destination, flits, one.status, begun, departed))


class Receiver:
    """A queue pair that receives. `on_arrival`: called with every message, in order."""

    def __init__(self, pair: QueuePair) -> None:
        self.pair = pair
        self.on_arrival: Callable[[Arrival], None] = lambda _arrival: None


class QosHost:
    """One host. It is `start`ed once; then it makes senders and receivers.

    - `port`, `driver`, `config`: the host, its adapter's driver and configuration.
    - `source`, `sink`: registered memory that messages come from and go to.
    - `failed`: receive completions that did not end well.
    """

    def __init__(self, driver: HcaDriver, *, buffers: int = 64) -> None:
        self.driver, self.port = driver, driver.port
        self.config: HcaConfig = driver.config
        self.failed: list[Completion] = []
        self.source: Region
        self.sink: Region
        self._slot = payload_bytes(PACKET_FLITS, self.config.link)
        self._buffers = buffers
        self._receivers: dict[int, Receiver] = {}
        self._arrivals: CompletionQueue

    async def start(self, *, receive_entries: int = 1024) -> None:
        """Register memory, and listen for what arrives. `receive_entries`: of the completion queue of all receivers."""
        driver = self.driver
        self.source = await driver.register(OWNER, driver.allocate(OWNER, self._slot), writable=False)
        self.sink = await driver.register(OWNER, driver.allocate(OWNER, self._slot * self._buffers))
        self._arrivals = await driver.create_completion_queue(owner=OWNER, entries=receive_entries)
        self.port.spawn(self._listen(), f"arrivals of node {self.port.node}")

    async def sender(
        self,
        *,
        traffic_class: int,
        vls: Iterable[int],
        entries: int = 1024,
        peer: tuple[int, int] | None = None,
    ) -> Sender:
        """A sender of a traffic class with a ring of `entries`, a power of two, or as many as the adapter takes."""
        queue = await self.driver.create_completion_queue(owner=OWNER, entries=entries * 2)
        pair = await self.driver.create_queue_pair(
            owner=OWNER,
            traffic_class=traffic_class,
            vls=vls,
            send_completions=queue,
            receive_completions=self._arrivals,
            send_entries=min(entries, self.driver.most_send_entries),
            peer=peer,
        )
        return Sender(self, pair, queue)

    async def receiver(
        self,
        *,
        traffic_class: int,
        entries: int = 64,
        peer: tuple[int, int] | None = None,
        vls: Iterable[int] = (),
    ) -> Receiver:
        """A receiver with `entries` buffers, a power of two. Messages of more come only if Python keeps up.

        `vls`: those that its queue pair could send on. Control packets are for one with VL 15.
        """
        pair = await self.driver.create_queue_pair(
            owner=OWNER,
            traffic_class=traffic_class,
            vls=vls,
            send_completions=self._arrivals,
            receive_completions=self._arrivals,
            send_entries=1,
            receive_entries=entries,
            peer=peer,
        )
        for number in range(entries):
            self._buffer(pair, number, ring=False)
        pair.ring_receive()
        self._receivers[pair.number] = receiver = Receiver(pair)
        return receiver

    def _buffer(self, pair: QueuePair, number: int, *, ring: bool = True) -> None:
        place = self.sink.start + number % self._buffers * self._slot
        pair.receive(self.sink, place, self._slot, tag=number, ring=ring)

    async def _listen(self) -> None:
        port = self.port
        while True:
            touched: dict[int, QueuePair] = {}
            for one in await self._arrivals.wait():
                receiver = self._receivers[one.qp]
                pair = receiver.pair
                pair.received += 1
                self._buffer(pair, one.tag, ring=False)
                touched[one.qp] = pair
                if not one.ok:
                    self.failed.append(one)
                    continue
                now = port.now
                born = now - (now - one.immediate) % _CYCLES
                receiver.on_arrival(Arrival(born, now, one.source, one.source_qp, one.bytes))
            for pair in touched.values():
                pair.ring_receive()
