"""The task queues of the parallel design: one a DMA engine (nagar-thesis-2001 4.3.6, 4.3.7, 5.3.2).

A message of this design is a coroutine that keeps its state from stage to stage. It puts a task into an engine's queue
and sleeps until that task has ended. Meanwhile the processor does the steps of other messages.

The queue before the host DMA engine is in hardware (`NicConfig.host_dma_queue_entries`) or in software. So is the one
before the send engine (`send_queue_entries`). A hardware queue that is full has a software queue before it. In order of
stamps both are ordered, by stamp, then by arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, TypeVar

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ...accesses import AccessList, Reading
from ...ports import Flag
from ...processor import Processor
from ..engines import Move, write_move

__all__ = ["HostTask", "HostTasks", "Ordered", "Packet", "SendTask", "SendTasks"]

TAGS = 256
"""Numbers of lists that are under way at once, as HOST_DMA_TAG has them."""


class _Stamped(Protocol):
    stamp: int


Task = TypeVar("Task", bound=_Stamped)


class Ordered(Generic[Task]):
    """Tasks in software: by arrival, or by stamps on a clock of `bits` bits, those of one stamp by arrival.

    Stamps that wait at once are less than half the clock's range apart. What was taken before may be any time ago.
    """

    def __init__(self, *, stamped: bool, bits: int) -> None:
        self._stamped, self._range = stamped, 1 << bits
        self._tasks: list[tuple[int, int, Task]] = []
        self._count = count()

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: Task) -> int:
        """Put a task in; the number of tasks that it has gone before."""
        key = self._key(task.stamp) if self._stamped else 0
        before = sum(one[0] > key for one in self._tasks)
        heapq.heappush(self._tasks, (key, next(self._count), task))
        return before

    def take(self) -> Task:
        """Take the first task out. Raises IndexError if there is none."""
        return heapq.heappop(self._tasks)[2]

    def first(self) -> Task:
        """The first task, which stays. Raises IndexError if there is none."""
        return self._tasks[0][2]

    def _key(self, stamp: int) -> int:
        """The stamp without the clock's wrap: the one nearest to those that wait."""
        if not self._tasks:
            return stamp
        half, origin = self._range >> 1, self._tasks[0][0]
        return origin + (stamp - origin + half) % self._range - half


@dataclass
class HostTask:
    """A list of moves: `ended` is set when it has ended, and `status` is then that of the first that failed.

    `started` is called when it is programmed.
    """

    moves: Sequence[Move]
    stamp: int
    ended: Flag
    started: Callable[[], None]
    status: CompletionStatus = CompletionStatus.OK
    next: int = 0


@dataclass
class Packet:
    """A packet that stands in the SRAM, header first: its address and the bytes of its payload."""

    address: int
    bytes: int


@dataclass
class SendTask:
    """A packet for the send engine: `sent` is set when its buffer is free again."""

    packet: Packet
    stamp: int
    sent: Flag
    started: Callable[[], None]


Held = TypeVar("Held", HostTask, SendTask)


class _Queue(Generic[Held]):
    """Tasks before an engine of one processor: in its hardware queue, which shows their ends, or in software.

    - `entries`: those of the hardware queue; 0 for none. `shows`: its register that shows ends.
    - `step`: spent for each end.
    """

    def __init__(
        self, processor: Processor, nic: NicConfig, *, stamped: bool, entries: int, shows: str, step: str
    ) -> None:
        self._processor, self._nic, self._entries = processor, nic, entries
        self._shows, self._step = shows, step
        self._waiting: Ordered[Held] = Ordered(stamped=stamped, bits=nic.rtc_bits)
        self._under_way: dict[int, Held] = {}
        self._numbers = list(range(TAGS - 1, -1, -1))

    async def _put(self, task: Held, *, fits: bool) -> Held:
        """Inside a step: start a task if it fits and none waits; else it waits in software."""
        if fits and not self._waiting:
            await self._start(task)
        else:
            self._waiting.add(task)
            await self._processor.spend(queued=1)
        return task

    async def _start(self, task: Held) -> None:
        """Inside a step: program the engine, or its queue."""
        raise NotImplementedError

    async def _ends(self) -> AsyncIterator[tuple[Held, Reading]]:
        """Inside a step, which is paid for the first: the ends that the hardware queue shows, a step each."""
        paid = True
        while True:
            accesses = AccessList()
            finished = accesses.read(self._shows)
            await self._processor.carry_out(accesses)
            if not finished["valid"]:
                return
            if not paid:
                await self._processor.spend(**{self._step: 1})
            paid = False
            self._numbers.append(finished["tag"])
            yield self._under_way.pop(finished["tag"]), finished


