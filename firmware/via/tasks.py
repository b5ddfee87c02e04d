"""The task queues of the parallel design: one a DMA engine (nagar-thesis-2001 4.3.6, 4.3.7, 5.3.2).

A message of this design is a coroutine that keeps its state from stage to stage. It puts a task into an engine's queue
and sleeps until that task has ended. Meanwhile the processor does the steps of other messages.

The queue before the host DMA engine is in hardware (`NicConfig.host_dma_queue_entries`) or in software. So is the one
before the send engine (`send_queue_entries`). A hardware queue that is full has a software queue before it. In order of
stamps both are ordered, by stamp, then by arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, TypeVar

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..accesses import AccessList, Reading
from ..ports import Flag
from ..processor import Processor

__all__ = ["HostTasks", "Ordered", "Packet", "SendTasks", "Transfer"]

TAGS = 256
"""Numbers of lists that are under way at once, as HOST_DMA_TAG has them."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A host DMA of `bytes`, down to `sram` or up from it (`to_host`).

    It is checked, if it has a `channel`: `host` is then a virtual address in the region of `tag`. The firmware's own
    are not: `host` is a host address.
    """

    host: int
    sram: int
    bytes: int
    to_host: bool = False
    channel: int | None = None
    tag: int = 0

    def write(self, accesses: AccessList, *, number: int | None, more: bool = False) -> None:
        """Write down its start; `number` goes into HOST_DMA_TAG, if the card has a queue."""
        if number is not None:
            accesses.write("HOST_DMA_TAG", tag=number, notify=1, more=more)
        if self.channel is None:
            accesses.write("HOST_DMA_HOST", address=self.host)
            accesses.write("HOST_DMA_SRAM", address=self.sram)
            accesses.write("HOST_DMA_CONTROL", bytes=self.bytes, to_host=self.to_host)
        else:
            accesses.write("ACCESS_ADDRESS", address=self.host)
            accesses.write(
                "ACCESS_TAG", region=self.tag & 0xFF, key=self.tag >> 8 & 0xFF, channel=self.channel
            )
            accesses.write("ACCESS_SRAM", address=self.sram)
            accesses.write("ACCESS_CONTROL", bytes=self.bytes, to_host=self.to_host)


@dataclass(frozen=True)
class Packet:
    """A packet that stands in the SRAM, header first: its address and the bytes of its payload."""

    address: int
    bytes: int


class _Stamped(Protocol):
    stamp: int


Task = TypeVar("Task", bound=_Stamped)


class Ordered(Generic[Task]):
    """Tasks in software: by arrival, or by stamps on a clock of `bits` bits, those of one stamp by arrival."""

    def __init__(self, *, stamped: bool, bits: int) -> None:
        self._stamped, self._range = stamped, 1 << bits
        self._tasks: list[tuple[int, int, Task]] = []
        self._count = count()
        self._origin = 0

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
        key, _, task = heapq.heappop(self._tasks)
        if self._stamped:
            self._origin = key
        return task

    def first(self) -> Task:
        """The first task, which stays. Raises IndexError if there is none."""
        return self._tasks[0][2]

    def _key(self, stamp: int) -> int:
        """The stamp without the clock's wrap: the one nearest to the last that was taken or is there."""
        half = self._range >> 1
        return self._origin + (stamp - self._origin + half) % self._range - half


@dataclass
class _HostTask:
    """A list of transfers for the host DMA engine."""

    step: str
    transfers: Sequence[Transfer]
    stamp: int
    ended: Flag
    started: Callable[[], None] | None
    status: CompletionStatus = CompletionStatus.OK
    next: int = 0


