"""A message in its receive queue: the words at the head of the page, and the notice to a process that sleeps."""

from __future__ import annotations

from .endpoints import Frame
from .layout import PageWord
from .mailbox import Notices
from .state import AmState
from .words import pack_pair

__all__ = ["Delivery"]


class Delivery:
    """The last part of each delivery. Whoever calls it has written the entry, and its data are in host memory."""

    def __init__(self, state: AmState, notices: Notices) -> None:
        self.state, self.notices = state, notices

    def complete(self, frame: Frame, reply: bool, count: int) -> None:
        """The `count`-th message of a receive queue is whole. It is shown when all before it are.

        The event mask is read after the word that shows the message. A process that sets the mask and then finds
        nothing new has set it before, so it gets its notice.
        """
        queue, script = frame.receives[reply], self.state.script
        frame.activity += 1
        self.state.advance()
        empty, before = not queue.waiting, queue.delivered
        if not queue.complete(count):
            return
        script.pay("deliver")
        shown = pack_pair(frame.receives[0].delivered, frame.receives[1].delivered)
        script.store(frame.page + 4 * PageWord.DELIVERED, [shown])
        (mask,) = script.load(frame.page + 4 * PageWord.EVENT_MASK, 1)
        self.state.then(lambda: self._masked(frame, reply, mask.get(), empty, before))

    def _masked(self, frame: Frame, reply: bool, mask: int, empty: bool, before: int) -> None:
        """The event mask has been read: tell the driver, if it asks for that and the queue was empty.

        A process may have consumed everything, and its doorbell word not have been seen yet: look at it.
        """
        if not mask & 1 or frame.endpoint is None:
            return
        if empty:
            self.notices.event(frame.record.endpoint)
            return
        accesses = self.state.script.room(2)
        accesses.write("DOORBELL_SELECT", channel=frame.number)
        word = accesses.read("DOORBELL_WORD")

        def seen() -> None:
            if word["valid"]:
                frame.rung(word["value"])
            if frame.receives[reply].consumed == before:
                self.notices.event(frame.record.endpoint)

        self.state.then(seen)
