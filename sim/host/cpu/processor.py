"""One processor of a host: it runs a process until it blocks, ends or has to go, and interrupts come between.

Nothing here happens every cycle. The end of what is under way is computed, and asked of time as one event. What is
under way can be cut short at any cycle: what it has used until then is counted first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from .process import HostProcess, State
from .requests import Block, Outside, Spin, Work, Yield
from .scheduler import HostScheduler, Why
from .timekeeper import Rank, Timekeeper

__all__ = ["MOST_PROCESSORS", "Processor", "ProcessorHost"]

MOST_PROCESSORS = 8
"""Processors of a host."""


class ProcessorHost(Protocol):
    """The host, as far as a processor stands on it (`lanikai.sim.host.cpu.host.Host`)."""

    time: Timekeeper
    node: int
    scheduler: HostScheduler
    switch_cycles: int

    def tick_index(self) -> int:
        """The number of ticks until now."""

    def tick_cycle(self, index: int) -> int:
        """The cycle of a tick."""

    def settle_ticks(self, process: HostProcess) -> None:
        """Take the ticks since the last time off a running process' slice."""

    def dispatched(self, process: HostProcess) -> None:
        """Note that a processor has a process."""

    def left(self, process: HostProcess) -> None:
        """Note that it has it no more."""

    def end(self, process: HostProcess) -> None:
        """Note that a process has ended."""


