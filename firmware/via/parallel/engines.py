"""The engines of the parallel design: tasks of many messages at once (nagar-thesis-2001 4.3.6, 5.3.2, 5.3.3).

A message is the same coroutine as in the sequential design. Here many of them are alive. Each sleeps while an engine
has its task, and takes the processor only for its steps.

- Host DMA engine and send engine: `tasks.py`.
- Completion unit: posts are tasks too, in their order. A message goes on when its post is queued.
- Packet buffers on their way out: a pool. A message that finds it empty waits, by its stamp; others go on. It holds no
  buffer meanwhile, and whoever holds one needs nothing else than the network to give it back.
- Packet buffers on their way in: a pool. While all are in use packets wait in the network. Nobody who takes a packet in
  waits for a packet to go out. So two cards that send to each other never wait for each other's buffers.

Messages of a VI keep their order. The next one begins when the one before has its last buffer (`released`). Packets of
a VI are queued in the order in which their buffers were granted (`turn`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ...accesses import AccessList
from ...ports import Flag
from ...processor import Processor
from ..engines import PacketOut, Post, Transfer, write_post
from ..state import Key, Vi, ViaContext
from ..trace import Stage
from .tasks import HostTasks, Ordered, Packet, SendTasks

__all__ = ["ParallelEngines"]

LOOKS = 64
"""Looks at the completion unit in a step, before others have their turn."""


@dataclass
class _Posting:
    """A post that waits for the completion unit. `then` is called when it has been told."""

    post: Post
    step: str
    done: str
    key: Key
    live: Callable[[], bool]
    then: list[Callable[[], None]] = field(default_factory=list)


@dataclass
class _Wanted:
    """A message that waits for a packet buffer."""

    stamp: int
    granted: Flag
    buffer: int = 0


class ParallelEngines:
    """The engines of one card, for the coroutines of one of its processors; `lanikai.firmware.via.engines.Engines`.

    - `context`: the program's.
    - `stamped`: tasks go by their stamps.
    - `hears`: takes the doorbells that there are; called for a VI where a message finds no descriptor.
    - `released`: called with a VI whose next message may begin, and when a message of it is over.
    """

    def __init__(
        self,
        context: ViaContext,
        processor: Processor,
        *,
        stamped: bool,
        hears: Callable[[Vi], Awaitable[None]],
        released: Callable[[int], None],
    ) -> None:
        self.context, self.processor = context, processor
        nic, layout = context.nic, context.layout
        self.host = HostTasks(processor, nic, stamped=stamped)
        self.sends = SendTasks(processor, nic, stamped=stamped)
        self._hears, self._released = hears, released
        self._free = deque(layout.send_buffer(i) for i in range(context.config.send_buffers))
        self._wanted: Ordered[_Wanted] = Ordered(stamped=stamped, bits=nic.rtc_bits)
        self._owner: dict[int, int] = {}
        self._granted: dict[int, deque[int]] = {}
        self._turns: dict[int, Flag] = {}
        self._posts: deque[_Posting] = deque()
        self._posting: _Posting | None = None
        self._posted = processor.port.flag()
        self.rested: dict[int, Flag] = {}
        self._spare: deque[int] = deque()
        self._armed: deque[int] = deque()

    async def move(self, transfer: Transfer) -> CompletionStatus:
        """Have the host DMA engine make moves; return when the last has ended.

        `extra` steps are spent behind the start, while the first bytes move. Moves that the card's queue cannot hold at
        once are made list by list.
        """
        status = CompletionStatus.OK
        for part in transfer.lists(self.context.nic.host_dma_queue_entries or len(transfer.moves) or 1):
            found = await self._move(part)
            status = found if status == CompletionStatus.OK else status
        return status

    async def _move(self, transfer: Transfer) -> CompletionStatus:
        begin = self._now()
        programmed: list[int] = []
        async with self.processor.step(transfer.step):
            task = await self.host.submit(
                transfer.moves,
                stamp=self._order(transfer.stamp),
                started=lambda: programmed.append(self._now()),
            )
            more = {name: times for name, times in transfer.extra.items() if times}
            if more:
                await self.processor.spend(**more)
            self._span(transfer.key, transfer.stages[0], begin)
        await task.ended.wait()
        self._span(transfer.key, transfer.stages[1], programmed[0])
        return task.status

    async def send_packet(self, packet: PacketOut) -> None:
        """Send a packet, whose first words are written here; return when it is gone, and its buffer free."""
        begin = self._now()
        programmed: list[int] = []
        accesses = AccessList()
        accesses.store(packet.buffer, *packet.words)
        async with self.processor.step(packet.step, accesses=accesses):
            task = await self.sends.submit(
                Packet(packet.buffer, packet.payload_bytes),
                stamp=self._order(packet.stamp),
                started=lambda: programmed.append(self._now()),
            )
        self._queued(packet.buffer)
        await task.sent.wait()
        self._span(packet.key, Stage.PROGRAM_SEND, begin, programmed[0])
        self._span(packet.key, Stage.SEND, programmed[0])
        self._give(packet.buffer)

    async def send_buffer(self, *, key: Key, last: bool = False, stamp: int | None = None) -> int:
        """A buffer for a packet on its way out, when there is one."""
        if self._free and not self._wanted:
            buffer = self._free.popleft()
        else:
            wanted = _Wanted(self._order(stamp), self.processor.port.flag())
            self._wanted.add(wanted)
            await wanted.granted.wait()
            buffer = wanted.buffer
        self._owner[buffer] = key.channel
        self._granted.setdefault(key.channel, deque()).append(buffer)
        if last and not key.receive:
            self._released(key.channel)
        return buffer

    async def turn(self, buffer: int) -> None:
        """Return when the packets of the same VI whose buffers were granted before have been queued."""
        granted = self._granted[self._owner[buffer]]
        while granted[0] != buffer:
            flag = self._turns[buffer] = self.processor.port.flag()
            await flag.wait()
        self._turns.pop(buffer, None)

    async def free_send_buffer(self, buffer: int) -> None:
        """Give back a buffer from which nothing is sent."""
        self._queued(buffer)
        self._give(buffer)

    async def post(self, post: Post, step: str, done: str, *, key: Key, live: Callable[[], bool]) -> None:
        """Queue a completion."""
        self.context.vi(post.channel).users += 1
        self._posts.append(_Posting(post, step, done, key, live))
        self._posted.set()

    def when_told(self, function: Callable[[], None]) -> None:
        """Call `function` when all that has been posted until now has been told."""
        last = self._posts[-1] if self._posts else self._posting
        if last is None:
            function()
        else:
            last.then.append(function)

    async def rearm(self, buffer: int) -> None:
        """As `Engines.rearm`."""
        self._spare.append(buffer)
        if self._may_arm:
            async with self.processor.step("rearm"):
                await self.arm()

    async def hear(self, vi: Vi) -> None:
        """Look whether a descriptor has been posted meanwhile."""
        await self._hears(vi)

    async def quiet(self, channel: int) -> None:
        """Return when no coroutine is at work for a VI, and no post of it waits."""
        vi = self.context.vi(channel)
        while vi.users:
            flag = self.rested[channel] = self.processor.port.flag()
            await flag.wait()

    def left(self, vi: Vi) -> None:
        """A coroutine that was counted in `Vi.users` is not at work any more."""
        vi.users -= 1
        flag = self.rested.pop(vi.channel, None)
        if flag is not None:
            flag.set()

    async def run_posts(self) -> None:
        """Give the completion unit what is posted, in order, for ever."""
        busy = 1 << 31
        while True:
            await self._posted.wait()
            if not self._posts:
                self._posted.clear()
                continue
            one = self._posting = self._posts.popleft()
            begin, step = self._now(), one.step
            while True:
                accesses = AccessList()
                free = accesses.wait("COMPLETION_POST", mask=busy, value=0, every_cycles=8, most_reads=LOOKS)
                async with self.processor.step(step, accesses=accesses):
                    if free["busy"]:
                        step = "wait"
                        continue
                    live = one.live()
                    if live:
                        posting = AccessList()
                        write_post(posting, one.post)
                        await self.processor.carry_out(posting)
                break
            stages = (Stage.PROGRAM_STATUS, Stage.STATUS)
            if one.post.queue is not None:
                stages = (Stage.PROGRAM_COMPLETION, Stage.COMPLETION)
            if live:
                self._span(one.key, stages[0], begin)
                begin = self._now()
                await self._until_taken(one.done)
                self._span(one.key, stages[1], begin)
            self._posting = None
            for function in one.then:
                function()
            self.left(self.context.vi(one.post.channel))

    async def _until_taken(self, done: str) -> None:
        """Wait until the completion unit has what was posted; then spend `done`."""
        step = done
        while True:
            accesses = AccessList()
            free = accesses.wait("COMPLETION_POST", mask=1 << 31, value=0, every_cycles=8, most_reads=LOOKS)
            async with self.processor.step(step, accesses=accesses):
                if not free["busy"]:
                    return
            step = "wait"

    def state(self) -> str:
        """The contents of its queues, in a line."""
        return (
            f"host DMA {self.host.state()}; send {self.sends.state()}; {len(self._posts)} posts, "
            f"{len(self._wanted)} messages wait for a buffer; {len(self._armed)} buffers armed, "
            f"{len(self._spare)} spare; step {self.processor.current}, {self.processor.waiting} wait for it"
        )

    def spare(self, buffers: Sequence[int]) -> None:
        """Begin with these buffers for packets on their way in."""
        self._spare.extend(buffers)

    @property
    def _may_arm(self) -> bool:
        most = 1 + self.context.nic.receive_queue_entries
        return bool(self._spare) and len(self._armed) < most

    async def arm(self) -> None:
        """Inside a step: arm spare buffers, as many as the receive engine takes."""
        while self._may_arm:
            buffer = self._spare.popleft()
            self._armed.append(buffer)
            accesses = AccessList()
            accesses.write("RECEIVE_ADDRESS", address=buffer)
            if self.context.nic.receive_queue_entries:
                accesses.write("RECEIVE_TAG", tag=0, notify=1)
            accesses.write("RECEIVE_CONTROL", bytes=self.context.nic.mtu_bytes)
            await self.processor.carry_out(accesses)

    async def received(self) -> list[int]:
        """Inside a step, when the receive event has come: buffers with packets, oldest first; spare ones are armed."""
        found = []
        if self.context.nic.receive_queue_entries:
            while True:
                accesses = AccessList()
                finished = accesses.read("RECEIVE_FINISHED")
                await self.processor.carry_out(accesses)
                if not finished["valid"]:
                    break
                found.append(self._armed.popleft())
        elif self._armed:
            found.append(self._armed.popleft())
        await self.arm()
        return found

    def _queued(self, buffer: int) -> None:
        """A packet is queued, or will not go: the one behind it of the same VI has its turn."""
        channel = self._owner.pop(buffer)
        granted = self._granted[channel]
        granted.remove(buffer)
        if not granted:
            del self._granted[channel]
        elif (flag := self._turns.pop(granted[0], None)) is not None:
            flag.set()

    def _give(self, buffer: int) -> None:
        """A buffer is free: the first that waits for one has it."""
        if self._wanted:
            wanted = self._wanted.take()
            wanted.buffer = buffer
            wanted.granted.set()
        else:
            self._free.append(buffer)

    def _order(self, stamp: int | None) -> int:
        """A task's stamp; of what has none RTC's present value."""
        return self.ticks() if stamp is None else stamp

    def ticks(self) -> int:
        """RTC's present value."""
        nic = self.context.nic
        return self._now() * nic.rtc_cycles_den // nic.rtc_cycles_num % (1 << nic.rtc_bits)

    def _now(self) -> int:
        return self.processor.port.cycle

    def _span(self, key: Key, stage: Stage, begin: int, end: int | None = None) -> None:
        trace = self.context.trace
        trace.span(trace.message(key.channel, key.index, receive=key.receive), stage, begin, end)
