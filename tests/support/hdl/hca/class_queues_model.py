"""The plain model of the class queues: what a doorbell brings into them, what is refused, and whose turn is next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lanikai.hdl.hca.class_queues import BATCH

__all__ = ["ClassQueuesModel", "Pair"]

TURNS = 1 << 16


@dataclass
class Pair:
    """A queue pair and its running indices: of its last doorbell, in a queue, ended."""

    owner: int
    traffic_class: int
    entries: int
    rung: int = 0
    queued: int = 0
    ended: int = 0
    is_open: bool = True


class ClassQueuesModel:
    """`classes` queues of `entries` messages. One that finds no room is late: late queue pairs take turns."""

    def __init__(self, *, queue_pairs: int, classes: int, entries: int, first_index: int = 0) -> None:
        self.queue_pairs, self.entries, self.first_index = queue_pairs, entries, first_index
        self.queues: list[deque[tuple[int, int]]] = [deque() for _ in range(classes)]
        self.late: list[set[int]] = [set() for _ in range(classes)]
        self.place = [0] * classes
        self.pairs: dict[int, Pair] = {}
        self.refusals = self.late_dropped = 0

    def setup(
        self, qp: int, *, opens: bool, owner: int = 0, traffic_class: int = 0, entries: int = 1
    ) -> None:
        """A queue pair is opened or closed."""
        first = self.first_index
        if opens:
            self.pairs[qp] = Pair(owner, traffic_class, entries, first, first, first)
        elif (pair := self.pairs.get(qp)) and pair.is_open:
            self.late_dropped += (pair.rung - pair.queued) % TURNS
            pair.rung, pair.is_open = pair.queued, False
            self.late[pair.traffic_class].discard(qp)

    def ring(self, page: int, qp: int, index: int) -> None:
        """A doorbell."""
        pair = self.pairs.get(qp)
        if (
            pair is None
            or not pair.is_open
            or pair.owner != page
            or (index - pair.rung) % TURNS + (pair.rung - pair.ended) % TURNS > pair.entries
        ):
            self.refusals += 1
            return
        if index == pair.rung:
            return
        pair.rung = index
        for _ in range(BATCH):
            if pair.queued == pair.rung or self.late[pair.traffic_class] or self.full(pair.traffic_class):
                break
            self._push(qp)
        if pair.queued != pair.rung:
            self.late[pair.traffic_class].add(qp)
        self.rove()

    def full(self, traffic_class: int) -> bool:
        """Whether the queue of a class has no room."""
        return len(self.queues[traffic_class]) == self.entries

    def take(self, traffic_class: int) -> tuple[int, int]:
        """The oldest message of a class, taken."""
        oldest = self.queues[traffic_class].popleft()
        self.rove()
        return oldest

    def end(self, qp: int) -> None:
        """A message of `qp` has ended."""
        self.pairs[qp].ended = (self.pairs[qp].ended + 1) % TURNS

    def rove(self) -> None:
        """Late queue pairs fill the room that there is."""
        for traffic_class, late in enumerate(self.late):
            while late and not self.full(traffic_class):
                start = self.place[traffic_class]
                qp = min(late, key=lambda one: (one - start) % self.queue_pairs)
                self._push(qp)
                self.place[traffic_class] = (qp + 1) % self.queue_pairs
                if self.pairs[qp].queued == self.pairs[qp].rung:
                    late.discard(qp)

    def _push(self, qp: int) -> None:
        pair = self.pairs[qp]
        self.queues[pair.traffic_class].append((qp, pair.queued))
        pair.queued = (pair.queued + 1) % TURNS
