"""A transport in plain Python, and a world of ranks on it.

Fragments of a pair of ranks stay in order, control does not. A buffer that is given back is overwritten, so that nobody
may look at it later. A receiver never holds more fragments of a peer than it has given credits.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from lanikai.sim.host.mpi.comm.intracomm import Intracomm
from lanikai.sim.host.mpi.config import MpiConfig, MpiCosts
from lanikai.sim.host.mpi.data.status import Status
from lanikai.sim.host.mpi.envelope import HEADER_BYTES
from lanikai.sim.host.mpi.matching import ANY_SOURCE, ANY_TAG
from lanikai.sim.host.mpi.transport import Incoming
from lanikai.sim.host.mpi.world import make_worlds, run_ranks

from support.firmware.scheduler import World

SMALL = MpiConfig(
    fragment_bytes=HEADER_BYTES + 32,
    eager_bytes=32,
    data_sends=2,
    control_sends=2,
    data_receives=8,
    control_receives=2,
)
"""Buffers for 8 fragments of 32 bytes: a message of 257 bytes is longer than all of them."""


async def received(comm: Intracomm, buffer: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status:
    """Receive. Returns the status."""
    status = Status()
    await comm.Recv(buffer, source, tag, status)
    return status


class FakeTransport:
    """`Transport` of one rank of `net`."""

    def __init__(self, net: Ranks, rank: int) -> None:
        self.net, self.rank, self.size = net, rank, net.size
        self.inbox: deque[Incoming] = deque()
        self.happened = net.world.flag()
        self.free = {False: net.config.data_sends, True: net.config.control_sends}
        self.unread = [0] * net.size
        self.in_flight = 0
        self.closed = False
        self.sent: list[tuple[int, bytes]] = []

    @property
    def cycle(self) -> int:
        return self.net.world.cycle

    @property
    def clock_hz(self) -> int:
        return 1_000_000

    @property
    def quiet(self) -> bool:
        return not (self.in_flight or self.inbox or self.happened.is_set())

    def room(self, rank: int, *, control: bool) -> bool:
        return self.free[control] > 0

    async def send(self, rank: int, header: bytes, payload: memoryview, *, control: bool) -> None:
        assert self.room(rank, control=control) and rank != self.rank and not self.closed
        assert len(header) == HEADER_BYTES and len(payload) <= self.net.config.payload_bytes
        data = bytearray(header + bytes(payload))
        self.sent.append((rank, bytes(data)))
        self.free[control] -= 1
        self.in_flight += 1
        at = self.cycle + self.net.delay()
        if not control:
            at = self.net.last[self.rank, rank] = max(at, self.net.last.get((self.rank, rank), 0))
        self.net.world.at(at, lambda: self.net.transports[rank].arrive(self.rank, data, control))
        self.net.world.at(at + self.net.delay(), lambda: self.acknowledged(control))

    def acknowledged(self, control: bool) -> None:
        self.free[control] += 1
        self.in_flight -= 1
        self.happened.set()

    def arrive(self, source: int, data: bytearray, control: bool) -> None:
        assert not self.closed, "a message for a rank that has ended"
        if not control:
            self.unread[source] += 1
            assert self.unread[source] <= self.net.config.credits(self.size), "sent without a credit"
        self.inbox.append(Incoming(source, memoryview(data), (data, control)))
        self.happened.set()

    def poll(self) -> Incoming | None:
        return self.inbox.popleft() if self.inbox else None

    async def release(self, incoming: Incoming) -> None:
        data, control = incoming.token
        data[:] = b"\xee" * len(data)
        if not control:
            self.unread[incoming.source] -= 1

    async def wait(self) -> None:
        await self.happened.wait()
        self.happened.clear()

    async def spend(self, nanoseconds: int) -> None:
        if nanoseconds:
            await self.net.world.sleep(-(-nanoseconds // 1000))

    async def close(self) -> None:
        assert not self.in_flight
        self.closed = True


class Ranks:
    """`size` ranks. `delay()`: cycles that a message takes, random for a `seed`, else 5."""

    def __init__(self, size: int, *, config: MpiConfig = SMALL, seed: int | None = None) -> None:
        self.world = World()
        self.size, self.config = size, config
        self.random = random.Random(seed)
        self.fixed = seed is None
        self.last: dict[tuple[int, int], int] = {}
        self.transports = [FakeTransport(self, rank) for rank in range(size)]
        self.worlds = make_worlds(self.transports, config=config, costs=MpiCosts())

    def delay(self) -> int:
        return 5 if self.fixed else self.random.choice((1, 1, 5, 40, 400))

    def run(self, main: Callable[[Intracomm], Awaitable[Any]], *, ending: bool = True) -> list[Any]:
        """Run `main` as every rank. Returns the value of each. With `ending`, all ends as it should."""
        results = self.world.run(run_ranks(self.world, self.worlds, main, ending=ending))
        if ending:
            self.assert_home()
        return results

    def assert_home(self) -> None:
        """Check that nothing is left: messages, buffers, requests; and that no credit is lost."""
        for rank, transport in enumerate(self.transports):
            process = self.worlds[rank].process
            assert transport.closed and not transport.inbox and not any(transport.unread)
            assert transport.free == {False: self.config.data_sends, True: self.config.control_sends}
            assert process.out.empty() and not process._receives and not process._matcher.waiting
            assert not process._schedules
            for peer in range(self.size):
                owed = self.worlds[peer].process.out.owed[rank]
                assert process.out.credits[peer] + owed == self.config.credits(self.size)
