"""PVIA and QoSVIA: an event loop over tasks of many messages (nagar-thesis-2001 4.3.6, 5.3.2, 5.3.3).

A doorbell, the end of a host DMA, the end of a send, and a packet that has come are its events. Each is served by a
coroutine. Messages are coroutines too: as many at a time as there are workers. All share a processor, or two: then one
sends and one receives (4.3.10).

QoSVIA stamps a message at its doorbell, by the scheduler that `ViaConfig.order` names. The stamp orders its tasks at
the host DMA queue and at the net send queue, and the messages that wait for a worker or a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...accesses import AccessList
from ...lock import Lock
from ...processor import Processor
from ..agent import Agent
from ..config import ARRIVAL, ViaConfig
from ..connection import Connection
from ..doorbells import Doorbells
from ..layout import AGENT_CHANNEL
from ..schedulers.registry import find_scheduler
from ..sending import Sending
from ..state import COUNTS, Vi, ViaContext
from .engines import ParallelEngines
from .events import RECEIVES
from .messages import InTurn, ParallelStages
from .stamps import Stamps

__all__ = ["ParallelVia", "messages_begun"]

PROTECTED = 1
"""Entries of the host DMA queue behind what is served that no stamp goes before: "a few that immediately follow it"
(nagar-thesis-2001 5.3.3)."""
WORKERS_BESIDE_BUFFERS = 4
"""Messages to send that may be under way without a packet buffer: in their descriptor's stages, or being told."""


def messages_begun(config: ViaConfig) -> int:
    """The most messages to send that are under way at once: the scheduler has chosen them, and chooses no more.

    Each packet buffer may have one. `WORKERS_BESIDE_BUFFERS` more have none yet, or none any more.
    """
    return config.send_buffers + WORKERS_BESIDE_BUFFERS


