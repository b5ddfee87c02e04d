"""RDMA: receive buffers to host memory, then the event that tells of them. An event never overtakes its data."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..accesses import AccessList
from ..step import Step
from .context import GmContext
from .layout import EVENT_BYTES, HEADER_BYTES, NO_TOKEN, Event, EventKind, Status
from .state import Assembly, Port

__all__ = ["Rdma"]


@dataclass(frozen=True)
class _Job:
    """Bytes of a packet for host memory (none if `assembly` is None), then an event (if there is one)."""

    port: Port
    assembly: Assembly | None
    buffer: int
    address: int
    length: int
    event: Event | None


class Rdma:
    """The RDMA state machine, which serves jobs in the order of asking. `waits_for`: its present wait, in words."""

    def __init__(self, program: GmContext) -> None:
        self._program = program
        self._processor = program.processor
        self._wake = program.processor.port.flag()
        self._jobs: deque[_Job] = deque()
        self.waits_for = "a job"

    def post(self, port: Port, event: Event) -> None:
        """Put an event into a port's ring."""
        self._put(_Job(port, None, 0, 0, 0, event))

    def receive(
        self, port: Port, assembly: Assembly, buffer: int, address: int, length: int, event: Event | None
    ) -> None:
        """Move a packet's payload to host memory, give back its buffer, then tell of the message if it is whole."""
        self._put(_Job(port, assembly, buffer, address, length, event))

    def _put(self, job: _Job) -> None:
        self._jobs.append(job)
        self._wake.set()

    async def run(self) -> None:
        """Serve jobs for ever."""
        while True:
            while not self._jobs:
                self.waits_for = "a job"
                self._wake.clear()
                await self._wake.wait()
            job = self._jobs.popleft()
            event = job.event
            if job.assembly is not None:
                if job.length:
                    step = self._processor.step(
                        "rdma_data",
                        accesses=self._start("in", job.buffer + HEADER_BYTES, job.address, job.length),
                        ahead=True,
                        holding=self._program.host_dma,
                    )
                    job.assembly.broken |= not await self._end(step)
                await self._program.recv.give_back(job.buffer)
                if event is not None and job.assembly.broken:
                    event = event.failed(Status.HOST_BUS)
                elif event is not None and event.kind is EventKind.RECEIVED and event.token == NO_TOKEN:
                    event = None  # a PUT: nobody waits for it
            if event is not None:
                await self._tell(job.port, event)

    async def _tell(self, port: Port, event: Event) -> None:
        """Write an event to SRAM, then move it to its ring."""
        staging = self._program.layout.event
        address = port.ring_address + port.events % self._program.gm.event_entries * EVENT_BYTES
        port.events += 1
        accesses = AccessList()
        for place, word in event.words(port.events).items():
            accesses.store(staging + 4 * place, word)
        step = self._processor.step("rdma_event", accesses=accesses)
        step.then(
            "rdma_start",
            self._start(None, staging, address, EVENT_BYTES),
            ahead=True,
            holding=self._program.host_dma,
        )
        await self._end(step)

    def _start(
        self, way: Literal["in"] | None, sram: int, address: int, length: int
    ) -> Callable[[], AccessList]:
        """The accesses that have the host DMA engine move bytes from SRAM to host memory; `way` for a packet's."""
        self.waits_for = "the host DMA engine"

        def start() -> AccessList:
            self.waits_for = "the host DMA engine to end"
            accesses = AccessList()
            if way is not None:
                self._processor.pay(accesses, packet_turn=self._program.host_dma.turns(way))
            accesses.write("HOST_DMA_HOST", address=address)
            accesses.write("HOST_DMA_SRAM", address=sram)
            accesses.write("HOST_DMA_CONTROL", bytes=length, to_host=1)
            return accesses

        return start

    async def _end(self, step: Step) -> bool:
        """Take a step that starts the host DMA engine, and wait for its end; return whether the bus took the bytes."""
        accesses = AccessList()
        status = accesses.read("HOST_DMA_STATUS")
        async with step.then("rdma_done", accesses, after=self._processor.events["host_dma"]):
            pass
        self._program.host_dma.release()
        return not status["error"]
