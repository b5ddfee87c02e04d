"""SVIA: the stages of a message in a fixed sequence, with busy waits (nagar-thesis-2001 5.3.1, and Base of 4.3.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from .. import registers
from ..accesses import AccessList
from ..processor import Processor
from .agent import Agent
from .connection import Connection
from .doorbells import Doorbells
from .engines import PacketOut, Post, Transfer, write_move, write_post
from .receive import Receiving
from .sending import Sending
from .stages import Stages
from .state import Key, Vi, ViaContext
from .trace import Stage

__all__ = ["SequentialVia"]

OK = CompletionStatus.OK


class SequentialVia:
    """The sequential design, as `Engines` and as the loop that runs messages one after the other.

    - It waits for the host DMA engine as long as the bus takes, which always answers.
    - While it waits for the network it takes in packets and doorbells, and ends waits for answers that are over. Two
      cards that send to each other would wait for ever otherwise, and the host's bus would wait for the network.
    - While a completion queue stalls it takes doorbells.
    """

    def __init__(self, context: ViaContext, processor: Processor) -> None:
        self.context, self.processor = context, processor
        self.layout = context.layout
        self._queued = context.nic.host_dma_queue_entries > 0
        self._armed = True
        self._woken_cycle: int | None = None
        self.stages = Stages(context, self)
        self.agent = Agent(
            context, self, meanwhile=self._take_doorbells, flush=self.stages.flush, drain=self._nothing
        )
        self.connection = Connection(self.stages, self.agent)
        self.sending = Sending(self.stages, self.connection)
        self.receiving = Receiving(self.stages, self.connection, self.agent)
        self.doorbells = Doorbells(context, processor, request=self.agent.request, flush=self.stages.flush)

    def start(self, name: str) -> None:
        """Spawn its coroutine."""
        self.processor.port.spawn(self.run(), name)

    def state(self) -> list[str]:
        """Nothing: there is one message."""
        return []

    async def run(self) -> None:
        """Serve for ever."""
        context = self.context
        await self.agent.boot()
        self._armed = False
        await self.rearm(self.layout.receive_buffer())
        while True:
            context.doing = ""
            seen = await self._wait("doorbell", "receive", "completion", "timer")
            await self._serve(seen)
            if self.doorbells.polled and "doorbell" in seen:
                await self.doorbells.poll(in_turn=True)
            while context.ready or context.answers or context.control:
                if context.control:
                    await self.agent.send_control(*context.control.popleft())
                if context.answers:
                    await self.sending.answer(context.answers.popleft())
                if context.ready:
                    vi = context.ready.popleft()
                    if context.may_send(vi):
                        await self.sending.send(vi)
                    context.give_turn(vi)
                await self._serve(await self._came("receive", "completion", "timer"))
                if self.doorbells.polled:
                    await self.doorbells.poll(in_turn=True)

    async def _serve(self, seen: set[str]) -> None:
        """Serve packets that have come in, queues that have failed, waits that are over, doorbells."""
        await self._take_doorbells()
        if "receive" in seen:
            await self._receive()
        if "completion" in seen:
            await self.agent.tell_broken()
        if "timer" in seen:
            await self.connection.timer()
        await self.agent.retry()

    async def _receive(self) -> None:
        self._armed, came = False, self._woken_cycle
        self._woken_cycle = None
        await self.receiving.take(self.layout.receive_buffer(), came)

    async def _take_doorbells(self) -> None:
        await self.doorbells.take()

    async def _nothing(self) -> None:
        """There is no other processor."""

    async def _wait(self, *sources: str) -> set[str]:
        """Sleep until one of these events; those that have come are cleared."""
        accesses = AccessList()
        accesses.write("IMR", mask=registers.pack("ISR", **dict.fromkeys(sources, 1)))
        await self.processor.run("look", accesses)
        await self.processor.port.event()
        self._woken_cycle = self.context.clock()
        return await self._look("dispatch", sources)

    async def _came(self, *sources: str) -> set[str]:
        """The events of these that have come; they are cleared."""
        self._woken_cycle = None
        return await self._look("look", sources)

    async def _look(self, step: str, sources: Sequence[str]) -> set[str]:
        mask = registers.pack("ISR", **dict.fromkeys(sources, 1))
        accesses = AccessList()
        status = accesses.read("ISR")
        accesses.skip_if(status, mask=mask, value=0, records=1)
        accesses.copy(status, "ISR", mask=mask)
        await self.processor.run(step, accesses)
        return {name for name in sources if status[name]}

    async def move(self, transfer: Transfer) -> CompletionStatus:
        """As `Engines.move`: program, wait, and look how it ended; list by list if the queue does not hold them all."""
        status = OK
        for part in transfer.lists(max(1, self.context.nic.host_dma_queue_entries)):
            found = await self._move(part)
            status = found if status == OK else status
        return status

    async def _move(self, transfer: Transfer) -> CompletionStatus:
        processor, trace, key, moves = self.processor, self.context.trace, transfer.key, transfer.moves
        begin = self.context.clock()
        accesses = AccessList()
        processor.pay(accesses, **transfer.extra)
        if not self._queued:
            accesses.write("ISR", host_dma=1, access=1)  # of a checked access both come, and one of them late
        for place, move in enumerate(moves):
            write_move(accesses, move, queue=self._queued, more=place + 1 < len(moves))
        # A checked access that no queue takes in may end without the engine.
        checked = moves[0].tag is not None
        event = "access" if checked and not self._queued else "host_dma"
        accesses.write("IMR", mask=registers.pack("ISR", **{event: 1}))
        await processor.run(transfer.step, accesses)
        started = self.context.clock()
        await processor.port.event()
        message = trace.message(key.channel, key.index, receive=key.receive)
        trace.span(message, transfer.stages[0], begin, started)
        accesses = AccessList()
        accesses.write("ISR", **{event: 1})
        names = (
            ("HOST_DMA_FINISHED",)
            if self._queued
            else ("ACCESS_STATUS",)
            if checked
            else ("HOST_DMA_STATUS",)
        )
        (ended,) = [accesses.read(name) for name in names]
        await processor.run("ended", accesses)
        trace.span(message, transfer.stages[1], started)
        if self._queued and not ended["valid"]:
            raise RuntimeError(
                f"node {self.context.node}: the host DMA engine ended, and HOST_DMA_FINISHED is empty"
            )
        if not self._queued and not checked:
            return CompletionStatus.BUS_ERROR if ended["error"] else OK
        return CompletionStatus(ended["status"])

    async def send_packet(self, packet: PacketOut) -> None:
        """As `Engines.send_packet`."""
        trace, begin, key = self.context.trace, self.context.clock(), packet.key
        accesses = AccessList()
        accesses.store(packet.buffer, *packet.words)
        accesses.write("SEND_ADDRESS", address=packet.buffer)
        accesses.write("SEND_CONTROL", bytes=packet.payload_bytes, vl=0)
        await self.processor.run(packet.step, accesses)
        started, sent = self.context.clock(), False
        while not sent:
            seen = await self._wait("send", "receive", "doorbell", "timer")
            sent = "send" in seen
            if sent:
                message = trace.message(key.channel, key.index, receive=key.receive)
                trace.span(message, Stage.PROGRAM_SEND, begin, started)
                trace.span(message, Stage.SEND, started)
            if "doorbell" in seen:
                await self._take_doorbells()
            if "receive" in seen:
                await self._receive()
            if "timer" in seen:
                await self.connection.timer()

    async def post(self, post: Post, step: str, done: str, *, key: Key, live: Callable[[], bool]) -> None:
        """As `Engines.post`."""
        trace, begin = self.context.trace, self.context.clock()
        entry = post.status_address is None
        accesses = AccessList()
        unit = accesses.read("COMPLETION_POST")
        await self.processor.run(step, accesses)
        if unit["busy"]:
            await self.agent.until_free("COMPLETION_POST")
        if not live():
            return
        accesses = AccessList()
        write_post(accesses, post)
        async with self.processor.step(step, 0, accesses=accesses):
            pass
        message = trace.message(key.channel, key.index, receive=key.receive)
        posted = self.context.clock()
        trace.span(message, Stage.PROGRAM_COMPLETION if entry else Stage.PROGRAM_STATUS, begin, posted)
        async with self.processor.step(done):
            pass
        trace.span(message, Stage.COMPLETION if entry else Stage.STATUS, posted)

    async def send_buffer(self, *, key: Key, last: bool = False, stamp: int | None = None) -> int:
        """As `Engines.send_buffer`: there is one, and one message."""
        return self.layout.send_buffer()

    async def free_send_buffer(self, buffer: int) -> None:
        """Nothing: the next message begins when this one is over."""

    async def turn(self, buffer: int) -> None:
        """Nothing: there is one message."""

    async def rearm(self, buffer: int) -> None:
        """As `Engines.rearm`."""
        if not self._armed:
            self._armed = True
            accesses = AccessList()
            accesses.write("RECEIVE_ADDRESS", address=buffer)
            accesses.write("RECEIVE_CONTROL", bytes=self.context.nic.mtu_bytes)
            await self.processor.run("rearm", accesses)

    async def hear(self, vi: Vi) -> None:
        """As `Engines.hear`."""
        await self.doorbells.hear(vi)

    async def quiet(self, channel: int) -> None:
        """Nothing: the agent is heard between messages, while a packet goes, and while a completion queue stalls.

        All of these look again whether their message is still wanted before they touch anything of its VI.
        """