class HostTasks(_Queue[HostTask]):
    """The task queue before the host DMA engine of one processor.

    The processor's cost table has two steps for it: `queued` is paid for a task that has to wait in software, and
    `host_ended` for each end. With `stamped` tasks go by their stamps. `run` is to be spawned once: it serves the
    engine's ends. `started` counts starts of the engine, or entries of its queue.
    """

    def __init__(self, processor: Processor, nic: NicConfig, *, stamped: bool = False) -> None:
        entries = nic.host_dma_queue_entries
        super().__init__(
            processor, nic, stamped=stamped, entries=entries, shows="HOST_DMA_FINISHED", step="host_ended"
        )
        self._ordered = stamped and nic.host_dma_queue_order == "timestamp"
        self._room = entries
        self._current: HostTask | None = None
        self.started = 0

    @property
    def busy(self) -> bool:
        """Whether a task waits or is under way."""
        return bool(self._waiting or self._under_way or self._current)

    def state(self) -> str:
        """The tasks that it holds, in a few words."""
        under_way = len(self._under_way) + (self._current is not None)
        return f"{under_way} tasks under way, {len(self._waiting)} wait"

    async def submit(self, moves: Sequence[Move], *, stamp: int, started: Callable[[], None]) -> HostTask:
        """Inside a step: put a list of moves into the queue, or start it.

        `started` is called once it is programmed, now or later. Raises ValueError for a list that no queue could hold.
        """
        if self._entries and len(moves) > self._entries:
            raise ValueError(
                f"a list of {len(moves)} host DMAs; the card's queue has {self._entries} entries"
            )
        task = HostTask(moves, stamp, self._processor.port.flag(), started)
        return await self._put(task, fits=self._fits(task))

    async def run(self) -> None:
        """Serve the engine's ends for ever."""
        ends = self._processor.events["host_dma"]
        while True:
            # The event is cleared before the look: an end that comes after it raises the event again.
            async with self._processor.step("host_ended", after=ends):
                await (self._queue_ends() if self._entries else self._engine_ends())

    async def run_accesses(self) -> None:
        """On a card without a queue, serve the ends of checked moves for ever: they are an event of their own."""
        ends = self._processor.events["access"]
        while True:
            async with self._processor.step("host_ended", after=ends):
                await self._engine_ends()

    async def _queue_ends(self) -> None:
        """Inside a step: take in all ends that the queue shows."""
        async for task, finished in self._ends():
            task.status = self._status(finished)
            self._room += len(task.moves)
            task.ended.set()
            while self._waiting and self._fits(self._waiting.first()):
                await self._start(self._waiting.take())

    async def _engine_ends(self) -> None:
        """Inside a step: the engine has ended what was started last. Start the next move of its list, or task."""
        task = self._current
        if task is None:
            return
        checked = task.moves[task.next - 1].tag is not None
        accesses = AccessList()
        word = accesses.read("ACCESS_STATUS" if checked else "HOST_DMA_STATUS")
        await self._processor.carry_out(accesses)
        if task.status is CompletionStatus.OK:
            if checked:
                task.status = CompletionStatus(word["status"])
            elif word["error"]:
                task.status = CompletionStatus.BUS_ERROR
        if task.next < len(task.moves):
            await self._start(task)
            return
        self._current = None
        task.ended.set()
        if self._waiting:
            await self._start(self._waiting.take())

    def _status(self, finished: Reading) -> CompletionStatus:
        if self._nic.regions:
            return CompletionStatus(finished["status"])
        return CompletionStatus.BUS_ERROR if finished["error"] else CompletionStatus.OK

    def _fits(self, task: HostTask) -> bool:
        if not self._entries:
            return self._current is None
        return len(task.moves) <= self._room and bool(self._numbers)

    async def _start(self, task: HostTask) -> None:
        """Inside a step: program the engine, or its queue."""
        accesses = AccessList()
        if self._entries:
            number = self._numbers.pop()
            self._under_way[number] = task
            self._room -= len(task.moves)
            self.started += len(task.moves)
            if self._ordered:
                accesses.write("HOST_DMA_STAMP", ticks=task.stamp)
            for place, move in enumerate(task.moves):
                write_move(accesses, move, queue=True, tag=number, more=place + 1 < len(task.moves))
        else:
            self._current = task
            self.started += 1
            write_move(accesses, task.moves[task.next], queue=False)
            task.next += 1
        await self._processor.carry_out(accesses)
        if task.next <= 1:
            task.started()


