"""A host that is worked cycle by cycle, as a reference for the one that computes when something ends.

A `SteppedProcessor` looks at every cycle: it takes one cycle off what is under way, and asks the scheduler at every
tick. It shares the scheduler, the queues and the kernel's work with `Processor`, and none of its arithmetic of time.
"""

from __future__ import annotations

from lanikai.sim.host.cpu.host import Host
from lanikai.sim.host.cpu.process import HostProcess
from lanikai.sim.host.cpu.processor import Processor, ProcessorHost
from lanikai.sim.host.cpu.requests import Spin, Work
from lanikai.sim.host.cpu.timekeeper import Rank

BEFORE = -1
"""The place in a cycle where the one before it is counted."""


class SteppedProcessor(Processor):
    """A processor that counts cycles one by one."""

    def __init__(self, host: ProcessorHost, number: int) -> None:
        super().__init__(host, number)
        self._works = False
        self._job_left = 0
        self._counted = False
        for rank, function in (
            (BEFORE, self._count_cycle),
            (Rank.TICK + self.place, self._look),
            (Rank.END + self.place, self._step),
        ):
            host.time.call_at(host.time.cycle + 1, rank, function, 0)

    def _count_cycle(self, _: int) -> None:
        """Count the cycle that has just been worked, before anything else happens in the next one."""
        time = self.host.time
        time.call_at(time.cycle + 1, BEFORE, self._count_cycle, 0)
        self._counted = True
        if self.busy:
            self._job_left -= 1
        elif self._works:
            process = self.process
            assert process is not None
            process.used += 1
            request = process.request
            if isinstance(request, Work):
                request.left -= 1
            elif isinstance(request, Spin):
                request.spent += 1

    def _look(self, _: int) -> None:
        """Ask the scheduler, if this cycle has a tick."""
        host = self.host
        host.time.call_at(host.time.cycle + 1, Rank.TICK + self.place, self._look, 0)
        if host.time.cycle == host.tick_cycle(host.tick_index()):
            self.decide()

    def _step(self, _: int) -> None:
        """End what is over in this cycle."""
        time = self.host.time
        time.call_at(time.cycle + 1, Rank.END + self.place, self._step, 0)
        if self.busy:
            if self._counted and not self._job_left:
                self._job_done()
        elif self._works and self._counted:
            process = self.process
            assert process is not None
            request = process.request
            if isinstance(request, Work) and not request.left:
                self._finish(process)
            elif isinstance(request, Spin) and self._is_over(request):
                self._answer(process, request)
                self._finish(process)

    @staticmethod
    def _is_over(spin: Spin) -> bool:
        """Whether a whole look has found something, or was the last one."""
        return spin.spent % spin.poll == 0 and (spin.signal.is_set or spin.spent == spin.limit)

    def _end(self, _: int) -> None:
        """End what was over when it was interrupted."""
        process = self.process
        assert process is not None
        if isinstance(process.request, Spin):
            self._answer(process, process.request)
        self._finish(process)

    @staticmethod
    def _answer(process: HostProcess, spin: Spin) -> None:
        spin.signal.waiting = None
        process.answer = spin.signal.is_set

    def _finish(self, process: HostProcess) -> None:
        self._works = False
        process.request = None
        self._run()

    def _next_job(self) -> None:
        self.busy = True
        self._works = self._counted = False
        self._job_left = self._jobs[0][0]
        self.kernel_cycles += self._job_left

    def _begin(self, cycles: int | None) -> None:
        self._works, self._counted = True, False
        if cycles == 0:
            # It was interrupted in the very cycle in which it was over.
            time = self.host.time
            time.call_at(time.cycle, Rank.END + self.place, self._end, 0)

    def _pause(self) -> None:
        self._works = False

    def _leave(self, state) -> None:
        self._works = False
        super()._leave(state)

    def signalled(self) -> None:
        """The next look finds it."""

    def plan_tick(self) -> None:
        """Every tick is looked at."""


class SteppedHost(Host):
    """A host of stepped processors."""

    processor_class = SteppedProcessor