class ParallelVia:
    """The parallel design on one processor, or on two.

    `processor` is the one that sends.
    """

    def __init__(self, context: ViaContext, processors: Sequence[Processor]) -> None:
        self.context, self.processors = context, tuple(processors)
        self.processor = sends = processors[0]
        receives = processors[-1]
        config, nic = context.config, context.nic
        self._stamps = None if config.order == ARRIVAL else Stamps(config.order, nic)
        stamped = self._stamps is not None
        self.engines = ParallelEngines(
            context, sends, stamped=stamped, hears=self._hear, released=self._release
        )
        self.receive_engines = self.engines
        if receives is not sends:
            self.receive_engines = ParallelEngines(
                context, receives, stamped=stamped, hears=self._hear, released=self._release
            )
            self.receive_engines.rested = self.engines.rested
        self.stages = ParallelStages(context, self.engines)
        self.receive_stages = (
            self.stages if receives is sends else ParallelStages(context, self.receive_engines)
        )
        self.agent = Agent(
            context,
            self.engines,
            meanwhile=self._nothing,
            flush=self.stages.flush,
            drain=self._take_receive_doorbells,
        )
        self.connection = Connection(self.stages, self.agent)
        self.sending = Sending(self.stages, self.connection)
        self.receiving = InTurn(
            self.receive_stages,
            self.connection,
            self.agent,
            engines=self.receive_engines,
            stamps=self._receive_stamps(),
        )
        self.doorbells = _Doorbells(self)
        context.turned = self._turned
        self._front: dict[int, object] = {}
        context.begun = self._front
        self._active = self._packets = 0
        self._wanted = sends.port.flag()
        self._asked = sends.port.flag()
        self._answering = sends.port.flag()
        self._hearing = Lock(sends.port.flag)
        self._hearing_receive = Lock(sends.port.flag)

    def start(self, name: str) -> None:
        """Spawn its coroutines."""
        port = self.processor.port
        loops = {
            "host": self.engines.host.run(),
            "sends": self.engines.sends.run(),
            "posts": self.engines.run_posts(),
            "doorbells": self._run_doorbells(),
            "packets": self._run_packets(),
            "timer": self._run_timer(),
            "completion": self._run_completion(),
            "agent": self._run_agent(),
            "answers": self._run_answers(),
            **{f"worker{i}": self._run_worker() for i in range(messages_begun(self.context.config))},
        }
        if len(self.processors) == 2:
            loops["receive_host"] = self.receive_engines.host.run()
            loops["receive_posts"] = self.receive_engines.run_posts()
            loops["receive_doorbells"] = self._run_receive_doorbells()
        if not self.context.nic.host_dma_queue_entries:
            loops["accesses"] = self.engines.host.run_accesses()
        loops["idle"] = self._boot()
        for what, loop in loops.items():
            port.spawn(loop, f"{name}.{what}")

    def state(self) -> list[str]:
        """The contents of its engines, a line a processor."""
        engines = dict.fromkeys((self.engines, self.receive_engines))
        return [f"  processor {place}: {one.state()}" for place, one in enumerate(engines)]

    def _receive_stamps(self) -> Stamps | None:
        """Stamps of messages in, for a scheduler whose stamps compare with those of messages out; else None."""
        context, order = self.context, self.context.config.order
        if order == ARRIVAL or not find_scheduler(order).timed:
            return None
        return Stamps(order, context.nic, received=True)

    async def _boot(self) -> None:
        context = self.context
        await self.agent.boot()
        buffers = [context.layout.receive_buffer(i) for i in range(context.config.receive_buffers)]
        self.receive_engines.spare(buffers)
        receives = self.processors[-1]
        async with receives.step("rearm"):
            await self.receive_engines.arm()
        context.doing = ""
        if self._stamps is not None and context.nic.host_dma_queue_order == "timestamp":
            for processor in self.processors:
                async with processor.step("set_up"):
                    await processor.write("HOST_DMA_PROTECT", entries=PROTECTED)
        for processor in self.processors[1:]:
            async with processor.step("dispatch"):
                await processor.enable(*RECEIVES)
            processor.port.spawn(processor.idle_loop(urgent=self._receives), f"via[{context.node}].idle1")
        async with self.processor.step("dispatch"):
            await self.processor.enable(*self.processor.sources)
        await self.processor.idle_loop(urgent=self._receives)

    async def _run_doorbells(self) -> None:
        """Take doorbells for ever."""
        rung = self.processor.events["doorbell"]
        while True:
            await rung.wait()
            rung.clear()
            async with self._hearing:
                await self.doorbells.take()
            while self.doorbells.polled and await self._poll():
                pass
            async with self.processor.step("look", 0):
                await self.processor.enable("doorbell")

    async def _run_receive_doorbells(self) -> None:
        """Take receive doorbells for ever, on the second processor."""
        processor = self.receive_engines.processor
        rung = processor.events["receive_doorbell"]
        while True:
            await rung.wait()
            rung.clear()
            await self._take_receive_doorbells()
            async with processor.step("look", 0):
                await processor.enable("receive_doorbell")

    async def _take_receive_doorbells(self) -> None:
        """Take the receive doorbells that a queue of their own holds, if there is one."""
        if len(self.processors) == 2:
            async with self._hearing_receive:
                await self.doorbells.take_receive(self.receive_engines.processor)

    async def _run_packets(self) -> None:
        """Take packets in for ever: each in a coroutine of its own, as many as there are buffers.

        That comes before all else. The receive engine has no queue (5.2.3), so until it has a buffer the network
        waits, and what the network holds is in no order of the card's.
        """
        engines = self.receive_engines
        came = engines.processor.events["receive"]
        while True:
            await came.wait()
            came.clear()
            cycle = engines.processor.woken_cycle
            async with engines.processor.step("look", urgent=lambda: True):
                buffers = await engines.received()
            for buffer in buffers:
                engines.processor.port.spawn(self._take(buffer, cycle), f"via[{self.context.node}].packet")

    async def _take(self, buffer: int, came_cycle: int) -> None:
        self._begins()
        self._packets += 1
        await self.receiving.take(buffer, came_cycle)
        self._packets -= 1
        self._ends()

    def _receives(self) -> bool:
        """Whether packets are being taken in: then events are looked at between any two steps.

        Else that would take time for nothing: an event that waits for a step often comes with others.
        """
        return self._packets > 0

    async def _run_timer(self) -> None:
        """End waits that are over, for ever."""
        event = self.processor.events["timer"]
        while True:
            await event.wait()
            event.clear()
            await self.connection.timer()

    async def _run_completion(self) -> None:
        """Tell of completion queues that have failed, for ever."""
        event = self.processor.events["completion"]
        while True:
            await event.wait()
            event.clear()
            await self.agent.tell_broken()

    async def _run_agent(self) -> None:
        """Do what the agent asks, for ever."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            self._begins()
            await self.agent.request()
            self._ends()
            self._answering.set()

    async def _run_answers(self) -> None:
        """Send what VIs and the agent have to answer, for ever."""
        context = self.context
        while True:
            await self._answering.wait()
            self._answering.clear()
            self._begins()
            while context.control or context.answers:
                if context.control:
                    await self.agent.send_control(*context.control.popleft())
                if context.answers:
                    vi = context.answers.popleft()
                    vi.users += 1
                    await self.sending.answer(vi)
                    self.engines.left(vi)
            await self.agent.retry()
            self._ends()

    async def _run_worker(self) -> None:
        """Send messages, one after the other, for ever."""
        while True:
            vi = self._pick()
            if vi is None:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            mine = self._front[vi.channel] = object()
            vi.users += 1
            self._begins()
            await self.sending.send(vi, take_stamp=partial(self._stamp, vi))
            if self._front.get(vi.channel) is mine:
                self._release(vi.channel)
            self.engines.left(vi)
            self._ends()

    def _pick(self) -> Vi | None:
        """The VI whose message is to begin next; none of its messages is at the front.

        In the order of doorbells nobody passes a message that has to wait for the one before it.
        """
        context = self.context
        if context.first_come:
            while context.ready and not context.may_send(context.ready[0]):  # its messages were flushed
                context.ready.popleft()
            waits = context.ready and context.ready[0].channel in self._front
            return None if waits or not context.ready else context.ready.popleft()
        ready = [vi for vi in context.ready if vi.channel not in self._front]
        if not ready:
            return None
        found = ready[0] if self._stamps is None else self._stamps.choose(ready)
        context.ready.remove(found)
        return found

    def _stamp(self, vi: Vi) -> int | None:
        """Take the stamp of a VI's next message, which begins."""
        if self._stamps is None or vi.held is not None:
            return None
        return self._stamps.take(vi, vi.send.waiting)

    def _release(self, channel: int) -> None:
        """The next message of a VI may begin."""
        self._front.pop(channel, None)
        if channel != AGENT_CHANNEL:
            self.context.give_turn(self.context.vi(channel))
        self._wanted.set()

    def _turned(self) -> None:
        """A VI has a message to send, or something to answer."""
        self._wanted.set()
        if self.context.answers or self.context.control:
            self._answering.set()

    def _begins(self) -> None:
        self._active += 1

    def _ends(self) -> None:
        self._active -= 1
        if not self._active:
            self.context.doing = ""

    async def _poll(self) -> bool:
        """Look at the doorbell words, as `Doorbells.poll`."""
        async with self._hearing:
            return await self.doorbells.poll()

    async def _hear(self, vi: Vi) -> None:
        """Take the doorbells that there are; where words are polled that of a VI's receive queue."""
        async with self._hearing:
            await self.doorbells.take()
            await self.doorbells.hear(vi)

    async def _nothing(self) -> None:
        """Doorbells are taken by a coroutine of their own."""

    async def ask(self) -> None:
        """The agent has rung."""
        self._asked.set()

    async def rung(self, vi: Vi, new: int) -> None:
        """Before `new` messages of a VI are known: stamp them, each a step."""
        stamps = self._stamps
        if stamps is None:
            return
        accesses = AccessList()
        clock = accesses.read("RTC")
        async with self.processor.step("stamp", accesses=accesses):
            record = await self.stages.look_up(vi)
            if record is None:
                return
            stamps.open(vi, record, clock["ticks"])
            if new > 1:
                await self.processor.spend(stamp=new - 1)
        # Behind the step, and nothing is awaited before the caller counts the messages: a worker that came in between
        # would see more stamps than messages, and take the first ones for those of messages that were flushed.
        stamps.add(vi, new, clock["ticks"])

    def prefetch(self, vi: Vi) -> None:
        """A receive doorbell: bring the descriptor down before a message wants it."""
        if vi.record is not None and not vi.broken and vi.receive.staged != vi.receive.taken:
            self.receive_engines.processor.port.spawn(
                self._prefetch(vi), f"via[{self.context.node}].prefetch"
            )

    async def _prefetch(self, vi: Vi) -> None:
        vi.users += 1
        await self.receive_stages.prefetch(vi)
        self.receive_engines.left(vi)


class _Doorbells(Doorbells):
    """Doorbells of the parallel design: messages to send are stamped, descriptors to receive fetched at once."""

    def __init__(self, loop: ParallelVia) -> None:
        super().__init__(loop.context, loop.processor, request=loop.ask, flush=loop.stages.flush)
        self._loop = loop

    async def rung(self, channel: int, posted: int, *, receive: bool) -> None:
        """As `Doorbells.rung`."""
        vi = self.context.vi(channel)
        new = (posted - vi.send.posted) % COUNTS
        if not receive and not vi.broken and new and self.may_be(vi.send, posted):
            await self._loop.rung(vi, new)
        await super().rung(channel, posted, receive=receive)
        if receive and vi.receive.waiting:
            self._loop.prefetch(vi)
