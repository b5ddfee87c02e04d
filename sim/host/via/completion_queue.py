"""A completion queue of VIPL: the card's entries, and the ends that the agent tells."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from lanikai.firmware.work_queue.layout import unpack_descriptor_number

from ..kit.completion_queue import Completion, CompletionQueue
from ..kit.errors import DeadQueueError, OverrunError
from .nic import VipNic
from .queue import ViQueue

__all__ = ["NUMBERS", "VipCompletionQueue"]

NUMBERS = 1 << 15
"""Descriptors are numbered modulo this in entries."""


class VipCompletionQueue:
    """A completion queue, whose ring the card fills as `kit` says. `VipCreateCQ` makes it.

    An entry names a work queue, one of whose descriptors has ended. Each end is named once: an entry says which
    descriptor it is of, so one that comes twice is passed over, and one that was lost is made up for. Ends without an
    entry, of descriptors that the agent has flushed, stand beside the ring in `told`.

    - `nic`: the process whose it is. `waited`: somebody waits for it.
    - `handlers`: who is to be called of an end each, with their contexts.
    - `members`: (channel, receives) -> work queue that is told here.
    - `overrun`: called after entries were lost and made up for. `dead`: called when the bus has refused the ring.
    """

    def __init__(
        self, nic: VipNic, kit: CompletionQueue, *, overrun: Callable[[], None], dead: Callable[[], None]
    ) -> None:
        self.nic, self.kit = nic, kit
        self.members: dict[tuple[int, bool], ViQueue] = {}
        self.told: deque[ViQueue] = deque()
        self.waited = False
        self.handlers: deque[tuple[Any, Callable[..., None]]] = deque()
        self._overrun, self._dead = overrun, dead

    def tell(self, queue: ViQueue, ends: int) -> None:
        """Tell that so many descriptors of `queue` have ended, beside the ring."""
        self.told.extend([queue] * ends)
        if ends:
            self.kit.wake()

    def forget(self, queue: ViQueue) -> None:
        """Forget a work queue that is no more, and what was to be told of it."""
        self.members.pop((queue.channel, queue.receive), None)
        self.told = deque(one for one in self.told if one is not queue)

    async def done(self) -> ViQueue | None:
        """Look once: a work queue of which a descriptor has ended, or None. Raises DeadQueueError."""
        if not self.told:
            try:
                found = await self.kit.reap(1)
            except OverrunError:
                await self.kit.remake()
                self._overrun()
                self.make_up()
            except DeadQueueError:
                self._dead()
                raise
            else:
                self._take(found)
        return self.told.popleft() if self.told else None

    def drain(self) -> None:
        """Take all entries that there are out of the ring into `told`, at no cost: the agent does it, in the kernel."""
        self._take(self.kit.drain())

    def make_up(self) -> None:
        """Tell all ends that the ring has not told, by the descriptors themselves."""
        for queue in self.members.values():
            self._tell_up_to(queue, queue.completed)

    def _take(self, found: list[Completion]) -> None:
        for entry in found:
            number, receive = unpack_descriptor_number(entry.descriptor)
            queue = self.members.get((entry.work_queue, receive))
            if queue is not None:
                ahead = (number + 1 - queue.told) % NUMBERS
                if 0 < ahead <= queue.posted - queue.told:
                    self._tell_up_to(queue, queue.told + ahead)

    def _tell_up_to(self, queue: ViQueue, count: int) -> None:
        self.tell(queue, count - queue.told)
        queue.told = count
