"""Connections of the reliable levels: answers, bounded waits for them, and the end of a connection by an error.

The network loses nothing by itself, but links fail and peers die. So nothing is sent again: a message without an answer
for `ViaConfig.patience_us` ends its connection (specification 2.5: errors of reliable levels break the connection).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..accesses import AccessList
from .agent import Agent
from .layout import Reliability
from .stages import Stages
from .state import Inbound, Outgoing, Vi
from .wire import NUMBERS

__all__ = ["Connection"]

OK = CompletionStatus.OK
MARGIN_TICKS = 8
"""Least lead with which TIMER is armed, so that RTC cannot pass the value before it is written."""


@dataclass
class _Wait:
    """A wait that ends in `due_cycle`: for the answer to `message`, or for the rest of `inbound`."""

    due_cycle: int
    vi: Vi
    message: Outgoing | None = None
    inbound: Inbound | None = None

    @property
    def over(self) -> bool:
        """Whether nobody waits any more."""
        if self.message is not None:
            return self.message.done or self.message.gone
        return self.vi.inbound is not self.inbound


class Connection:
    """The reliable levels' rules for all VIs of a card, by the engines of `stages`.

    All waits are equally long. So they end in the order in which they began, and one for the rest of a message ends
    `patience_us` after the last packet of it.
    """

    def __init__(self, stages: Stages, agent: Agent) -> None:
        self.stages, self.agent = stages, agent
        self.context, self.processor = stages.context, stages.processor
        nic = self.context.nic
        self._patience_cycles = -(-self.context.config.patience_us * nic.clock_hz // 1_000_000)
        self._waits: deque[_Wait] = deque()
        self._armed = False
        self._modulus = 1 << nic.rtc_bits

    @property
    def waiting(self) -> int:
        """Waits that have not ended."""
        return sum(not wait.over for wait in self._waits)

    async def watch(self, message: Outgoing) -> None:
        """A message is on its way: wait for its answer, for so long at most."""
        if not message.done and not message.gone:
            due = self.context.clock() + self._patience_cycles
            await self._wait(_Wait(due, message.vi, message=message))

    async def watch_inbound(self, vi: Vi, inbound: Inbound) -> None:
        """A message has come in part: wait for its rest, for so long at most from one packet to the next."""
        await self._wait(_Wait(self.context.clock() + self._patience_cycles, vi, inbound=inbound))

    async def _wait(self, wait: _Wait) -> None:
        self._waits.append(wait)
        if not self._armed:
            await self._arm()

    async def _arm(self) -> None:
        """Arm TIMER for the first wait that is not over; a clock of few bits in several goes."""
        while self._waits and self._waits[0].over:
            self._waits.popleft()
        self._armed = bool(self._waits)
        if not self._armed:
            return
        left = max(0, self._waits[0].due_cycle - self.context.clock())
        ticks = -(-left // self.context.nic.tick_cycles)
        ticks = max(MARGIN_TICKS, min(ticks, self._modulus // 4))
        accesses = AccessList()
        now = accesses.read("RTC")
        accesses.copy(now, "TIMER", add=ticks, keep=self._modulus - 1)
        await self.processor.run("timer", accesses)

    async def timer(self) -> None:
        """TIMER has come: end the connections that have waited too long."""
        now = self.context.clock()
        while self._waits and (self._waits[0].over or self._waits[0].due_cycle <= now):
            wait = self._waits.popleft()
            if wait.over:
                continue
            if wait.inbound is not None:
                due = wait.inbound.touched_cycle + self._patience_cycles
                if due > now:
                    # Waits that have begun since then may end after it.
                    wait.due_cycle = due
                    insort(self._waits, wait, key=lambda one: one.due_cycle)
                else:
                    await self.lost(wait.vi)
            else:
                await self.end(wait.vi, CompletionStatus.TRANSPORT, failed=wait.message)
        await self._arm()

    async def lost(self, vi: Vi) -> None:
        """The rest of the message that comes in is lost: it ends, and a reliable connection with it."""
        inbound, vi.inbound = vi.inbound, None
        if inbound is None:
            return
        self.context.drops["partial"] += 1
        await self.stages.end_receive(vi, inbound, CompletionStatus.PARTIAL)
        if vi.reliable:
            await self.refuse(vi, inbound.number, CompletionStatus.TRANSPORT)

    def acknowledge(self, vi: Vi, number: int, level: Reliability) -> None:
        """Message `number` has come as `level` asks: say so to the other end, if its level is that one."""
        if vi.record is not None and vi.record.reliability == level:
            vi.ack = number
            self.context.answer(vi)

    async def acknowledged(self, vi: Vi, number: int) -> None:
        """The other end has all messages up to `number`: their descriptors end; reads wait for their data.

        An answer to a message that has not been sent is dropped, and counted as `unknown`.
        """
        if (vi.number - 1 - number) % NUMBERS >= NUMBERS // 2:
            self.context.drops["unknown"] += 1
            return
        for message in list(vi.under_way):
            if message.number is None or (number - message.number) % NUMBERS >= NUMBERS // 2:
                break
            if not message.descriptor.is_read and not message.done:
                await self.stages.end_send(message, OK)

    async def refused(self, vi: Vi, number: int, status: CompletionStatus) -> None:
        """The other end has refused message `number`, after it has taken those before it: the connection ends."""
        await self.acknowledged(vi, (number - 1) % NUMBERS)
        failed = next((one for one in vi.under_way if one.number == number), None)
        await self.end(vi, status, failed=failed)

    async def refuse(self, vi: Vi, number: int, status: CompletionStatus) -> None:
        """Refuse message `number` of a reliable connection, which ends; tell the other end why."""
        if vi.broken:
            return
        vi.refusal = (number, status)
        self.context.answer(vi)
        await self.end(vi, status)

    async def end(self, vi: Vi, status: CompletionStatus, *, failed: Outgoing | None = None) -> None:
        """End a connection by an error. The descriptor that `failed` ends with `status`, all others FLUSHED.

        The agent is told the status. What the process posts from now on is flushed.
        """
        if vi.broken:
            return
        vi.broken = True
        generation, record = vi.generation, vi.record
        if failed is not None and not failed.gone:
            failed.status, failed.done = status, True
        await self.stages.flush(vi)
        if vi.generation == generation and record is not None:
            await self.agent.tell(vi.channel, record.connection, status)