class Processor:
    """Processor `number` of `host`.

    - `place`: its place among those of all hosts, in the order of what happens in one cycle.
    - `process`: the one that it runs, or None.
    - `busy`: it works for the kernel: a switch or an interrupt. The process stands still.
    - `kernel_cycles`: cycles of switches and interrupts.
    """

    def __init__(self, host: ProcessorHost, number: int) -> None:
        self.host = host
        self.number = number
        self.place = host.node * MOST_PROCESSORS + number
        self.process: HostProcess | None = None
        self.busy = False
        self.kernel_cycles = 0
        self._jobs: deque[tuple[int, Callable[[], None] | None]] = deque()
        self._last: HostProcess | None = None
        self._goes: Why | None = None
        self._standing = False
        self._since = -1
        self._turn = 0
        self._tick_at = -1

    # -- the kernel's work -----------------------------------------------------------------------------------------

    def interrupt(self, cycles: int, handler: Callable[[], None]) -> None:
        """Take an interrupt of so many cycles; `handler` is called at their end. They come one after the other."""
        self._jobs.append((cycles, handler))
        if not self.busy and not self._standing:
            self._pause()
            self._next_job()

    def _next_job(self) -> None:
        self.busy = True
        cycles = self._jobs[0][0]
        self.kernel_cycles += cycles
        self._turn += 1
        self._after(cycles)

    def _job_done(self) -> None:
        _, handler = self._jobs.popleft()
        if handler is not None:
            handler()
        if self._jobs:
            self._next_job()
        else:
            self.busy = False
            self.go_on()

    # -- the process ------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Go on with the process, or with the next one. Nothing is under way."""
        if self.process is not None and self._goes is not None and not self._in_kernel():
            self._put_back()
        if self.process is None:
            process = self.host.scheduler.take()
            if process is None:
                return
            self._goes = None
            self.process = process
            process.processor = self
            process.state = State.RUNNING
            process.tick_base = self.host.tick_index()
            self.host.dispatched(process)
            self.plan_tick()
            if process is not self._last:
                self._last = process
                self._jobs.appendleft((self.host.switch_cycles, None))
                self._next_job()
                return
        self._run()

    def _run(self) -> None:
        """Carry out the process' requests until one takes time."""
        process = self.process
        assert process is not None
        while True:
            request = process.request
            if request is None:
                if self._goes is not None:
                    self.go_on()
                    return
                request = process.request = process.next_request()
                if request is None:
                    self._leave(State.ENDED)
                    self.host.end(process)
                    self.go_on()
                    return
            if isinstance(request, Work):
                if request.left:
                    self._begin(request.left)
                    return
                process.request = None
            elif isinstance(request, Spin):
                request.signal.waiting = process
                self._begin(request.left(begins=True))
                return
            elif isinstance(request, Block):
                process.request = None
                if not request.signal.is_set:
                    request.signal.waiting = process
                    self._leave(State.BLOCKED)
                    self.go_on()
                    return
            elif isinstance(request, Yield):
                process.request = None
                if self.host.scheduler.passes(process, equal=True):
                    self._goes = Why.YIELDED
            else:
                assert isinstance(request, Outside)
                self._stand(request)
                return

    def _begin(self, cycles: int | None) -> None:
        """Work for the process from now on; for so many cycles, or until something happens."""
        self._since = self.host.time.cycle
        self._turn += 1
        if cycles is not None:
            self._after(cycles)

    def _after(self, cycles: int) -> None:
        time = self.host.time
        time.call_at(time.cycle + cycles, Rank.END + self.place, self._ended, self._turn)

    def _ended(self, turn: int) -> None:
        """End what was under way, unless it was cut short."""
        if turn != self._turn:
            return
        if self.busy:
            self._job_done()
            return
        process = self.process
        assert process is not None
        self._count(process)
        request = process.request
        if isinstance(request, Spin):
            request.signal.waiting = None
            process.answer = request.signal.is_set
        process.request = None
        self._run()

    def _count(self, process: HostProcess) -> None:
        """Count what the process has used since it began."""
        spent = self.host.time.cycle - self._since
        self._since = -1
        process.used += spent
        request = process.request
        if isinstance(request, Work):
            request.left -= spent
        elif isinstance(request, Spin):
            request.spent += spent

    def _pause(self) -> None:
        """Cut short what is under way."""
        if self.process is not None and self._since >= 0:
            self._count(self.process)
            self._turn += 1

    def _leave(self, state: State) -> None:
        """Take the process off."""
        process = self.process
        assert process is not None
        self.host.settle_ticks(process)
        self.process = process.processor = None
        process.state = state
        self._goes = None
        self.host.left(process)

    def _put_back(self) -> None:
        process, why = self.process, self._goes
        assert process is not None and why is not None
        self._leave(State.READY)
        self.host.scheduler.ready(process, why)

    def _in_kernel(self) -> bool:
        request = self.process.request if self.process is not None else None
        return isinstance(request, Work) and request.kernel

    def signalled(self) -> None:
        """Note that the signal is set for which the process spins: its look ends soon."""
        process = self.process
        if self._since < 0 or process is None or not isinstance(process.request, Spin):
            return
        self._count(process)
        self._begin(process.request.left(begins=False))

    # -- the scheduler's ticks --------------------------------------------------------------------------------------

    def plan_tick(self) -> None:
        """Have the next tick happen at which there may be something to decide."""
        process, host = self.process, self.host
        if process is None:
            return
        host.settle_ticks(process)
        wait = 1 if host.scheduler.passes(process, equal=False) else max(1, process.ticks_left)
        at = host.tick_cycle(host.tick_index() + wait)
        if self._tick_at <= host.time.cycle or at < self._tick_at:
            self._tick_at = at
            host.time.call_at(at, Rank.TICK + self.place, self._tick, at)

    def _tick(self, at: int) -> None:
        if at != self._tick_at:
            return
        self.decide()
        self.plan_tick()

    def decide(self) -> None:
        """Ask the scheduler, at a tick, whether the process has to go."""
        process, host = self.process, self.host
        if process is None:
            return
        host.settle_ticks(process)
        why = Why.PREEMPTED
        if process.ticks_left <= 0:
            host.scheduler.expired(process)
            why = Why.EXPIRED
        if not host.scheduler.passes(process, equal=why is Why.EXPIRED):
            return
        self._goes = why
        if not self.busy and not self._standing and not self._in_kernel():
            self._pause()
            self.go_on()

    # -- the world outside ------------------------------------------------------------------------------------------

    def _stand(self, request: Outside) -> None:
        """Stand still until something outside has come."""
        self._standing = True
        self._begin(None)
        process = self.process
        assert process is not None

        async def wait() -> None:
            self._came(process, await request.awaitable)

        self.host.time.spawn(wait(), f"{process.name}: outside")

    def _came(self, process: HostProcess, value: Any) -> None:
        self._standing = False
        self._count(process)
        process.request, process.answer = None, value
        if self._jobs:
            self._next_job()
        else:
            self._run()
