"""A host's scheduler, as its processors see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from .process import HostProcess

__all__ = ["HostScheduler", "SchedulerHost", "Why"]


class Why(Enum):
    """The reason why a process can run now and does not."""

    NEW = "new"
    WOKEN = "woken"
    PREEMPTED = "preempted"
    EXPIRED = "expired"
    YIELDED = "yielded"


class SchedulerHost(Protocol):
    """The host, as far as a scheduler stands on it (`lanikai.sim.host.cpu.host.Host`)."""

    processes: list[HostProcess]

    def look(self) -> None:
        """Note that the queues have changed."""

    def settle_ticks(self, process: HostProcess) -> None:
        """Take the ticks since the last time off a running process' slice."""

    def clockwork(self, microseconds: int, function: Callable[[], None], *, first: int) -> None:
        """Call a function periodically that takes no time of a processor."""


class HostScheduler(ABC):
    """The order in which the processes of a host run. A host has one of its own.

    - `tick_us`: it is asked at its ticks alone whether a running process has to go.

    A process has a `level`, the higher the more urgent, and `ticks_left` of its time slice. Both are the scheduler's.
    """

    tick_us: int = 1000

    def start(self, host: SchedulerHost) -> None:
        """Begin, on a host that has no process yet."""
        self.host = host

    @abstractmethod
    def ready(self, process: HostProcess, why: Why) -> None:
        """Take a process into the queues."""

    @abstractmethod
    def take(self) -> HostProcess | None:
        """Take the process that is next out of the queues; None if there is none."""

    @abstractmethod
    def passes(self, process: HostProcess, *, equal: bool) -> bool:
        """Whether one of the queues is more urgent than `process`, which runs; `equal`: or as urgent."""

    @abstractmethod
    def expired(self, process: HostProcess) -> None:
        """Give a process that has used up its slice, and still runs, its next one."""
