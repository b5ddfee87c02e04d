"""A rank of a parallel program: messages over its endpoint, with the names of MPI's calls.

It is a small layer with the calls that the programs here need, as `lanikai.sim.host.mpi` has them for GM. All messages
go at once (eagerly). A rank takes messages inside its receives alone, as MPICH does.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cpu.process import HostProcess
from ..cpu.requests import Work
from .endpoint import Endpoint, Message

__all__ = ["Rank"]

BARRIER, REDUCE = -1, -2
"""Tags of collective operations; programs have tags from 0."""


class Rank:
    """Rank `rank` of a job. `endpoints`: those of all ranks, which are open.

    - `sent`: messages so far.
    - `latencies`: cycles from the send call to the end of the receive, if `keep_latencies` is set.
    """

    def __init__(self, process: HostProcess, rank: int, endpoints: Sequence[Endpoint]) -> None:
        self.process = process
        self.rank = rank
        self.size = len(endpoints)
        self.sent = 0
        self.keep_latencies = False
        self.latencies: list[int] = []
        self._endpoints = endpoints
        self._mine = endpoints[rank]
        self._mine.process = process
        self._unexpected: list[Message] = []

    def compute(self, cycles: int) -> Work:
        """Compute for so many cycles of the processor."""
        return self.process.compute(cycles)

    async def Send(self, data: bytes, dest: int, tag: int = 0) -> None:
        """Send a message; it is under way when this returns."""
        began = self.process.host.time.cycle
        process, config = self.process, self._mine.node.config
        await process.overhead(config.send_ns)
        if data:
            await process.copy(-(-len(data) // 4), cached=True)
        self.sent += 1
        self._mine.node.card.send(self._endpoints[dest], Message(self.rank, tag, data, began))

    async def Recv(self, source: int, tag: int = 0) -> bytes:
        """Receive the first message of a rank with a tag. Returns its bytes."""
        mine, process, config = self._mine, self.process, self._mine.node.config
        for place, message in enumerate(self._unexpected):
            if message.source == source and message.tag == tag:
                return self._took(self._unexpected.pop(place))
        mine.spin_left, mine.lowered = mine.node.spin_cycles, False
        while True:
            while mine.inbox:
                await process.overhead(config.receive_ns)
                message = mine.inbox.popleft()
                if message.data:
                    await process.copy(-(-len(message.data) // 4), cached=True)
                if message.source == source and message.tag == tag:
                    return self._took(message)
                self._unexpected.append(message)
            mine.arrived.clear()
            mine.waits = True
            await mine.node.strategy.waiting.wait(mine)
            mine.waits = False

    async def Barrier(self) -> None:
        """Return when all ranks have called it: by dissemination."""
        step = 1
        while step < self.size:
            await self.Send(b"", (self.rank + step) % self.size, BARRIER)
            await self.Recv((self.rank - step) % self.size, BARRIER)
            step *= 2

    async def Allreduce(self, value: float) -> float:
        """The sum of all ranks' values: by recursive doubling, of 2, 4, 8 ... ranks."""
        step = 1
        while step < self.size:
            other = self.rank ^ step
            await self.Send(value.hex().encode(), other, REDUCE)
            value += float.fromhex((await self.Recv(other, REDUCE)).decode())
            step *= 2
        return value

    def _took(self, message: Message) -> bytes:
        if self.keep_latencies:
            self.latencies.append(self.process.host.time.cycle - message.sent_at)
        return message.data
