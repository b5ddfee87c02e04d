"""Gang scheduling as the ideal: all nodes change from job to job in the same cycle, by a clock that they share."""

from __future__ import annotations

from ...cpu.process import HostProcess
from ...cpu.scheduler import HostScheduler, Why
from ..arrival import NoReschedule
from ..endpoint import NodeGround
from ..strategy import Strategy
from ..waiting import BusyWait

__all__ = ["Gang"]


class _OneJob(HostScheduler):
    """A scheduler that runs the processes of the job whose turn it is, and no other."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self._waiting: list[HostProcess] = []

    def ready(self, process: HostProcess, why: Why) -> None:
        """Take a process in. The first one of a job tells of the job."""
        process.ticks_left = 1 << 40
        self._waiting.append(process)
        if process.job not in self.gang.jobs:
            self.gang.jobs.append(process.job)

    def take(self) -> HostProcess | None:
        """Take a process of the job."""
        for process in self._waiting:
            if process.job == self.gang.current:
                self._waiting.remove(process)
                return process
        return None

    def passes(self, process: HostProcess, *, equal: bool) -> bool:
        """Whether it is the turn of another job, which has a process here."""
        return process.job != self.gang.current and any(one.job == self.gang.current for one in self._waiting)

    def expired(self, process: HostProcess) -> None:
        """A slice does not end."""


class Gang(Strategy):
    """The ideal: `jobs` have turns of `gang_slot_ms`, on all nodes at once. Nobody is told of a change, which costs a
    context switch alone."""

    title = "Gang"
    waiting = BusyWait()
    arrival = NoReschedule()

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self._nodes: list[NodeGround] = []

    @property
    def current(self) -> int | None:
        """The job whose turn it is."""
        return self.jobs[0] if self.jobs else None

    def scheduler(self, raise_phase: int) -> HostScheduler:
        """A scheduler that runs one job at a time."""
        return _OneJob(self)

    def start(self, node: NodeGround, first: int) -> None:
        """Begin on a node. The first node's clock is the clock of all."""
        if not self._nodes:
            node.host.clockwork(1000 * node.config.gang_slot_ms, self._turn, first=node.host.time.cycle)
        self._nodes.append(node)

    def job_ended(self, job: int) -> None:
        """Go on with the next job."""
        self.jobs.remove(job)
        self._all_look()

    def _turn(self) -> None:
        if self.jobs:
            self.jobs.append(self.jobs.pop(0))
            self._all_look()

    def _all_look(self) -> None:
        for node in self._nodes:
            node.host.look_now()