class HostTasks:
    """The task queue before the host DMA engine of one processor.

    Parameters:

    - `queued`: the step that is paid for a task that has to wait in software.
    - `ended`: the step that is paid for each end.
    - `stamped`: tasks go by their stamps.

    `run` is to be spawned once: it serves the engine's ends. `started` counts the starts of the engine.
    """

    def __init__(
        self,
        processor: Processor,
        nic: NicConfig,
        *,
        queued: str = "queued",
        ended: str = "host_ended",
        stamped: bool = False,
    ) -> None:
        self._processor, self._nic = processor, nic
        self._queued_step, self._ended_step = queued, ended
        self._hardware = nic.host_dma_queue_entries
        self._stamped = stamped
        self._room = self._hardware or 1
        self._waiting: Ordered[_HostTask] = Ordered(stamped=stamped, bits=nic.rtc_bits)
        self._under_way: dict[int, _HostTask] = {}
        self._free_numbers = list(range(TAGS - 1, -1, -1))
        self._current: _HostTask | None = None
        self.started = 0

    @property
    def busy(self) -> bool:
        """Whether a task waits or is under way."""
        return bool(self._waiting or self._under_way or self._current)

    async def move(
        self,
        step: str,
        transfers: Sequence[Transfer],
        *,
        stamp: int = 0,
        times: int = 1,
        started: Callable[[], None] | None = None,
    ) -> CompletionStatus:
        """Move a list of transfers, and return how it ended: as the first of them that failed.

        `step` is paid (`times` its cycles) for programming it. `started` is called once it has been programmed.
        Raises ValueError for a list that no queue could ever hold.
        """
        if self._hardware and len(transfers) > self._hardware:
            raise ValueError(
                f"a list of {len(transfers)} host DMAs; the card's queue has {self._hardware} entries"
            )
        task = _HostTask(step, transfers, stamp, self._processor.port.flag(), started)
        async with self._processor.step(step, times):
            if self._may_start(task):
                await self._processor.carry_out(self._start(task))
            else:
                await self._processor.spend(**{self._queued_step: 1})
                self._waiting.add(task)
        if task.started is not None and task.next:
            task.started()
        await task.ended.wait()
        return task.status

    async def run(self) -> None:
        """Serve the engine's ends for ever."""
        processor = self._processor
        ends = processor.events["host_dma"]
        while True:
            if self._hardware:
                # The event first: an end that comes after it raises it again.
                accesses = AccessList()
                finished = accesses.read("HOST_DMA_FINISHED")
                async with processor.step(self._ended_step, accesses=accesses, after=ends):
                    while finished["valid"]:
                        self._end(finished)
                        await self._fill()
                        more = AccessList()
                        finished = more.read("HOST_DMA_FINISHED")
                        await processor.carry_out(more)
                        if finished["valid"]:
                            await processor.spend(**{self._ended_step: 1})
            else:
                accesses = AccessList()
                status, access = accesses.read("HOST_DMA_STATUS"), accesses.read("ACCESS_STATUS")
                async with processor.step(self._ended_step, accesses=accesses, after=ends):
                    task = self._current
                    if task is None:
                        continue
                    checked = task.transfers[task.next - 1].channel is not None
                    found = (
                        CompletionStatus(access["status"])
                        if checked
                        else (CompletionStatus.BUS_ERROR if status["error"] else CompletionStatus.OK)
                    )
                    if task.status is CompletionStatus.OK:
                        task.status = found
                    self._current = None
                    if task.next < len(task.transfers):
                        await processor.carry_out(self._start(task))
                    else:
                        task.ended.set()
                        await self._fill()

    def _end(self, finished: Reading) -> None:
        task = self._under_way.pop(finished["tag"])
        if self._nic.regions:
            task.status = CompletionStatus(finished["status"])
        elif finished["error"]:
            task.status = CompletionStatus.BUS_ERROR
        self._free_numbers.append(finished["tag"])
        self._room += len(task.transfers)
        task.ended.set()

    async def _fill(self) -> None:
        """Inside a step: start tasks that wait in software, as far as there is room."""
        while self._waiting and self._fits(self._waiting.first()):
            task = self._waiting.take()
            await self._processor.carry_out(self._start(task))
            if task.started is not None:
                task.started()
            if not self._hardware:
                return

    def _may_start(self, task: _HostTask) -> bool:
        return not self._waiting and self._fits(task)

    def _fits(self, task: _HostTask) -> bool:
        if not self._hardware:
            return self._current is None
        return len(task.transfers) <= self._room and bool(self._free_numbers)

    def _start(self, task: _HostTask) -> AccessList:
        accesses = AccessList()
        self.started += 1
        if not self._hardware:
            self._current = task
            task.transfers[task.next].write(accesses, number=None)
            task.next += 1
            return accesses
        number = self._free_numbers.pop()
        self._under_way[number] = task
        self._room -= len(task.transfers)
        task.next = len(task.transfers)
        if self._stamped:
            accesses.write("HOST_DMA_STAMP", ticks=task.stamp)
        for place, transfer in enumerate(task.transfers):
            transfer.write(accesses, number=number, more=place + 1 < len(task.transfers))
        return accesses


