"""Ranks that all wait for one another are told so at once, instead of waiting for ever.

A rank is one thread: while it is inside a call it can do nothing but wait for messages. Nothing will ever happen if
every rank of a world waits in a call, or has ended, nothing is under way and none has anything left to do. The detector
looks when a rank begins to wait, and sees all ranks of its world at once, which a real machine could not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .errors import DeadlockError
from .transport import Transport

__all__ = ["Detector", "Watched"]

MOST_RANKS = 8
"""Ranks that the line names."""


class Sent(Protocol):
    """The sending half of a process."""

    @property
    def counts(self) -> Sequence[int]:
        """Messages sent so far, by rank."""


class Watched(Protocol):
    """The MPI process of a rank, for the detector; `process.Process` says what each is."""

    transport: Transport
    ended: bool
    taken: int

    @property
    def out(self) -> Sent:
        """Its sending half."""

    @property
    def pending(self) -> int:
        """1 while it waits inside a call."""

    def waiting(self) -> list[str]:
        """The call that it waits in."""


class Detector:
    """The ranks of one world, each of which says when it waits."""

    def __init__(self) -> None:
        self.processes: list[Watched] = []

    def look(self) -> None:
        """Raise DeadlockError if nothing can happen any more."""
        waiting = [process for process in self.processes if not process.ended]
        if not waiting or any(not process.pending for process in waiting):
            return
        if not all(process.transport.quiet for process in waiting):
            return
        # On their way: sent, and not taken. (What has been acknowledged may still be in the receiver's card.)
        for process in waiting:
            sent = sum(other.out.counts[process.transport.rank] for other in self.processes)
            if sent != process.taken:
                return
        lines = self.lines()
        ended = [str(process.transport.rank) for process in self.processes if process.ended]
        rest = f"; ended: rank {', '.join(ended)}" if ended else ""
        raise DeadlockError(f"deadlock: {'; '.join(lines)}{rest}")

    def lines(self) -> list[str]:
        """Each rank that waits, its call and peer."""
        waiting = [
            f"{line.replace(': ', ' waits in ', 1)}"
            for process in self.processes
            for line in process.waiting()
        ]
        if len(waiting) > MOST_RANKS:
            waiting[MOST_RANKS:] = [f"and {len(waiting) - MOST_RANKS} more"]
        return waiting
