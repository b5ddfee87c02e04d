"""The time-sharing class of Solaris 2.5: 60 levels, slices of 20 to 200 ms, the system's default table.

It is as nagar-thesis-2001 6.1.1 describes it. A higher level has a shorter slice, from 200 ms at level 0 to 20 ms at
level 59. The scheduler runs every millisecond. A process that returns from sleep is boosted. "In addition, the
priorities of all processes are raised to level 59 every second."

The thesis names the table and does not print it. The table here is the system's default, as its System Administration
Guide shows the output of `dispadmin -c TS -g`: `SLICES_MS`, `EXPIRED` and `RETURNS` are its first three columns. Its
other two, which prevent starvation, have no effect beside the raise of all every second.
"""

from __future__ import annotations

from collections import deque

from .process import HostProcess, State
from .scheduler import HostScheduler, SchedulerHost, Why

__all__ = ["EXPIRED", "HIGHEST", "LEVELS", "RETURNS", "SLICES_MS", "TimeSharing"]

LEVELS = 60
HIGHEST = LEVELS - 1
SLICES_MS = (*[200] * 10, *[160] * 10, *[120] * 10, *[80] * 10, *[40] * 19, 20)
"""Slice of each level."""
EXPIRED = (*[0] * 10, *range(0, 50))
"""Level of a process that has used up its slice, by its level until then."""
RETURNS = (*[50] * 10, *[51] * 10, *[52] * 10, *[53] * 5, *[54] * 5, *[55] * 5, 56, 57, *[58] * 12, 59)
"""Level of a process that returns from sleep, by its level until then."""


class TimeSharing(HostScheduler):
    """The class, for a host's processes.

    - `start_level`: the level of a new process. It is inherited (6.1.1); assumed is Solaris' middle of the user range.
    - `raise_phase`: the cycle of the first raise of all, within the first second.

    A boosted process goes before a running one of the same level, too, at the next tick. The thesis says that a boost
    "ensures that the destination process is scheduled soon" (6.1.3), and that "it is important to immediately schedule"
    it (6.2.3). A running process of level 59 has up to 20 ms left.
    """

    def __init__(self, *, start_level: int = 29, raise_phase: int = 0) -> None:
        self.start_level = start_level
        self.raise_phase = raise_phase
        self._queues: list[deque[HostProcess]] = [deque() for _ in range(LEVELS)]
        self._filled = 0
        self._boosted: set[HostProcess] = set()

    def start(self, host: SchedulerHost) -> None:
        """Begin, with the raise every second."""
        super().start(host)
        host.clockwork(1_000_000, self.raise_all, first=self.raise_phase)

    # -- the scheduler ----------------------------------------------------------------------------------------------

    def ready(self, process: HostProcess, why: Why) -> None:
        """Take a process in.

        One that was preempted, or woken, goes to the head of its level's queue; all others to the end. "The Solaris
        signaling mechanism moves the blocked process to the head of the runnable queue for a higher priority level"
        (6.1.2).
        """
        if why is Why.NEW:
            self._set(process, self.start_level)
        elif why is Why.WOKEN:
            self._set(process, RETURNS[process.level])
        self._put(process, head=why in (Why.PREEMPTED, Why.WOKEN))
        queue = self._queues[process.level]
        if why is Why.PREEMPTED and len(queue) > 1 and queue[1] in self._boosted:
            # It had to go for a boosted one of its own level, so it does not go before it.
            queue[0], queue[1] = queue[1], queue[0]

    def take(self) -> HostProcess | None:
        """Take the head of the highest queue."""
        if not self._filled:
            return None
        process = self._queues[self._filled.bit_length() - 1][0]
        self._drop(process)
        self._boosted.discard(process)
        return process

    def passes(self, process: HostProcess, *, equal: bool) -> bool:
        """Whether a queue is higher than a running process; or as high."""
        highest = self._filled.bit_length() - 1
        if highest != process.level:
            return highest > process.level
        return equal or self._queues[highest][0] in self._boosted

    def expired(self, process: HostProcess) -> None:
        """Lower a process that has used up its slice."""
        self._set(process, EXPIRED[process.level])

    # -- for strategies ---------------------------------------------------------------------------------------------

    def boost(self, process: HostProcess) -> None:
        """Raise a process to the highest level, to the head of its queue, with a new slice."""
        if process.state is State.READY:
            self._boosted.add(process)
        self._move(process, HIGHEST, head=True)

    def lower(self, process: HostProcess, level: int) -> None:
        """Lower a process to a level, to the end of its queue, with a new slice."""
        self._move(process, level, head=False)

    def raise_all(self) -> None:
        """Raise all processes to the highest level. Queues keep their order, the higher ones first; slices go on."""
        waiting = [process for queue in reversed(self._queues) for process in queue]
        for queue in self._queues:
            queue.clear()
        self._queues[HIGHEST].extend(waiting)
        self._filled = 1 << HIGHEST if waiting else 0
        for process in self.host.processes:
            process.level = HIGHEST
        self.host.look()

    # -- queues -----------------------------------------------------------------------------------------------------

    def _set(self, process: HostProcess, level: int) -> None:
        process.level = level
        process.ticks_left = SLICES_MS[level] * 1000 // self.tick_us

    def _put(self, process: HostProcess, *, head: bool) -> None:
        queue = self._queues[process.level]
        if head:
            queue.appendleft(process)
        else:
            queue.append(process)
        self._filled |= 1 << process.level

    def _drop(self, process: HostProcess) -> None:
        queue = self._queues[process.level]
        queue.remove(process)
        if not queue:
            self._filled &= ~(1 << process.level)

    def _move(self, process: HostProcess, level: int, *, head: bool) -> None:
        if process.state is State.RUNNING:
            self.host.settle_ticks(process)
            self._set(process, level)
        elif process.state is State.READY:
            self._drop(process)
            self._set(process, level)
            self._put(process, head=head)
        else:
            process.level = level
        self.host.look()