@dataclass
class _SendTask:
    """A packet for the send engine."""

    packet: Packet
    stamp: int
    sent: Flag
    started: Callable[[], None] | None


class SendTasks:
    """The task queue before the send engine.

    Parameters:

    - `program`: the step that is paid for starting the engine, or for putting a packet into its hardware queue.
    - `queued`: the step that is paid besides for a packet that has to wait in software.
    - `ended`: the step that is paid for each end.

    `run` is to be spawned once: it serves the engine's ends. The next packet is started before anything else is done.
    """

    def __init__(
        self,
        processor: Processor,
        nic: NicConfig,
        *,
        program: str = "send",
        queued: str = "queued",
        ended: str = "send_ended",
        stamped: bool = False,
    ) -> None:
        self._processor, self._nic = processor, nic
        self._program_step, self._queued_step, self._ended_step = program, queued, ended
        self._hardware = nic.send_queue_entries
        self._stamped = stamped
        self._ordered = stamped and nic.send_queue_order == "timestamp" and bool(self._hardware)
        self._room = self._hardware or 1
        self._waiting: Ordered[_SendTask] = Ordered(stamped=stamped, bits=nic.rtc_bits)
        self._under_way: dict[int, _SendTask] = {}
        self._free_numbers = list(range(TAGS - 1, -1, -1))

    @property
    def busy(self) -> bool:
        """Whether a packet waits or is under way."""
        return bool(self._waiting or self._under_way)

    async def send(
        self, packet: Packet, *, stamp: int = 0, started: Callable[[], None] | None = None
    ) -> None:
        """Send a packet, and return when its buffer is free again. `started` is called once it has been programmed."""
        task = _SendTask(packet, stamp, self._processor.port.flag(), started)
        if self._room and not self._waiting:
            self._room -= 1
            async with self._processor.step(self._program_step):
                await self._processor.carry_out(self._start(task))
            if started is not None:
                started()
        else:
            self._waiting.add(task)
            async with self._processor.step(self._queued_step):
                pass
        await task.sent.wait()

    async def run(self) -> None:
        """Serve the engine's ends for ever."""
        processor = self._processor
        ends = processor.events["send"]
        while True:
            async with processor.step(self._ended_step, after=ends):
                if not self._hardware:
                    self._sent(0)
                    await self._next()
                    continue
                while True:
                    accesses = AccessList()
                    finished = accesses.read("SEND_FINISHED")
                    await processor.carry_out(accesses)
                    if not finished["valid"]:
                        break
                    self._sent(finished["tag"])
                    await self._next()

    def _sent(self, number: int) -> None:
        task = self._under_way.pop(number)
        if self._hardware:
            self._free_numbers.append(number)
        self._room += 1
        task.sent.set()

    async def _next(self) -> None:
        """Inside a step: start the packet that is to go next, if one waits."""
        while self._waiting and self._room:
            task = self._waiting.take()
            self._room -= 1
            await self._processor.spend(**{self._program_step: 1})
            await self._processor.carry_out(self._start(task))
            if task.started is not None:
                task.started()

    def _start(self, task: _SendTask) -> AccessList:
        accesses = AccessList()
        number = self._free_numbers.pop() if self._hardware else 0
        self._under_way[number] = task
        if self._hardware:
            if self._ordered:
                accesses.write("SEND_STAMP", ticks=task.stamp)
            accesses.write("SEND_TAG", tag=number, notify=1)
        accesses.write("SEND_ADDRESS", address=task.packet.address)
        accesses.write("SEND_CONTROL", bytes=task.packet.bytes, vl=0)
        return accesses