class SendTasks(_Queue[SendTask]):
    """The task queue before the send engine.

    The processor's cost table has three steps for it:

    - `send`: for starting the engine, or for a place in its hardware queue.
    - `queued`: for a packet that has to wait in software.
    - `send_ended`: for each end.

    With `stamped` packets go by their stamps. `run` is to be spawned once: it serves the engine's ends, and starts the
    next packet before anything else is done.
    """

    def __init__(self, processor: Processor, nic: NicConfig, *, stamped: bool = False) -> None:
        entries = nic.send_queue_entries
        super().__init__(
            processor, nic, stamped=stamped, entries=entries, shows="SEND_FINISHED", step="send_ended"
        )
        self._ordered = stamped and nic.send_queue_order == "timestamp"
        self._room = entries or 1

    @property
    def busy(self) -> bool:
        """Whether a packet waits or is under way."""
        return bool(self._waiting or self._under_way)

    def state(self) -> str:
        """The tasks that it holds, in a few words."""
        return f"{len(self._under_way)} packets under way, {len(self._waiting)} wait"

    async def submit(self, packet: Packet, *, stamp: int, started: Callable[[], None]) -> SendTask:
        """Inside a step: put a packet into the queue, or start it. `started` is called once it is programmed."""
        task = SendTask(packet, stamp, self._processor.port.flag(), started)
        return await self._put(task, fits=bool(self._room))

    async def run(self) -> None:
        """Serve the engine's ends for ever."""
        ends = self._processor.events["send"]
        while True:
            async with self._processor.step("send_ended", after=ends):
                if self._entries:
                    async for task, _ in self._ends():
                        await self._sent(task)
                elif self._under_way:
                    await self._sent(self._under_way.pop(0))

    async def _sent(self, task: SendTask) -> None:
        """Inside a step: a packet is gone. Start those that are to go next, as far as there is room."""
        self._room += 1
        task.sent.set()
        while self._waiting and self._room:
            await self._start(self._waiting.take())

    async def _start(self, task: SendTask) -> None:
        """Inside a step: program the engine, or its queue."""
        self._room -= 1
        await self._processor.spend(send=1)
        accesses = AccessList()
        number = self._numbers.pop() if self._entries else 0
        self._under_way[number] = task
        if self._entries:
            if self._ordered:
                accesses.write("SEND_STAMP", ticks=task.stamp)
            accesses.write("SEND_TAG", tag=number, notify=1)
        accesses.write("SEND_ADDRESS", address=task.packet.address)
        accesses.write("SEND_CONTROL", bytes=task.packet.bytes, vl=0)
        await self._processor.carry_out(accesses)
        task.started()
