"""An endpoint as its process has it: translations, handlers, the counts of its queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanikai.firmware.am.layout import AmLayout, PageWord, Queue
from lanikai.firmware.am.words import COUNT_BITS, COUNT_MODULUS, unpack_pair
from lanikai.firmware.lock import Lock

from ..memory import Buffer
from .driver import SegmentDriver
from .errors import AmCode, AmError
from .ledger import Destination, EndpointName, Ledger
from .mmu import EndpointPage, Place

__all__ = ["ERROR_HANDLER", "HANDLERS", "NO_HANDLER", "REJECTED", "Endpoint", "Translation"]

ERROR_HANDLER = 0
"""Index of the handler of messages that come back."""
HANDLERS = 254
"""Handlers have indexes below this; the two above are the library's."""
REJECTED = 254
"""Handler of the library's reply to a request whose handler there is not; its word is the status."""
NO_HANDLER = 255
"""Handler of the library's reply to a request that has none, and of its question: the library answers, and no more."""
COUNTS = 1 << 16


@dataclass(eq=False)
class Translation:
    """An entry of the translation table: a destination, and the tag that messages to it carry."""

    destination: Destination
    tag: int


class Endpoint:
    """ep_t: an endpoint of a process.

    - `driver`, `page`: the node's driver; the endpoint's page as it is mapped.
    - `name`, `tag`, `segment`: its name in the network, its tag, the memory into which others may write.
    - `translations`, `handlers`: index -> translation, index -> handler.
    - `ledger`: requests without an answer, and credits.
    - `posted`, `taken`: of send requests and send replies: posts; posts whose entries are free again, as last seen.
    - `claimed`, `consumed`: of received requests and replies: taken by a thread; done with, in order.
    - `lock`: whoever writes into the page has it, so that its doorbell words are in order.
    - `wake`: called when there may be something to do.
    - `handled`, `returned`, `unanswered`, `strays`: messages given to handlers, messages that came back, requests whose
      credit came home without an answer, messages that made no sense.
    """

    def __init__(self, driver: SegmentDriver, page: EndpointPage, tag: int) -> None:
        self.driver, self.page, self.tag = driver, page, tag
        self.name = EndpointName(driver.node, page.endpoint.number)
        self.segment: Buffer | None = None
        self.translations: dict[int, Translation] = {}
        self.handlers: dict[int, Callable[..., Any]] = {}
        self.ledger = Ledger(driver.costs.credits)
        self.posted, self.taken = [0, 0], [0, 0]
        self.claimed, self.consumed = [0, 0], [0, 0]
        self._done: tuple[set[int], set[int]] = (set(), set())
        self._told = 0
        self.lock = Lock(driver.bus.flag)
        self.wake: Callable[[], None] = lambda: None
        self.mask = 0
        self.handled = self.returned = self.unanswered = self.strays = 0

    def __repr__(self) -> str:
        return f"endpoint {self.name.number} of node {self.name.node}"

    @property
    def layout(self) -> AmLayout:
        """Places in the page."""
        return self.driver.layout

    @property
    def alive(self) -> bool:
        """Whether it has not been freed, and its process lives."""
        return self.page.endpoint.place is not Place.GONE

    def check(self) -> None:
        """Raise AmError if it is no more."""
        if not self.alive:
            raise AmError(AmCode.AM_ERR_NOT_INIT, f"{self}: it is no more")

    @property
    def overdue(self) -> list[Destination]:
        """Destinations that should be asked whether they are still there."""
        patience = self.driver.cycles(1000 * self.driver.costs.patience_us)
        return self.ledger.overdue(self.driver.bus.cycle, patience)

    # Send queues.

    def room(self, *, reply: bool) -> bool:
        """Whether an entry of a send queue is free, as far as is known."""
        return (self.posted[reply] - self.taken[reply]) % COUNTS < self.layout.config.queue_entries

    def saw_taken(self, word: int) -> None:
        """Note what the page says of entries that are free again. Impossible counts change nothing."""
        for reply, taken in enumerate(unpack_pair(word)):
            if (self.posted[reply] - taken) % COUNTS <= self.layout.config.queue_entries:
                self.taken[reply] = taken

    async def write(
        self, writes: list[tuple[int, int]], *, reply: bool | None = None, after_cycles: int = 0
    ) -> None:
        """Write words into the page and ring, by the holder of `lock`. `reply`: one more is posted in this queue."""
        if reply is not None:
            self.posted[reply] = (self.posted[reply] + 1) % COUNTS
        self._told = word = self.word
        await self.page.write_all(writes, ring=word, after_cycles=after_cycles)

    # Receive queues.

    @property
    def word(self) -> int:
        """The doorbell word of the present counts (`Counts`)."""
        word = 0
        for count in (*reversed(self.consumed), *reversed(self.posted)):
            word = word << COUNT_BITS | count % COUNT_MODULUS
        return word

    def claim(self, delivered: int, *, reply: bool) -> int | None:
        """The number of the next message of a receive queue, for the caller alone; None if there is none.

        `delivered`: what the page says. An impossible count is as none.
        """
        waiting = (delivered - self.claimed[reply]) % COUNTS
        if not 0 < waiting <= self.layout.config.queue_entries:
            return None
        count = self.claimed[reply]
        self.claimed[reply] = (count + 1) % COUNTS
        return count

    def waiting(self, delivered: int) -> bool:
        """Whether a message waits that no thread has claimed. `delivered`: the page's word."""
        return any(
            0 < (count - claimed) % COUNTS <= self.layout.config.queue_entries
            for count, claimed in zip(unpack_pair(delivered), self.claimed, strict=True)
        )

    def consume(self, count: int, *, reply: bool) -> None:
        """Note that a message is done with: its entry and staging slot may be used again, once the card is told."""
        done = self._done[reply]
        done.add(count)
        while self.consumed[reply] in done:
            done.remove(self.consumed[reply])
            self.consumed[reply] = (self.consumed[reply] + 1) % COUNTS

    async def tell(self) -> None:
        """Tell the card what has been consumed, unless a post has."""
        if self._told != self.word:
            async with self.lock:
                if self._told != self.word:
                    await self.write([])

    def entry(self, queue: Queue, count: int) -> int:
        """Offset in the page of a queue's entry."""
        return self.layout.entry(queue, count)

    def slot(self, slot: int, length: int, *, send: bool) -> Buffer:
        """A slot of a staging area."""
        memory = self.page.endpoint.memory
        area = memory.send_staging if send else memory.receive_staging
        at = self.layout.slot_offset(slot)
        return Buffer(area.start + at, length, area.data[at : at + length])

    DELIVERED, TAKEN, EVENT_MASK = (
        4 * word for word in (PageWord.DELIVERED, PageWord.TAKEN, PageWord.EVENT_MASK)
    )
