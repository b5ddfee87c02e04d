"""The doorbells of VIs and of the agent: from the card's queue, or words that are looked at in turn (5.2.1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from ..accesses import AccessList, Reading
from ..polling import PollPointer
from ..processor import Processor
from .layout import AGENT_CHANNEL, COUNT_BITS
from .state import COUNTS, Vi, ViaContext, WorkQueue
from .trace import Stage

__all__ = ["RECEIVE_FLAG", "Doorbells"]

RECEIVE_FLAG = 1 << 20
"""Flag in a doorbell's value in the queue: it is a receive doorbell (`receive_doorbells` = merged)."""
READS = 30
"""Words that are looked at in one list of accesses."""


class Doorbells:
    """The doorbells of a card with one processor.

    `request`: called when the agent has rung. `flush`: called for a VI that was rung though its connection has ended.
    """

    def __init__(
        self,
        context: ViaContext,
        processor: Processor,
        *,
        request: Callable[[], Awaitable[None]],
        flush: Callable[[Vi], Awaitable[None]],
    ) -> None:
        self.context, self.processor = context, processor
        self._request, self._flush = request, flush
        self.polled = context.nic.doorbell == "polled"
        self._at = 0
        self._since_cycle = 0
        self._listed: list[int] = []
        self._lists: dict[tuple[int, int], tuple[AccessList, list[tuple[int, bool, Reading]]]] = {}

    async def take(self) -> None:
        """Take all doorbells that have been rung, in their order: as many as the card's queue holds.

        It takes no more in one go, or a process that never stops ringing would have the firmware for itself. Where
        words are polled it looks at the agent's alone: no other holds up the bus.
        """
        processor = self.processor
        if self.polled:
            if await self._look(AGENT_CHANNEL, receive=False):
                await self._request()
            return
        async for channel, value in self._queue(processor, "DOORBELL_QUEUE", "doorbell"):
            if channel == AGENT_CHANNEL:
                await self._request()
            else:
                await self.rung(channel, value % COUNTS, receive=bool(value & RECEIVE_FLAG))

    async def take_receive(self, processor: Processor) -> None:
        """As `take`, by the second processor, of the queue of receive doorbells."""
        async for channel, value in self._queue(processor, "DOORBELL_RECEIVE_QUEUE", "receive_doorbell"):
            await self.rung(channel, value % COUNTS, receive=True)

    async def _queue(self, processor: Processor, queue: str, event: str) -> AsyncIterator[tuple[int, int]]:
        """Channel and value of the doorbells in a queue of the card, as many as it holds; `event` says it has some."""
        for _ in range(self.context.nic.doorbell_queue_entries):
            accesses = AccessList()
            entry = accesses.read(queue)
            # While the queue has an entry the event comes up again: none is lost by clearing it.
            accesses.skip_if(entry, mask=1 << 31, value=1 << 31, records=1)
            accesses.write("ISR", **{event: 1})
            async with processor.step("look", accesses=accesses):
                if not entry["valid"]:
                    return
                if entry["channel"] != AGENT_CHANNEL:
                    await processor.spend(doorbell=1)
            yield entry["channel"], entry["value"]

    async def poll(self, *, in_turn: bool = False) -> bool:
        """Look at the words of all declared channels, in turn from where the last look was, until one had been rung.

        Each has two words, and each look takes its time. Returns whether one was found. While the firmware had nothing
        to do the pointer went on; its place is computed.

        `in_turn`: the VI at which the pointer stops is the next to send. A VI that has messages left from an earlier
        look has its turn when the pointer comes to it, too.
        """
        waiting = {vi.channel for vi in self.context.ready} if in_turn else set()
        processor, declared = self.processor, self.context.declared
        words = 2 * len(declared)
        cost = processor.costs.cycles("poll")
        pointer = PollPointer(channels=words, period_cycles=cost + 3)
        since = pointer.moved(channel=self._at % words, cycle=self._since_cycle)
        _, at = since.next_look(max(processor.port.cycle, self._since_cycle))
        left = min(
            ((2 * declared.index(channel) - at) % words + 1 for channel in waiting if channel in declared),
            default=words,
        )
        while left:
            # Up to where a list of this turn of the pointer may be kept for the next one.
            count = min(left, words - at, READS - at % READS)
            accesses, looks = self._looks(at, count)
            at, left = (at + count) % words, left - count
            async with processor.step("poll", accesses=accesses):
                pass
            for channel, is_receive, word in looks:
                # Words behind the first that had been rung are those of another time.
                if word.word is not None and word["valid"]:
                    self._at = 2 * declared.index(channel) + is_receive + 1
                    await self._found(channel, word["value"], receive=is_receive)
                    if in_turn and not is_receive:
                        self._prefer(channel)
                    self._since_cycle = processor.port.cycle
                    return True
        self._at = at
        if waiting:
            self._prefer(declared[(at - 1) % words // 2])
        else:
            async with processor.step("look"):
                await processor.write("ISR", doorbell=1)
        self._since_cycle = processor.port.cycle
        return False

    def _prefer(self, channel: int) -> None:
        """Let a VI be the next to send, if it has something to."""
        ready = self.context.ready
        for vi in [vi for vi in ready if vi.channel == channel]:
            ready.remove(vi)
            ready.appendleft(vi)

    def _looks(self, at: int, count: int) -> tuple[AccessList, list[tuple[int, bool, Reading]]]:
        """Looks at `count` words from number `at` on, until one had been rung. Lists are kept for the same VIs."""
        declared = self.context.declared
        if self._listed is not declared:
            self._listed = declared
            self._lists.clear()
        if (at, count) not in self._lists:
            accesses = AccessList()
            looks: list[tuple[int, bool, Reading]] = []
            for place in range(at, at + count):
                if looks:
                    accesses.mark(self.processor.costs.cycles("poll"))
                channel, receive = declared[place // 2], place % 2 == 1
                accesses.write("DOORBELL_SELECT", channel=channel, receive=receive)
                word = accesses.read("DOORBELL_WORD")
                accesses.stop_if(word, mask=1 << 31, value=1 << 31)
                looks.append((channel, receive, word))
            self._lists[at, count] = accesses, looks
        return self._lists[at, count]

    async def hear(self, vi: Vi) -> None:
        """Look whether a VI's receive doorbell has been rung; where doorbells are queued, `take` has seen it."""
        if self.polled:
            await self._look(vi.channel, receive=True)

    async def _look(self, channel: int, *, receive: bool) -> bool:
        """Look at one word, and hear what it says; whether it had been rung."""
        accesses = AccessList()
        accesses.write("DOORBELL_SELECT", channel=channel, receive=receive)
        word = accesses.read("DOORBELL_WORD")
        async with self.processor.step("look", accesses=accesses):
            found = word["valid"]
        if found and channel != AGENT_CHANNEL:
            await self.rung(channel, word["value"] % COUNTS, receive=receive)
        return bool(found)

    async def _found(self, channel: int, value: int, *, receive: bool) -> None:
        async with self.processor.step("doorbell"):
            pass
        if channel == AGENT_CHANNEL:
            await self._request()
        else:
            await self.rung(channel, value % COUNTS, receive=receive)

    def may_be(self, queue: WorkQueue, posted: int) -> bool:
        """Whether a queue can hold so many descriptors, and its process has not said before that there are more."""
        known = (queue.posted - queue.completed) % COUNTS
        return known <= (posted - queue.completed) % COUNTS <= self.context.config.queue_entries

    async def rung(self, channel: int, posted: int, *, receive: bool) -> None:
        """A process says that it has posted so many descriptors.

        Refused if its queue cannot hold them, or if it has said before that there are more.
        """
        context = self.context
        vi = context.vi(channel)
        queue = vi.receive if receive else vi.send
        if not self.may_be(queue, posted):
            context.drops["overrun"] += 1
            return
        if not receive:
            trace = context.trace
            for index in range((posted - queue.posted) % COUNTS):
                message = trace.begin(channel, (queue.posted + index) % COUNTS, receive=False)
                trace.span(message, Stage.FOUND, context.clock())
        count = (posted - queue.posted) % COUNTS
        queue.posted = posted
        context.advance()
        if vi.broken:
            await self._flush(vi)
        elif not receive:
            context.arrived(vi, count)


assert 1 << COUNT_BITS == COUNTS
