"""The stages of messages where many are under way: one at a time uses what a VI has once."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header

from ...lock import Lock
from ..agent import Agent
from ..connection import Connection
from ..descriptor import Descriptor, Segment
from ..layout import ViRecord
from ..receive import Receiving
from ..stages import Stages
from ..state import Key, Outgoing, Vi, ViaContext, WorkQueue
from ..wire import ViaHeader
from .engines import ParallelEngines

__all__ = ["InTurn", "ParallelStages"]


class ParallelStages(Stages):
    """The stages where many messages are under way: one at a time uses a queue's place for its descriptor."""

    def __init__(self, context: ViaContext, engines: ParallelEngines) -> None:
        super().__init__(context, engines)
        self._slots: dict[tuple[int, bool], Lock] = {}

    def place(self, queue: WorkQueue) -> Lock:
        """The lock of the SRAM's place for a queue's next descriptor."""
        key = queue.channel, queue.receive
        if key not in self._slots:
            self._slots[key] = Lock(self.processor.port.flag)
        return self._slots[key]

    async def descriptor(
        self, queue: WorkQueue, record: ViRecord, index: int, key: Key, *, stamp: int | None = None
    ) -> tuple[Descriptor, CompletionStatus]:
        """As `Stages.descriptor`."""
        async with self.place(queue):
            return await super().descriptor(queue, record, index, key, stamp=stamp)

    async def data(
        self, message: Outgoing, record: ViRecord, pieces: Sequence[Segment], at: int, *, last: bool
    ) -> CompletionStatus:
        """As `Stages.data`. A descriptor that tailgates has the queue's place until its list has ended."""
        if last and pieces and self.tailgates(message.vi, len(pieces)):
            async with self.place(message.vi.send):
                return await super().data(message, record, pieces, at, last=last)
        return await super().data(message, record, pieces, at, last=last)

    async def prefetch(self, vi: Vi) -> None:
        """Bring a VI's next descriptor to receive to its place before a message wants it (5.4.1.1, table 5.1)."""
        queue = vi.receive
        async with self.processor.step("prefetch"):
            pass
        async with self.place(queue):
            record, index, generation = vi.record, queue.taken, vi.generation
            if record is None or vi.broken or not queue.waiting or queue.staged == index:
                return
            if record.receive_shadow and await self.shadowed(record.receive_shadow, index):
                return
            key = Key(vi.channel, index, receive=True)
            status = await self.engines.move(self.fetching(queue, record, index, key))
            if status != CompletionStatus.OK and vi.generation == generation:
                queue.staged = None


class InTurn(Receiving):
    """Packets in, those of a VI one after the other."""

    def __init__(
        self, stages: ParallelStages, connection: Connection, agent: Agent, *, engines: ParallelEngines
    ) -> None:
        super().__init__(stages, connection, agent)
        self._parallel = engines
        self._turns: dict[int, Lock] = {}

    async def _packet(self, vi: Vi, record: ViRecord, header: Header, via: ViaHeader, buffer: int) -> None:
        generation = vi.generation
        vi.users += 1
        turn = self._turns.setdefault(vi.channel, Lock(self.processor.port.flag))
        async with turn:
            if vi.generation == generation and vi.record is not None:
                await super()._packet(vi, record, header, via, buffer)
            else:
                self.context.drops["closed"] += 1
        self._parallel.left(vi)
