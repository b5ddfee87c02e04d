"""Matching of messages and receives: by communicator, source and tag, in order (MPI 1.1, 3.5).

There are two queues, as in MPICH: receives that wait for a message, messages that wait for a receive (*unexpected*). A
message takes the oldest receive that it suits; a receive takes the oldest message that suits it. Messages of a pair of
ranks arrive in the order of their sending. So two of them that suit one receive are received in that order: they do not
overtake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["ANY_SOURCE", "ANY_TAG", "PROC_NULL", "Matcher", "Wanted"]

ANY_SOURCE = -1
"""Receive from any rank of the communicator."""
ANY_TAG = -1
"""Receive a message with any tag."""
PROC_NULL = -2
"""A rank that is nobody: a send to it, or a receive from it, is done at once. For the edges of grids."""

R = TypeVar("R")
M = TypeVar("M")


@dataclass(frozen=True)
class Wanted:
    """The request of a receive: `context`; `source`, or ANY_SOURCE; `tag`, or ANY_TAG."""

    context: int
    source: int
    tag: int

    def suits(self, context: int, source: int, tag: int) -> bool:
        """Whether it asks for a message with these."""
        return self.context == context and self.source in (source, ANY_SOURCE) and self.tag in (tag, ANY_TAG)


class Matcher(Generic[R, M]):
    """The two queues of one rank, of receives R and messages M.

    `looked`: how many entries the last call has looked at; each costs time.
    """

    def __init__(self) -> None:
        self._receives: list[tuple[Wanted, R]] = []
        self._messages: list[tuple[tuple[int, int, int], M]] = []
        self.looked = 0

    def post(self, wanted: Wanted, receive: R) -> M | None:
        """Post a receive. Returns the oldest unexpected message that suits it, which is taken out; else None, and the
        receive waits."""
        found = self.find(wanted)
        if found is None:
            self._receives.append((wanted, receive))
            return None
        self.remove(found)
        return found

    def remove(self, message: M) -> None:
        """Take an unexpected message out."""
        place = next(place for place, (_, one) in enumerate(self._messages) if one is message)
        del self._messages[place]

    def withdraw(self, chosen: Callable[[R], bool]) -> bool:
        """Take out the oldest receive that waits and is `chosen`. Returns whether there was one."""
        for place, (_, receive) in enumerate(self._receives):
            if chosen(receive):
                del self._receives[place]
                return True
        return False

    def arrive(self, context: int, source: int, tag: int, message: M) -> R | None:
        """Let a message arrive. Returns the oldest receive that it suits, which is taken out; else None, and the
        message waits."""
        for place, (wanted, receive) in enumerate(self._receives):
            self.looked = place + 1
            if wanted.suits(context, source, tag):
                del self._receives[place]
                return receive
        self.looked = len(self._receives)
        self._messages.append(((context, source, tag), message))
        return None

    def find(self, wanted: Wanted) -> M | None:
        """The oldest unexpected message that suits; it stays where it is."""
        for place, (what, message) in enumerate(self._messages):
            self.looked = place + 1
            if wanted.suits(*what):
                return message
        self.looked = len(self._messages)
        return None

    @property
    def waiting(self) -> list[Wanted]:
        """The requests of the receives that wait, oldest first."""
        return [wanted for wanted, _ in self._receives]

    @property
    def unexpected(self) -> int:
        """Messages that wait for a receive."""
        return len(self._messages)

    def __iter__(self) -> Iterator[M]:
        """The unexpected messages, oldest first."""
        return (message for _, message in self._messages)
