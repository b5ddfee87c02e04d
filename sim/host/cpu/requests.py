"""The things that a process asks its host for: it awaits one, and goes on when the host has done it."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Protocol

__all__ = ["Block", "Outside", "Request", "Signal", "Spin", "Waiter", "Work", "Yield"]


class Waiter(Protocol):
    """A process that waits for a signal."""

    def signalled(self) -> None:
        """Note that it is set."""


class Signal:
    """A condition that one process at a time waits for, spinning or blocked; it stays set until it is cleared."""

    __slots__ = ("is_set", "waiting")

    def __init__(self) -> None:
        self.is_set = False
        self.waiting: Waiter | None = None

    def set(self) -> None:
        """Set it: its process, spinning or blocked, goes on as soon as it can."""
        if not self.is_set:
            self.is_set = True
            if self.waiting is not None:
                self.waiting.signalled()

    def clear(self) -> None:
        """Unset it."""
        self.is_set = False


class Request:
    """Something that a process waits for. It is to be awaited once."""

    __slots__ = ()

    def __await__(self) -> Generator[Request, Any, Any]:
        return (yield self)


class Work(Request):
    """Processor time: `left` cycles. A process in the `kernel` keeps the processor until they are over."""

    __slots__ = ("kernel", "left")

    def __init__(self, cycles: int, kernel: bool = False) -> None:
        if cycles < 0:
            raise ValueError(f"{cycles} cycles of work: at least 0")
        self.left = cycles
        self.kernel = kernel


class Spin(Request):
    """A loop that looks at `signal` every `poll` cycles of the process' own time.

    It ends at the end of the first look that finds it set, or after `limit` cycles, rounded up to a whole look. The
    awaiter gets whether the signal was set. `spent`: cycles so far.
    """

    __slots__ = ("limit", "poll", "signal", "spent")

    def __init__(self, signal: Signal, poll: int, limit: int | None = None) -> None:
        if poll < 1:
            raise ValueError(f"a look takes {poll} cycles: at least 1")
        self.signal = signal
        self.poll = poll
        self.limit = None if limit is None else -(-limit // poll) * poll
        self.spent = 0

    def left(self, *, begins: bool) -> int | None:
        """Cycles until it ends as things stand; None: it does not. `begins`: the process has been given the processor
        just now, so that a look has yet to be made."""
        after = self.spent % self.poll
        due = None if self.limit is None else max(0, self.limit - self.spent)
        if self.signal.is_set:
            look = self.poll - after if after or begins or not self.spent else 0
            due = look if due is None else min(due, look)
        return due


class Block(Request):
    """Sleep until `signal` is set; at once if it is. The process leaves the processor."""

    __slots__ = ("signal",)

    def __init__(self, signal: Signal) -> None:
        self.signal = signal


class Yield(Request):
    """Let the others go first that are as urgent."""

    __slots__ = ()


class Outside(Request):
    """Something of the simulation outside, such as an access to a card in RTL. The processor stands still meanwhile,
    and no interrupt is taken. The awaiter gets its value."""

    __slots__ = ("awaitable",)

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.awaitable = awaitable
