"""The plain model of posted elements: pages, rings on the card, and the elements that are held for the scheduler."""

from __future__ import annotations

from collections import deque

from lanikai.hdl.hca.work_fetch import AHEAD

from support.hdl.hca.class_queues_model import TURNS, ClassQueuesModel

__all__ = ["PostedModel"]


class PostedModel(ClassQueuesModel):
    """Class queues where each doorbell posts the element in its page."""

    def __init__(self, *, owners: int, posted_entries: int, **queues: int) -> None:
        super().__init__(**queues)
        self.pages = [0] * owners
        self.rings: dict[tuple[int, int], int] = {}
        self.posted_entries = posted_entries
        self.held: list[deque[tuple[int, int]]] = [deque() for _ in self.queues]
        self.dropped: list[int] = []

    def write(self, page: int, word: int, value: int) -> None:
        """A word of the element in a page."""
        if page < len(self.pages):
            mask = (1 << 32) - 1 << 32 * word
            self.pages[page] = self.pages[page] & ~mask | value << 32 * word

    def ring(self, page: int, qp: int, index: int) -> None:
        """A doorbell; one for more than an element is refused."""
        pair = self.pairs.get(qp)
        before = pair.rung if pair else 0
        if pair and (index - before) % TURNS > 1:
            self.refusals += 1
            return
        refused = self.refusals
        super().ring(page, qp, index)
        if self.refusals == refused and index != before:
            self.rings[qp, before % self.posted_entries] = self.pages[page]
        self.fetch()

    def fetch(self) -> None:
        """Elements move from the queues to where the scheduler looks; those of closed queue pairs are dropped."""
        for traffic_class, held in enumerate(self.held):
            while len(held) < AHEAD and self.queues[traffic_class]:
                qp, index = self.take(traffic_class)
                if self.pairs[qp].is_open:
                    held.append((qp, self.rings[qp, index % self.posted_entries]))
                else:
                    self.dropped.append(qp)
                    self.end(qp)
