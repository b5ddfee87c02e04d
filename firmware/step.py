"""A step of a processor: what it waits for, its own cycles, its accesses, and what its coroutine does at its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from .accesses import RECORD_WORDS, AccessList, Why
from .costs import CostTable
from .lock import Lock
from .notice import Notice, PortEvent
from .ports import Flag, ProcessorPort

__all__ = ["Accesses", "Part", "Step"]

Accesses = AccessList | Callable[[], AccessList]
"""The accesses of a step, or a function that writes them down."""
_NOTHING = AccessList()


class Owner(Protocol):
    """The processor whose steps they are: `lanikai.firmware.processor.Processor`."""

    port: ProcessorPort
    costs: CostTable
    lock: Lock
    current: str | None

    @property
    def waiting(self) -> int:
        """How many steps wait for it."""

    def charge(self, name: str, cycles: int) -> int:
        """Count a step of so many cycles."""

    def show(self, step: str) -> None:
        """Show the present step."""


class Part:
    """One step of those that follow one another; the arguments are those of `Processor.step`.

    Raises KeyError for a step that the cost table does not have.
    """

    __slots__ = ("accesses", "after", "ahead", "came", "cycles", "holding", "name", "times", "urgent")

    def __init__(
        self,
        processor: Owner,
        name: str,
        times: int,
        accesses: Accesses | None,
        ahead: bool,
        after: Notice | PortEvent | None,
        came: Callable[[], None] | None,
        holding: Lock | None,
        urgent: Callable[[], bool] | None = None,
    ) -> None:
        self.urgent = urgent
        self.name, self.times, self.cycles = name, times, processor.costs.cycles(name) * times
        self.accesses = _NOTHING if accesses is None else accesses
        self.ahead, self.after, self.came, self.holding = ahead, after, came, holding


class Step:
    """The context manager of `Processor.step`, which describes it.

    Functions do all until the body, each called where a coroutine would go on that waited for the same. So its own
    coroutine wakes once, and nothing happens in another order or cycle.
    """

    __slots__ = ("_ended", "_list", "_over", "_owned", "_part", "_parts", "_port", "_processor", "_until")

    def __init__(self, processor: Owner, part: Part) -> None:
        self._processor, self._port = processor, processor.port
        self._part = part
        self._parts: deque[Part] | None = None
        self._list = _NOTHING
        self._until: Notice | None = None
        self._owned = self._over = False
        self._ended: Flag | None = None

    def then(
        self,
        name: str,
        accesses: Accesses | None = None,
        *,
        times: int = 1,
        ahead: bool = False,
        after: Notice | PortEvent | None = None,
        came: Callable[[], None] | None = None,
        holding: Lock | None = None,
    ) -> Self:
        """Another step that follows this one, with nothing to decide in between. The body belongs to the last one.

        If the list before ends early (`Why` is not END), those that follow are left out, and the body belongs to it.
        The arguments are those of `Processor.step`. Raises KeyError as that does.
        """
        if self._parts is None:
            self._parts = deque()
        self._parts.append(Part(self._processor, name, times, accesses, ahead, after, came, holding))
        return self

    def until(self, event: Notice) -> Self:
        """Give the processor back at the end of the step, and go on when `event` has come, which is cleared.

        It is not waited for if a list ends early.
        """
        self._until = event
        return self

    async def __aenter__(self) -> None:
        self._begin()
        if not self._over:
            await self._flag().wait()
        if self._until is not None:
            self._until.clear()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _flag(self) -> Flag:
        if self._ended is None:
            self._ended = self._port.flag()
        return self._ended

    def _begin(self) -> None:
        if self._part.after is not None:
            self._part.after.call(self._came)
        else:
            self._hold()

    def _came(self) -> None:
        assert self._part.after is not None
        self._part.after.clear()
        if self._part.came is not None:
            self._part.came()
        self._hold()

    def _hold(self) -> None:
        if self._part.holding is not None:
            self._part.holding.take(self._take, self._port.call_soon)
        else:
            self._take()

    def _take(self) -> None:
        urgent = self._part.urgent
        first = urgent is not None and urgent()
        self._processor.lock.take(self._taken, self._port.call_soon, first=first)

    def _taken(self) -> None:
        one = self._part
        if one.times:
            self._processor.charge(one.name, one.cycles)
        self._own()
        accesses = one.accesses
        if isinstance(accesses, AccessList):
            self._start(accesses, one.cycles)
        elif one.ahead:
            self._start(accesses(), one.cycles)
        elif one.cycles:
            self._port.start(AccessList(), self._write_down, lead_cycles=one.cycles)
        else:
            self._write_down()

    def _write_down(self) -> None:
        accesses = self._part.accesses
        assert not isinstance(accesses, AccessList)
        self._start(accesses(), 0)

    def _start(self, accesses: AccessList, lead_cycles: int) -> None:
        accesses.rewind()
        self._go(accesses, lead_cycles)

    def _go(self, accesses: AccessList, lead_cycles: int) -> None:
        self._list = accesses
        if not (lead_cycles or accesses.program):
            self._carried_out()
            return
        self._port.start(accesses, self._carried_out, lead_cycles=lead_cycles)
        if self._processor.waiting:
            self._port.interrupt()

    def _carried_out(self) -> None:
        accesses = self._list
        if accesses.why is Why.MARKED:
            # Another step comes in between, then this one goes on behind the mark.
            self._leave()
            accesses.reached += 1
            self._processor.lock.take(self._go_on, self._port.call_soon)
            return
        if accesses.paid:
            for name, cycles in accesses.charges(self._part.name):
                self._processor.charge(name, cycles)
        if accesses.why is not Why.END:
            self._until = None
            self._finish()
        elif self._parts:
            self._leave()
            self._part = self._parts.popleft()
            self._begin()
        elif self._until is not None:
            self._leave()
            self._until.set_too(self._flag())
        else:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        if self._ended is not None:
            self._ended.set()

    def _go_on(self) -> None:
        self._own()
        accesses = self._list
        accesses.interrupted = False
        self._go(accesses, accesses.program[RECORD_WORDS * (accesses.reached - 1) + 1])

    def _own(self) -> None:
        self._owned = True
        self._processor.current = self._part.name
        self._processor.show(self._part.name)

    def _leave(self) -> None:
        if self._owned:
            self._owned = False
            self._processor.current = None
            self._processor.show("")
            self._processor.lock.release()
