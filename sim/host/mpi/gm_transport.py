"""The MPI layer's messages over GM: one port a rank, registered buffers, two priorities.

- Fragments go at low priority: the flow (port, port, low) from rank to rank is what a reservation regulates.
  Control goes at high priority, with receive buffers of its own, so that it waits for no fragment.
- Ranks of one node hand each other messages in the node's memory; GM has no flow from a node to itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from lanikai.hdl.config import ConfigError

from ..errors import GmError
from ..gm.library import Gm
from ..gm.message import Received, SendHandle
from ..gm.port import GmPort
from ..memory import Buffer
from .config import MpiConfig
from .envelope import HEADER_BYTES
from .errors import TransportError
from .transport import Incoming

__all__ = ["GmTransport", "Place", "open_transports"]

LOW, HIGH = 0, 1


@dataclass(frozen=True)
class Place:
    """The place of a rank: its `node`, and its GM `port` there."""

    node: int
    port: int


class GmTransport:
    """`Transport` of rank `rank`, whose place is `places[rank]`, on its open `port`. Made by `open_transports`."""

    def __init__(self, gm: Gm, port: GmPort, rank: int, places: Sequence[Place], config: MpiConfig) -> None:
        self.rank = rank
        self.size = len(places)
        self.port = port
        self.places = places
        self.gm = gm
        self.config = config
        self._ranks = {(place.node, place.port): rank for rank, place in enumerate(places)}
        self._local: dict[int, GmTransport] = {}
        self._free: dict[int, deque[Buffer]] = {LOW: deque(), HIGH: deque()}
        self._inbox: deque[Incoming | GmError] = deque()
        self._happened = gm.bus.flag()
        self._closing = False
        self._memory: list[Buffer] = []
        self.in_flight = 0

    @property
    def cycle(self) -> int:
        """NIC clock cycles since reset."""
        return self.gm.bus.cycle

    @property
    def clock_hz(self) -> int:
        """NIC clock cycles a second."""
        return self.gm.nic.clock_hz

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way or has happened."""
        return not (self.in_flight or self._inbox or self._happened.is_set())

    async def start(self, neighbours: Sequence[GmTransport]) -> None:
        """Take and register buffers, provide those for receiving, begin to receive. `neighbours`: the transports of
        all ranks."""
        self._local = {
            other.rank: other
            for other in neighbours
            if other is not self and other.places[other.rank].node == self.gm.node
        }
        config = self.config
        for priority, sends, receives, size in (
            (LOW, config.data_sends, config.data_receives, config.fragment_bytes),
            (HIGH, config.control_sends, config.control_receives, HEADER_BYTES),
        ):
            step = -(-size // 4) * 4  # a DMA address is a multiple of 4
            whole = await self.port.dma_malloc((sends + receives) * step)
            self._memory.append(whole)
            buffers = [
                Buffer(whole.start + start, size, whole.data[start : start + size])
                for start in range(0, whole.length, step)
            ]
            self._free[priority].extend(buffers[:sends])
            for buffer in buffers[sends:]:
                await self.port.provide_receive_buffer(buffer, priority=priority)
        self.gm.bus.spawn(self._receive(), f"mpi rank {self.rank}")

    async def set_idt(self, rank: int, ticks: int) -> None:
        """Set the inter-packet dispatch time of the fragments to `rank`. Raises as `GmPort.set_idt`."""
        place = self.places[rank]
        await self.port.set_idt(node=place.node, port=place.port, priority=LOW, ticks=ticks)

    def room(self, rank: int, *, control: bool) -> bool:
        """Whether a buffer is free."""
        return rank in self._local or bool(self._free[HIGH if control else LOW])

    async def send(self, rank: int, header: bytes, payload: memoryview, *, control: bool) -> None:
        """Send a message for which there is room. Raises TransportError."""
        if rank in self._local:
            await self.spend(self.gm.host.send_ns)
            self._local[rank].hand(Incoming(self.rank, memoryview(header + bytes(payload)), None))
            return
        priority = HIGH if control else LOW
        buffer = self._free[priority].popleft()
        buffer.write(header)
        buffer.data[HEADER_BYTES : HEADER_BYTES + len(payload)] = payload
        place = self.places[rank]

        def ended(handle: SendHandle) -> None:
            self.in_flight -= 1
            self._free[priority].append(buffer)
            if handle.error is not None:
                self._inbox.append(handle.error)
            self._happened.set()

        self.in_flight += 1
        try:
            await self.port.send(
                buffer,
                HEADER_BYTES + len(payload),
                node=place.node,
                port=place.port,
                priority=priority,
                callback=ended,
            )
        except GmError as error:
            self.in_flight -= 1
            self._free[priority].append(buffer)
            raise TransportError(f"rank {self.rank} of the world: {error}") from error

    def hand(self, incoming: Incoming) -> None:
        """Take a message of a rank of the same node."""
        self._inbox.append(incoming)
        self._happened.set()

    def poll(self) -> Incoming | None:
        """The next message that has arrived. Raises TransportError if a message was lost."""
        if not self._inbox:
            return None
        found = self._inbox.popleft()
        if isinstance(found, GmError):
            raise TransportError(f"rank {self.rank} of the world: {found}")
        return found

    async def release(self, incoming: Incoming) -> None:
        """Give the message's buffer to GM again."""
        if incoming.token is not None:
            received: Received = incoming.token
            await self.port.provide_receive_buffer(received.buffer, priority=received.priority)

    async def wait(self) -> None:
        """Return when something has happened since the last `wait`."""
        await self._happened.wait()
        self._happened.clear()

    async def spend(self, nanoseconds: int) -> None:
        """Let CPU time of the host pass."""
        await self.gm.spend(nanoseconds)

    async def close(self) -> None:
        """Close the port and give its memory back."""
        self._closing = True
        await self.port.close()
        for buffer in self._memory:
            self.gm.memory.release(buffer)

    async def _receive(self) -> None:
        while True:
            try:
                message = await self.port.receive()
            except GmError as error:
                if self._closing:
                    return
                self._inbox.append(error)
                self._happened.set()
                if not self.port.is_open:
                    return
                continue
            rank = self._ranks.get((message.node, message.port))
            if rank is None:
                # Not a rank's: somebody else's message is none of this layer's business.
                await self.port.provide_receive_buffer(message.buffer, priority=message.priority)
                continue
            data = message.buffer.data[: message.length].data
            self._inbox.append(Incoming(rank, data, message))
            self._happened.set()


async def open_transports(
    hosts: Sequence[Gm], places: Sequence[Place], config: MpiConfig
) -> list[GmTransport]:
    """A started transport for every place, in their order. Raises ConfigError for places that cannot be, or more
    buffers than a port has tokens; GmErrors."""
    nodes = {gm.node: gm for gm in hosts}
    for rank, place in enumerate(places):
        if place.node not in nodes:
            known = ", ".join(map(str, sorted(nodes)))
            raise ConfigError(f"rank {rank} is to run on node {place.node}: there are nodes {known}")
        if place in places[:rank]:
            raise ConfigError(
                f"rank {rank} is to have port {place.port} of node {place.node}, as rank {places.index(place)} has"
            )
    gm = hosts[0].gm
    for what, wanted, tokens in (
        ("send", config.data_sends + config.control_sends, gm.send_tokens),
        ("receive", config.data_receives + config.control_receives, gm.receive_tokens),
    ):
        if wanted > tokens:
            raise ConfigError(f"MpiConfig: {wanted} {what} buffers, but a port has {tokens} {what} tokens")
    transports = []
    for rank, place in enumerate(places):
        gm_host = nodes[place.node]
        port = await gm_host.open_port(place.port)
        transports.append(GmTransport(gm_host, port, rank, places, config))
    for transport in transports:
        await transport.start(transports)
    return transports
