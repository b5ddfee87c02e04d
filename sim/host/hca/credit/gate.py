"""Messages that wait for credits, or are dropped for want of one (yum-2006 4.2)."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from .policy import CreditPolicy

__all__ = ["DroppingGate", "WaitingGate"]

Message = TypeVar("Message")


class WaitingGate(Generic[Message]):
    """Best effort: a message waits until there is a credit of its queue, behind those that wait for the same queue."""

    def __init__(self, policy: CreditPolicy) -> None:
        self.policy = policy
        self._waiting: list[deque[tuple[int, Message]]] = [deque() for _ in policy.left]

    @property
    def waiting(self) -> int:
        """Messages that wait."""
        return sum(map(len, self._waiting))

    def offer(self, destination: int, message: Message) -> bool:
        """Returns whether the message may be posted now; else it waits, and `credit` will return it."""
        queue = self._waiting[self.policy.queue(destination)]
        # Where messages wait no credit is left.
        if self.policy.take(destination):
            return True
        queue.append((destination, message))
        return False

    def credit(self, destination: int) -> Message | None:
        """A message to a node has entered the network. Returns the message that may be posted for it, if one waits."""
        queue = self._waiting[self.policy.give(destination)]
        if not queue:
            return None
        to, message = queue.popleft()
        self.policy.take(to)
        return message


class DroppingGate(Generic[Message]):
    """Real-time traffic: a message without a credit is dropped, to be posted again later. `dropped` counts them."""

    def __init__(self, policy: CreditPolicy) -> None:
        self.policy = policy
        self.dropped = 0

    def offer(self, destination: int, message: Message) -> bool:
        """Returns whether the message may be posted now; else it is dropped."""
        if self.policy.take(destination):
            return True
        self.dropped += 1
        return False

    def credit(self, destination: int) -> None:
        """A message to a node has entered the network."""
        self.policy.give(destination)
