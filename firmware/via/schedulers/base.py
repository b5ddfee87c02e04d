"""The interface of schedulers, and the arithmetic that they share: whole ticks, with no remainder lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

__all__ = ["BEST_EFFORT_RATE", "Flow", "Message", "Rate", "Scheduler"]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A VI's rate: a message of `message_bytes` every `interval_ticks` of the card's clock (the thesis' Vtick).

    Raises ValueError for one that is not above 0.
    """

    message_bytes: int
    interval_ticks: int

    def __post_init__(self) -> None:
        """Check both."""
        for name in ("message_bytes", "interval_ticks"):
            if getattr(self, name) < 1:
                raise ValueError(f"Rate: {name} = {getattr(self, name)}: at least 1")

    def ticks(self, count: int) -> int:
        """The time that `count` bytes take at this rate, rounded up."""
        return -(-count * self.interval_ticks // self.message_bytes)


BEST_EFFORT_RATE = Rate(message_bytes=4096, interval_ticks=1024)
"""Rate that best effort has together: 8 MB/s on a clock of half a microsecond.

Schedulers that do not starve best effort keep it free. VirtualClock has no use for it.
"""


@dataclass(kw_only=True)
class Message:
    """A message that waits: its VI, its stamp `order` and its virtual `start`, both without wrap.

    `number` counts messages as they come, and decides between equal stamps.
    """

    vi: int
    order: int
    start: int
    number: int


@dataclass(kw_only=True)
class Flow:
    """Messages that are served in their order: those of a VI with a rate, or those of all best-effort VIs.

    `finish` is its virtual time, and `remainder` the part of a tick, in 1/message_bytes, that it has not been charged.
    """

    rate: Rate
    position: int
    finish: int = 0
    remainder: int = 0
    waiting: deque[Message] = field(default_factory=deque)

    def charge(self, count: int) -> int:
        """Ticks that `count` bytes take at its rate. Over many calls no fraction of a tick is lost.

        `count` may be negative, to take a charge back.
        """
        whole, self.remainder = divmod(
            count * self.rate.interval_ticks + self.remainder, self.rate.message_bytes
        )
        return whole


class Scheduler(ABC):
    """Stamps for the messages of `vis` VIs, on a clock of `bits` bits that wraps.

    The firmware calls `stamp` when it notices a message's doorbell, and `served` when the message goes on. Queues that
    order by stamps do the rest: the smaller stamp first, where stamps are compared as `before` of `virtual_clock.py`
    does. A program that has more messages than its queue has places asks `choose` for the next one.

    Stamps that wait are never further apart than half the clock's range: each is at most `most_ahead` ahead.
    Best effort (a VI opened without a rate) has one flow for all its VIs, in the order of arrival. It has
    `best_effort` as its rate, whatever VIs are open.

    Raises ValueError for a clock of less than 8 bits.
    """

    name: ClassVar[str]
    timed: ClassVar[bool] = False
    """Whether stamps are times of the clock, so that those of messages out and in compare in one queue."""
    memory_bytes: ClassVar[int]
    """SRAM that a VI takes on a card whose program is this one."""

    def __init__(self, *, vis: int, bits: int = 32, best_effort: Rate = BEST_EFFORT_RATE) -> None:
        if bits < 8:
            raise ValueError(f"bits = {bits}: at least 8")
        self.vis, self.bits = vis, bits
        self.most_ahead = (1 << (bits - 2)) - 1
        self.now = 0
        """The clock without its wrap."""
        self._best_effort = Flow(rate=best_effort, position=vis)
        self._flows: dict[int, Flow] = {}
        self._count = 0

    def open(self, vi: int, rate: Rate | None) -> None:
        """Give a VI its rate, from its next message on; None: best effort. A VI that is open keeps what waits.

        Raises ValueError for a VI out of range, and for an interval that is too long for the clock.
        """
        if not 0 <= vi < self.vis:
            raise ValueError(f"vi = {vi}: 0 to {self.vis - 1}")
        if rate is not None and rate.interval_ticks > self.most_ahead:
            raise ValueError(f"interval_ticks = {rate.interval_ticks}: at most {self.most_ahead}")
        old = self._flows.get(vi)
        if rate is None:
            flow = self._best_effort
        elif old is None or old is self._best_effort:
            flow = Flow(rate=rate, position=vi)
        else:
            # Its virtual time goes on, or a change of rate would forgive what the VI has had.
            old.rate, old.remainder = rate, 0
            return
        if old is not None and old is not flow:
            moved = [message for message in old.waiting if message.vi == vi]
            self._drop(old, vi)
            flow.waiting.extend(moved)
            flow.waiting = deque(sorted(flow.waiting, key=lambda one: (one.order, one.number)))
        self._flows[vi] = flow

    def close(self, vi: int) -> None:
        """Forget a VI and what waits of it. One that is not open is no error."""
        flow = self._flows.pop(vi, None)
        if flow is not None:
            self._drop(flow, vi)

    def look(self, now_ticks: int) -> None:
        """Note the clock's value. A look once in the clock's range keeps it exact where no message comes."""
        self.now += (now_ticks - self.now) % (1 << self.bits)
        self._advance()

    def stamp(self, vi: int, now_ticks: int, count: int | None = None) -> int:
        """The stamp of the VI's next message, which waits from now on; `bits` bits.

        `count` is its bytes. None, where the descriptor is not known yet: those of its rate, which `correct` may
        change. Raises ValueError for a VI that is not open.
        """
        flow = self._flow(vi)
        self.look(now_ticks)
        order, start = self._stamp(vi, flow, flow.rate.message_bytes if count is None else count)
        flow.waiting.append(Message(vi=vi, order=order, start=start, number=self._count))
        self._count += 1
        return order % (1 << self.bits)

    def correct(self, vi: int, count: int) -> None:
        """Say that a message of the VI, stamped without its bytes, has `count` of them.

        Its stamp stays. The VI's next messages pay the difference.
        """
        flow = self._flow(vi)
        self._correct(flow, count - flow.rate.message_bytes)

    def choose(self, now_ticks: int) -> int | None:
        """The VI whose next message is to go first now; None if none waits."""
        self.look(now_ticks)
        found = min(self._eligible(), key=lambda one: (one.order, one.number), default=None)
        return None if found is None else found.vi

    def served(self, vi: int, now_ticks: int) -> None:
        """Say that the VI's oldest message goes on, and waits no more. Raises ValueError if none waits."""
        flow = self._flow(vi)
        message = next((one for one in flow.waiting if one.vi == vi), None)
        if message is None:
            raise ValueError(f"vi = {vi}: no message of it waits")
        self.look(now_ticks)
        flow.waiting.remove(message)
        self._served(message)

    @property
    def waiting(self) -> int:
        """Messages that wait."""
        return sum(len(flow.waiting) for flow in self._all())

    @abstractmethod
    def wait_bound_ticks(
        self, rate: Rate | None, *, ahead_bytes: int, longest_ticks: int, flows: int
    ) -> int | None:
        """The longest that a message waits from its doorbell until it has been served; None: there is no bound.

        The server takes one message at a time. It is fast enough for all rates together, best effort's among them.

        - `rate`: the VI's; None for best effort.
        - `ahead_bytes`: bytes of its flow that wait before it, its own included.
        - `longest_ticks`: time that the server takes for the longest message of any flow.
        - `flows`: flows with a rate.
        """

    @abstractmethod
    def _stamp(self, vi: int, flow: Flow, count: int) -> tuple[int, int]:
        """Order and virtual start of a message of `count` bytes, both without wrap; the flow's state goes on."""

    def _correct(self, flow: Flow, more: int) -> None:  # noqa: B027
        """Charge the flow for `more` bytes. By default bytes are not charged."""

    def _advance(self) -> None:  # noqa: B027
        """The clock is `now`. By default nothing goes by it."""

    def _served(self, message: Message) -> None:  # noqa: B027
        """A message goes on. By default it changes nothing for the others."""

    def _eligible(self) -> Iterator[Message]:
        """The messages among which `choose` takes the smallest stamp: the first of each flow."""
        return (flow.waiting[0] for flow in self._all() if flow.waiting)

    def _all(self) -> list[Flow]:
        own = [flow for flow in self._flows.values() if flow is not self._best_effort]
        return [*own, self._best_effort]

    def _flow(self, vi: int) -> Flow:
        try:
            return self._flows[vi]
        except KeyError:
            raise ValueError(f"vi = {vi}: not open") from None

    @staticmethod
    def _drop(flow: Flow, vi: int) -> None:
        flow.waiting = deque(message for message in flow.waiting if message.vi != vi)
