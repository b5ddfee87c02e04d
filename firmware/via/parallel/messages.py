"""The stages of messages where many are under way: one at a time uses what a VI has once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header, Kind

from ...lock import Lock
from ...ports import Flag
from ..agent import Agent
from ..connection import Connection
from ..descriptor import Descriptor, Segment
from ..layout import ViRecord
from ..receive import Receiving
from ..stages import Stages
from ..state import Key, Outgoing, Vi, ViaContext, WorkQueue
from ..wire import PacketOp, ViaHeader
from .engines import ParallelEngines
from .stamps import Stamps
from .tasks import Ordered

__all__ = ["PLACES", "STAMPED_PLACES", "InTurn", "ParallelStages", "Places"]

PLACES, STAMPED_PLACES = 8, 2
"""Messages in that the engines work for at once, by arrival and by stamps.

By stamps there is one whose data the host DMA engine moves, and the one behind it: no stamp goes before these in the
engine's queue either (5.3.3). By arrival nothing is to go before another one.
"""
_MOVED = frozenset({PacketOp.SEND, PacketOp.RDMA_WRITE})


@dataclass
class _Waiting:
    """A message that waits for a place."""

    stamp: int
    granted: Flag


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


class Places:
    """Places of messages that the engines work for, `count` at most.

    The one that has waited longest has the next one; the smallest stamp, if they are `stamped`.
    """

    def __init__(self, count: int, *, stamped: bool, bits: int, new_flag: Callable[[], Flag]) -> None:
        self._free, self._new_flag = count, new_flag
        self._waiting: Ordered[_Waiting] = Ordered(stamped=stamped, bits=bits)

    async def take(self, stamp: int) -> None:
        """Return when there is a place, which `give` gives back."""
        if self._free:
            self._free -= 1
            return
        one = _Waiting(stamp, self._new_flag())
        self._waiting.add(one)
        await one.granted.wait()

    def give(self) -> None:
        """Give a place back: the first that waits has it."""
        if self._waiting:
            self._waiting.take().granted.set()
        else:
            self._free += 1


class InTurn(Receiving):
    """Packets in, those of a VI one after the other.

    A packet of data waits in its buffer until it has a place (`PLACES`), which it gives back when it has been told. So
    a card that is overloaded fills its buffers, and not its queue of completions. Acknowledgements and RDMA reads do
    not wait.

    `stamps`: the order in which they wait, None for that of arrival. A message is stamped as its first packet has come,
    by the rate of its other end.
    """

    def __init__(
        self,
        stages: ParallelStages,
        connection: Connection,
        agent: Agent,
        *,
        engines: ParallelEngines,
        stamps: Stamps | None,
    ) -> None:
        super().__init__(stages, connection, agent)
        self._parallel, self._stamps = engines, stamps
        self._turns: dict[int, Lock] = {}
        self._places = Places(
            PLACES if stamps is None else STAMPED_PLACES,
            stamped=stamps is not None,
            bits=self.context.nic.rtc_bits,
            new_flag=self.processor.port.flag,
        )
        self._stamp_of: dict[int, int] = {}

    async def _packet(
        self,
        vi: Vi,
        record: ViRecord,
        header: Header,
        via: ViaHeader,
        buffer: int,
        stamp: int | None = None,
    ) -> bool:
        generation, armed = vi.generation, False
        vi.users += 1
        waits = header.kind is Kind.DATA and via.op in _MOVED
        if waits and self._stamps is not None:
            stamp = self._arrives(self._stamps, vi, record, via)
        turn = self._turns.setdefault(vi.channel, Lock(self.processor.port.flag))
        async with turn:
            if waits:
                await self._places.take(stamp or 0)
            if vi.generation == generation and vi.record is not None:
                armed = await super()._packet(vi, record, header, via, buffer, stamp)
            else:
                self.context.drops["closed"] += 1
        if waits:
            self._parallel.when_told(self._places.give)
        self._parallel.left(vi)
        return armed

    def _arrives(self, stamps: Stamps, vi: Vi, record: ViRecord, via: ViaHeader) -> int:
        """The stamp of a packet that has come: its message's, which its first packet is given.

        The cost table has its cost among those of `program_up` (table 5.1, the receive side).
        """
        ticks = self._parallel.ticks()
        if via.offset == 0 or vi.channel not in self._stamp_of:
            stamps.open(vi, record, ticks)
            self._stamp_of[vi.channel] = stamps.add(vi, 1, ticks)
            stamps.take(vi, 1)
        return self._stamp_of[vi.channel]
