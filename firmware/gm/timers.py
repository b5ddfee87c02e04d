"""Timers on the NIC's one TIMER register: flows that rest, and streams that get no answer."""

from __future__ import annotations

from ..accesses import AccessList
from .context import GmContext
from .layout import Status
from .state import Flow, SendStream
from .wire import Code

__all__ = ["Timers"]

MARGIN_TICKS = 8
"""Least lead with which TIMER is armed, so that RTC cannot pass the value before it is written."""
PAUSE_DOUBLINGS = 4
"""Times that the rest after 'no receive token' is doubled."""
FIRST_LOOKS = (1, 2, 4, 8)
"""Looks of the timer without an answer at which a packet goes out again; later at each multiple of the last."""


class Timers:
    """The timers of flows that rest and of streams that wait.

    While any packet waits for its acknowledgement the timer looks at all streams every `GmConfig.resend_ticks`. The
    oldest packet of a stream that made no progress since the last look goes out again. So a lost packet is sent again
    after one to two periods, and no packet pays for a timer of its own.
    """

    def __init__(self, program: GmContext) -> None:
        self._program = program
        self._processor = program.processor
        self._look_ticks: int | None = None
        self._modulus = 1 << program.nic.rtc_bits

    async def watch(self, accesses: AccessList) -> None:
        """Inside a step: carry out `accesses`. Then look after a packet that is on its way out."""
        if self._look_ticks is not None:
            await self._processor.carry_out(accesses)
            return
        ticks = self._program.gm.resend_ticks
        now = accesses.read("RTC")
        rests = any(flow.paused_until_ticks is not None for flow in self._program.flows.values())
        if not rests:
            accesses.copy(now, "TIMER", add=max(MARGIN_TICKS, ticks), keep=self._modulus - 1)
        await self._processor.carry_out(accesses)
        self._look_ticks = self.after(now["ticks"], ticks)
        if rests:
            await self._arm(now["ticks"])

    def expired(self, stream: SendStream) -> bool:
        """Whether the oldest message of a stream has come to one of its bounds."""
        gm = self._program.gm
        return stream.tries >= gm.send_tries or stream.stuck_ticks >= gm.send_timeout_ticks

    async def pause(self, flow: Flow) -> None:
        """Inside a step: let a flow rest after 'no receive token'.

        It rests for `GmConfig.pause_ticks` at first, then for twice as long each time, up to 16 times.
        """
        now = await self.now()
        doublings = min(max(flow.stream.tries - 1, 0), PAUSE_DOUBLINGS)
        ticks = min(self._program.gm.pause_ticks << doublings, self._program.nic.max_idt_ticks)
        flow.paused_until_ticks = self.after(now, ticks)
        flow.stream.stuck_ticks += ticks
        await self._arm(now)

    async def resume(self, stream: SendStream) -> None:
        """Inside a step: a receive token has come for a flow that rests."""
        flow = stream.flow
        if flow is not None and flow.paused_until_ticks is not None:
            now = await self.now()
            stream.stuck_ticks -= max(0, self.left(flow.paused_until_ticks, now))
            flow.paused_until_ticks = None
            self._program.sdma.look_at(flow)

    async def run(self) -> None:
        """Serve the timer for ever."""
        rang = self._processor.events["timer"]
        while True:
            await rang.wait()
            rang.clear()
            async with self._processor.step("timer"):
                now = await self.now()
                for flow in self._program.flows.values():
                    if flow.paused_until_ticks is not None and self.left(flow.paused_until_ticks, now) <= 0:
                        flow.paused_until_ticks = None
                        self._program.sdma.look_at(flow)
                if self._look_ticks is not None and self.left(self._look_ticks, now) <= 0:
                    self._look(now)
                await self._arm(now)

    def _look(self, now: int) -> None:
        """Send packets again that nobody answers, or give them up; look again later if anything waits."""
        asked = self._look_at_assemblies()
        waiting = bool(asked)
        for connection in [*self._program.connections.values()]:
            streams = [stream for stream in connection.send.values() if stream.unacknowledged]
            if streams or connection.node in asked:
                waiting = True
                connection.silent_looks += 1
            for stream in streams:
                self._look_at(stream)
        for port in self._program.ports:
            for get in [*port.gets.values()]:
                waiting = True
                get.waited_ticks += self._program.gm.resend_ticks
                if get.waited_ticks >= self._program.gm.send_timeout_ticks:
                    self._program.end_get(port, get, Status.TIMED_OUT)
        self._look_ticks = self.after(now, self._program.gm.resend_ticks) if waiting else None

    def _look_at_assemblies(self) -> set[int]:
        """Nodes of half messages whose receive token others wait for.

        After half of `GmConfig.send_timeout_ticks` without a packet their nodes are asked. If one gives no answer in
        the other half, the message is forgotten.
        """
        program, nodes = self._program, set()
        bound, period = program.gm.send_timeout_ticks, program.gm.resend_ticks
        for port in program.ports:
            for (node, key), assembly in [*port.assemblies.items()] if port.refused else ():
                if assembly.token is None:
                    continue
                nodes.add(node)
                connection = program.connection(node)
                assembly.idle_ticks += period
                if assembly.idle_ticks >= bound and 2 * connection.silent_looks * period >= bound:
                    program.abandon(port, node, key)
                elif 2 * assembly.idle_ticks >= bound:
                    program.send.note(connection, key, Code.ASK)
        return nodes

    def _look_at(self, stream: SendStream) -> None:
        """Look at a stream that waits for an answer.

        Its oldest packet goes out again after 1, 2, 4, 8, 16, 24 ... looks in which no answer came and nothing went
        out.
        """
        if not stream.unacknowledged:
            return  # given up a moment ago
        if stream.waited:
            stream.stuck_ticks += self._program.gm.resend_ticks
        stream.waited = True
        if self.expired(stream):
            self._program.give_up(stream)
        elif not (stream.progress or stream.under_way or stream.resend):
            stream.silences += 1
            if stream.silences in FIRST_LOOKS or not stream.silences % FIRST_LOOKS[-1]:
                stream.tries += 1
                stream.probe()
                self._program.sdma.look_at_stream(stream)
        stream.progress = False

    async def now(self) -> int:
        """Inside a step: the clock, ticks."""
        return (await self._processor.read("RTC"))["ticks"]

    def after(self, now: int, ticks: int) -> int:
        """The clock's value `ticks` after `now`."""
        return (now + ticks) % self._modulus

    def left(self, deadline: int, now: int) -> int:
        """Ticks until a deadline, negative once it is past. They are right across the clock's wrap."""
        left = (deadline - now) % self._modulus
        return left if left < self._modulus // 2 else left - self._modulus

    async def _arm(self, now: int) -> None:
        """Set TIMER for the earliest deadline, if there is one."""
        flows = self._program.flows.values()
        deadlines = [flow.paused_until_ticks for flow in flows if flow.paused_until_ticks is not None]
        if self._look_ticks is not None:
            deadlines.append(self._look_ticks)
        if deadlines:
            left = max(MARGIN_TICKS, min(self.left(deadline, now) for deadline in deadlines))
            await self._processor.write("TIMER", ticks=self.after(now, left))
