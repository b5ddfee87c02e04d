"""A process of a host: an ordinary coroutine whose steps take processor time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum
from typing import Any, Protocol

from .machine import Machine
from .requests import Block, Outside, Request, Signal, Spin, Waiter, Work, Yield
from .timekeeper import Timekeeper

__all__ = ["HostProcess", "ProcessHost", "State"]


class State(Enum):
    """The state of a process."""

    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    ENDED = "ended"


class ProcessHost(Protocol):
    """The host, as far as a process stands on it (`lanikai.sim.host.cpu.host.Host`)."""

    time: Timekeeper
    machine: Machine
    node: int

    def cycles(self, of_machine: int) -> int:
        """Cycles of time for so many of the machine."""

    def wake(self, process: HostProcess) -> None:
        """Let a process that is blocked go on."""


class HostProcess:
    """A process of `host`. It makes progress only while a processor runs it. Each call is to be awaited.

    - `name`, `job`: for people; processes of one parallel program have the same `job`.
    - `used`: cycles that processors have worked for it, spinning and system calls included.
    - `worked`: those of `compute` alone.
    - `level`, `ticks_left`: the scheduler's.
    - `ended_at`: the cycle in which it ended, or None.
    """

    def __init__(self, host: ProcessHost, name: str, job: int) -> None:
        self.host = host
        self.name = name
        self.job = job
        self.state = State.READY
        self.level = 0
        self.ticks_left = 0
        self.tick_base = 0
        self.used = 0
        self.worked = 0
        self.started_at = host.time.cycle
        self.ended_at: int | None = None
        self.processor: Waiter | None = None
        self.request: Request | None = None
        self.answer: Any = None
        self.on_end: Callable[[], None] | None = None
        self._coroutine: Coroutine[Request, Any, Any] | None = None

    def __repr__(self) -> str:
        return f"{self.name} on host {self.host.node}: {self.state.value}"

    # -- calls ---------------------------------------------------------------------------------------------------

    def compute(self, cycles: int) -> Work:
        """Compute for so many processor cycles."""
        cycles = self.host.cycles(cycles)
        self.worked += cycles
        return Work(cycles)

    def overhead(self, nanoseconds: int) -> Work:
        """Work of a library, given as a time."""
        return Work(self.host.cycles(self.host.machine.cycles(nanoseconds)))

    def copy(self, words: int, *, cached: bool = False) -> Work:
        """Copy words of four bytes, which are in the cache or in memory."""
        machine = self.host.machine
        return Work(self.host.cycles(words * (machine.cache_word if cached else machine.memory_word).cycles))

    def read_card(self, words: int = 1) -> Work:
        """Read words of the card, where no simulated bus stands behind it."""
        return Work(self.host.cycles(words * self.host.machine.card_read.cycles), kernel=True)

    def write_card(self, words: int = 1) -> Work:
        """Write words of the card, where no simulated bus stands behind it."""
        return Work(self.host.cycles(words * self.host.machine.card_write.cycles), kernel=True)

    def system_call(self, cycles: int = 0) -> Work:
        """Enter the kernel, work there for so many cycles more, and return."""
        return Work(self.host.cycles(self.host.machine.system_call.cycles + cycles), kernel=True)

    def spin(self, signal: Signal, limit_cycles: int | None = None) -> Spin:
        """Look at a signal again and again, for so many cycles of its own time at most. Returns whether it was set."""
        limit = None if limit_cycles is None else self.host.cycles(limit_cycles)
        return Spin(signal, self.host.cycles(self.host.machine.poll.cycles), limit)

    def block(self, signal: Signal) -> Block:
        """Sleep until a signal is set; at once if it is."""
        return Block(signal)

    def give_way(self) -> Yield:
        """Let the others go first that are as urgent."""
        return Yield()

    def outside(self, awaitable: Awaitable[Any]) -> Outside:
        """Await something of the simulation outside, such as an access to a card in RTL. The processor stands still."""
        return Outside(awaitable)

    # -- for the host --------------------------------------------------------------------------------------------

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Give it its coroutine."""
        self._coroutine = coroutine

    def next_request(self) -> Request | None:
        """Go on until it asks for something; None: it has ended. Raises TypeError if it awaits anything that is not the
        host's, and what the coroutine raises."""
        assert self._coroutine is not None
        try:
            asked = self._coroutine.send(self.answer)
        except StopIteration:
            self._coroutine = None
            return None
        self.answer = None
        if not isinstance(asked, Request):
            raise TypeError(
                f"{self.name} awaits {asked!r}, which is not its host's: a process awaits its own calls, "
                "and `outside(...)` for all else"
            )
        return asked

    def signalled(self) -> None:
        """Note that the signal that it waits for has been set."""
        if self.state is State.BLOCKED:
            self.host.wake(self)
        elif self.processor is not None:
            self.processor.signalled()
