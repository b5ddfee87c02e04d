"""Timers on the NIC's one TIMER register: flows that rest, and streams that get no answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .state import Flow, SendStream

if TYPE_CHECKING:
    from .program import GmProgram

__all__ = ["Timers"]

MARGIN_TICKS = 8
"""TIMER is armed at least this far ahead, so that RTC cannot pass the value before it is written."""


class Timers:
    """While any packet waits for its acknowledgement the timer looks at all streams every
    `GmConfig.resend_ticks`: one that made no progress since the last look goes back. So a lost packet is sent
    again after one to two periods, and no packet pays for a timer of its own."""

    def __init__(self, program: GmProgram) -> None:
        self._program = program
        self._processor = program.processor
        self._look_ticks: int | None = None
        self._modulus = 1 << program.nic.rtc_bits

    async def watch(self) -> None:
        """Inside a step: a packet is on its way out; look after it."""
        if self._look_ticks is None:
            now = await self._now()
            self._look_ticks = self.after(now, self._program.gm.resend_ticks)
            await self._arm(now)

    async def pause(self, flow: Flow) -> None:
        """Inside a step: let a flow rest for `GmConfig.pause_ticks`."""
        now = await self._now()
        flow.paused_until_ticks = self.after(now, self._program.gm.pause_ticks)
        await self._arm(now)

    async def run(self) -> None:
        """Serve the timer for ever."""
        rang = self._processor.events["timer"]
        while True:
            await rang.wait()
            rang.clear()
            async with self._processor.step("timer"):
                now = await self._now()
                for flow in self._program.flows.values():
                    if flow.paused_until_ticks is not None and self.left(flow.paused_until_ticks, now) <= 0:
                        flow.paused_until_ticks = None
                        self._program.sdma.look_at(flow)
                if self._look_ticks is not None and self.left(self._look_ticks, now) <= 0:
                    self._look(now)
                await self._arm(now)

    def _look(self, now: int) -> None:
        """Send again what nobody answers; look again later if anything waits."""
        waiting = False
        for stream in self._streams():
            if not stream.unacknowledged:
                continue
            waiting = True
            if not (stream.progress or stream.under_way or stream.resend):
                stream.go_back()
                self._program.sdma.look_at_stream(stream)
            stream.progress = False
        self._look_ticks = self.after(now, self._program.gm.resend_ticks) if waiting else None

    def _streams(self) -> Iterator[SendStream]:
        for connection in self._program.connections.values():
            yield from connection.send

    async def _now(self) -> int:
        return (await self._processor.read("RTC"))["ticks"]

    def after(self, now: int, ticks: int) -> int:
        """The clock's value `ticks` after `now`."""
        return (now + ticks) % self._modulus

    def left(self, deadline: int, now: int) -> int:
        """Ticks until a deadline, negative once it is past; right across the clock's wrap."""
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
