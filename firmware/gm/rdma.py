"""RDMA: receive buffers to host memory, then the event that tells of them. An event never overtakes its data."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

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
                if job.length and not await self._move(
                    "rdma_data", job.buffer + HEADER_BYTES, job.address, job.length
                ):
                    job.assembly.broken = True
                await self._program.recv.give_back(job.buffer)
                if event is not None and job.assembly.broken:
                    event = event.failed(Status.HOST_BUS)
                elif event is not None and event.kind is EventKind.RECEIVED and event.token == NO_TOKEN:
                    event = None  # a PUT: nobody waits for it
            if event is not None:
                await self._tell(job.port, event)

    async def _tell(self, port: Port, event: Event) -> None:
        staging = self._program.layout.event
        address = port.ring_address + port.events % self._program.gm.event_entries * EVENT_BYTES
        port.events += 1
        async with self._processor.step("rdma_event"):
            for place, word in event.words(port.events).items():
                await self._processor.store(staging + 4 * place, word)
        await self._move("rdma_start", staging, address, EVENT_BYTES)

    async def _move(self, step: str, sram: int, address: int, length: int) -> bool:
        """Move bytes from SRAM to host memory; return whether the bus took them."""
        processor = self._processor
        done = processor.events["host_dma"]
        self.waits_for = "the host DMA engine"
        async with self._program.host_dma as engine:
            async with processor.step(step):
                if step == "rdma_data":
                    await processor.spend(packet_turn=engine.turns("in"))
                await processor.write("HOST_DMA_HOST", address=address)
                await processor.write("HOST_DMA_SRAM", address=sram)
                await processor.write("HOST_DMA_CONTROL", bytes=length, to_host=1)
            self.waits_for = "the host DMA engine to end"
            await done.wait()
            done.clear()
            async with processor.step("rdma_done"):
                return not (await processor.read("HOST_DMA_STATUS"))["error"]
