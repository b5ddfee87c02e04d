"""A host: processors, the processes on them, a scheduler, interrupts and periodic functions of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from .machine import Machine
from .process import HostProcess, State
from .processor import MOST_PROCESSORS, Processor
from .scheduler import HostScheduler, Why
from .timekeeper import Rank, Timekeeper

__all__ = ["Host", "Turn"]

Turn = tuple[int, int, HostProcess]
"""The cycles from which and until which a processor had a process."""


class Host:
    """Host `node`, a `machine` with so many `processors`, under `scheduler`.

    - `tick_phase`: the cycle of its first tick, less than a tick: hosts' clocks do not agree.
    - `record`: keep `turns`, every stretch in which a processor had a process.

    Prices are cycles of the machine. In a time of other cycles they are converted and rounded up.
    """

    processor_class = Processor

    def __init__(
        self,
        time: Timekeeper,
        machine: Machine,
        scheduler: HostScheduler,
        *,
        node: int = 0,
        processors: int = 1,
        tick_phase: int = 0,
        record: bool = False,
    ) -> None:
        self.time = time
        self.machine = machine
        self.scheduler = scheduler
        self.node = node
        self.processes: list[HostProcess] = []
        self.turns: list[Turn] | None = [] if record else None
        self.tick = self.microseconds(scheduler.tick_us)
        if not 0 <= tick_phase < self.tick:
            raise ValueError(f"tick_phase = {tick_phase}: 0 to {self.tick - 1}")
        if not 1 <= processors <= MOST_PROCESSORS:
            raise ValueError(f"processors = {processors}: 1 to {MOST_PROCESSORS}")
        self._phase = tick_phase
        self._same = time.hz == machine.hz
        self.switch_cycles = self.cycles(machine.context_switch.cycles)
        self.on_dispatch: Callable[[HostProcess], None] | None = None
        self._since: dict[HostProcess, int] = {}
        self.processors = [self.processor_class(self, number) for number in range(processors)]
        scheduler.start(self)

    # -- units ------------------------------------------------------------------------------------------------------

    def cycles(self, of_machine: int) -> int:
        """Cycles of time for so many of the machine, rounded up."""
        return of_machine if self._same else -(-of_machine * self.time.hz // self.machine.hz)

    def microseconds(self, number: int) -> int:
        """Cycles of time in so many microseconds, rounded up."""
        return -(-number * self.time.hz // 1_000_000)

    def tick_index(self) -> int:
        """The number of ticks until now, one in this cycle included."""
        return (self.time.cycle - self._phase) // self.tick + 1

    def tick_cycle(self, index: int) -> int:
        """The cycle of the tick with which `tick_index` becomes `index`."""
        return self._phase + (index - 1) * self.tick

    # -- processes --------------------------------------------------------------------------------------------------

    def start(
        self, program: Callable[[HostProcess], Coroutine[Any, Any, Any]], *, name: str, job: int = 0
    ) -> HostProcess:
        """Start a process that runs `program(process)`. It is ready now."""
        process = HostProcess(self, name, job)
        process.begin(program(process))
        self.processes.append(process)
        self.scheduler.ready(process, Why.NEW)
        self.look()
        return process

    def wake(self, process: HostProcess) -> None:
        """Let a process that is blocked go on; nothing for one that is not."""
        if process.state is State.BLOCKED:
            process.state = State.READY
            self.scheduler.ready(process, Why.WOKEN)
            self.look()

    def look(self) -> None:
        """Note that the queues have changed: processors without work take some, the others look at their next tick."""
        for processor in self.processors:
            if processor.process is None:
                if not processor.busy:
                    processor.go_on()
            else:
                processor.plan_tick()

    def look_now(self) -> None:
        """Ask the scheduler at once, not at a tick, whether the running processes have to go."""
        for processor in self.processors:
            processor.decide()
            if processor.process is None and not processor.busy:
                processor.go_on()

    def running(self) -> list[HostProcess]:
        """The processes that processors have."""
        return [one.process for one in self.processors if one.process is not None]

    # -- the kernel -------------------------------------------------------------------------------------------------

    def interrupt(self, handler: Callable[[], None], cycles: int = 0) -> None:
        """Raise an interrupt at the first processor: `handler` is called when it and `cycles` of work are over."""
        self.processors[0].interrupt(self.cycles(self.machine.interrupt.cycles + cycles), handler)

    def every(self, microseconds: int, function: Callable[[], None], *, cycles: int, first: int) -> None:
        """Call a function of the kernel periodically, at the end of its `cycles` and those of a timer. `first`: the
        cycle of the first time."""
        period = self.microseconds(microseconds)
        price = self.cycles(self.machine.timer.cycles + cycles)

        def due(cycle: int) -> None:
            self.time.call_at(cycle + period, Rank.TIMER + self.node, due, cycle + period)
            self.processors[0].interrupt(price, function)

        self.time.call_at(first, Rank.TIMER + self.node, due, first)

    def clockwork(self, microseconds: int, function: Callable[[], None], *, first: int) -> None:
        """Call a function periodically that takes no time of a processor."""
        period = self.microseconds(microseconds)

        def due(cycle: int) -> None:
            self.time.call_at(cycle + period, Rank.TIMER + self.node, due, cycle + period)
            function()

        self.time.call_at(first, Rank.TIMER + self.node, due, first)

    # -- for processors ---------------------------------------------------------------------------------------------

    def settle_ticks(self, process: HostProcess) -> None:
        """Take the ticks since the last time off a running process' slice."""
        index = self.tick_index()
        process.ticks_left -= index - process.tick_base
        process.tick_base = index

    def dispatched(self, process: HostProcess) -> None:
        """Note that a processor has a process."""
        if self.on_dispatch is not None:
            self.on_dispatch(process)
        if self.turns is not None:
            self._since[process] = self.time.cycle

    def left(self, process: HostProcess) -> None:
        """Note that it has it no more."""
        if self.turns is not None:
            self.turns.append((self._since.pop(process), self.time.cycle, process))

    def end(self, process: HostProcess) -> None:
        """Note that a process has ended."""
        process.ended_at = self.time.cycle
        self.processes.remove(process)
        if process.on_end is not None:
            process.on_end()
