"""Credit-based congestion control: a consumer may have so many messages at the adapter (yum-2006 4.2, 4.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lanikai.hdl.config import ConfigError

__all__ = ["CreditPolicy"]


class CreditPolicy(ABC):
    """Queues of credits at node `node`, and the queue that a message's destination says.

    A message takes a credit of its queue as it is posted. The adapter's completion gives it back to the same queue: the
    message has entered the network.

    - `credits`: those of all queues together. They are dealt out evenly; what is left over goes to the first queues.
    - `coordinates`: x and y of each node.

    Raises ConfigError if there is not a credit for each queue, or for a node that is not there.

    A new policy is a file with a subclass that says `queues` and `queue`, and a line in `CREDITS`.
    """

    def __init__(self, credits: int, *, node: int, coordinates: Sequence[tuple[int, int]]) -> None:
        if not 0 <= node < len(coordinates):
            raise ConfigError(f"node = {node}: 0 to {len(coordinates) - 1}")
        self.node, self.coordinates = node, tuple(coordinates)
        count = self.queues()
        if self.limited and credits < count:
            raise ConfigError(f"credits = {credits}: at least {count}, one for each queue of credits")
        self.left = [credits // count + (queue < credits % count) for queue in range(count)]
        """Credits of each queue now."""
        self.initial = tuple(self.left)

    limited = True
    """Whether credits run out."""

    @abstractmethod
    def queues(self) -> int:
        """The number of queues of credits."""

    @abstractmethod
    def queue(self, destination: int) -> int:
        """The queue of credits of messages to a node."""

    def take(self, destination: int) -> bool:
        """Take a credit for a message to a node. Returns whether there was one."""
        queue = self.queue(destination)
        if self.limited and not self.left[queue]:
            return False
        self.left[queue] -= 1
        return True

    def give(self, destination: int) -> int:
        """A message to a node has entered the network: its credit comes back. Returns the queue.

        Raises ValueError for more credits than were taken.
        """
        queue = self.queue(destination)
        if self.left[queue] == self.initial[queue]:
            raise ValueError(
                f"node {self.node}: a credit came back that no message to {destination} has taken"
            )
        self.left[queue] += 1
        return queue

    @property
    def taken(self) -> int:
        """Messages that are posted and have not entered the network."""
        return sum(self.initial) - sum(self.left)
