"""The stages of a message, stamped: what figure 4.3 of nagar-thesis-2001 draws (4.3.2).

A trace costs no simulated time. It is bounded: the oldest messages are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["MOST_MESSAGES", "STEP_LABELS", "MessageTrace", "Span", "Stage", "Trace"]

MOST_MESSAGES = 4096
"""Messages that a trace keeps, if nothing else is said."""


class Stage(IntEnum):
    """The stages of figure 4.3, and the same ones of a message that comes in.

    A message to send waits for its doorbell to be looked at (1, 2). One that comes in waits in its buffer (1), until
    the firmware sees it (2). It has no stages 7 and 8.
    """

    WAIT = 1  # rung, or come; the firmware is at work for others
    FOUND = 2  # the firmware looks for what has been rung or has come
    PROGRAM_DESCRIPTOR = 3
    DESCRIPTOR = 4  # the descriptor comes down
    PROGRAM_DATA = 5  # it is processed, and the data's host DMA programmed
    DATA = 6  # the data go down, or up
    PROGRAM_SEND = 7
    SEND = 8  # the packets go out
    PROGRAM_STATUS = 9
    STATUS = 10  # the status goes up, and the message's buffers are freed
    PROGRAM_COMPLETION = 11
    COMPLETION = 12  # the completion queue's entry goes up


_STEPS = {
    Stage.FOUND: ("look", "poll", "doorbell", "stamp", "packet", "remote"),
    Stage.PROGRAM_DESCRIPTOR: ("record", "prefetch", "program_descriptor"),
    Stage.PROGRAM_DATA: ("process", "process_receive", "program_data", "program_up", "page", "program_probe"),
    Stage.PROGRAM_SEND: ("program_send", "send", "answer"),
    Stage.SEND: ("send_ended",),
    Stage.PROGRAM_STATUS: ("program_status", "program_tail", "tail"),
    Stage.STATUS: ("status_done",),
    Stage.PROGRAM_COMPLETION: ("program_queue",),
    Stage.COMPLETION: ("queue_done",),
}
STEP_LABELS = {step: f"{stage:02}_{step}" for stage, steps in _STEPS.items() for step in steps}
"""A step's name in waves: the stage that it belongs to goes before it. Steps of no one stage have their own name."""


@dataclass(frozen=True)
class Span:
    """A stage of a message, from cycle `begin` to cycle `end`, on processor `processor`."""

    stage: Stage
    begin: int
    end: int
    processor: int = 0


@dataclass
class MessageTrace:
    """A message: the VI's channel, whether it comes in, its number in its queue, and the stages that it has had."""

    channel: int
    receive: bool
    number: int
    spans: list[Span] = field(default_factory=list)

    def of(self, stage: Stage) -> list[Span]:
        """Its spans of a stage: none if it was spared, several if it was cut into packets or segments."""
        return [span for span in self.spans if span.stage == stage]

    def end(self, stage: Stage) -> int | None:
        """The cycle in which a stage ended for the last time; None if it was spared."""
        return max((span.end for span in self.of(stage)), default=None)


class Trace:
    """Messages in the order in which they began, at most `most`; `now` tells the present cycle."""

    def __init__(self, now: Callable[[], int], *, most: int = MOST_MESSAGES, processor: int = 0) -> None:
        self._now, self._most, self._processor = now, most, processor
        self._messages: OrderedDict[tuple[int, bool, int], MessageTrace] = OrderedDict()
        self.changed: Callable[[Stage | None], None] | None = None

    def __iter__(self) -> Iterator[MessageTrace]:
        return iter(self._messages.values())

    def __len__(self) -> int:
        return len(self._messages)

    def clear(self) -> None:
        """Forget all messages."""
        self._messages.clear()

    def message(self, channel: int, number: int, *, receive: bool) -> MessageTrace:
        """The message, begun now if it is new. Of one of the same number before, nothing is left."""
        key = channel, receive, number
        found = self._messages.get(key)
        if found is None:
            found = self._messages[key] = MessageTrace(channel, receive, number)
            if len(self._messages) > self._most:
                self._messages.popitem(last=False)
        return found

    def begin(self, channel: int, number: int, *, receive: bool) -> MessageTrace:
        """A message begins anew."""
        self._messages.pop((channel, receive, number), None)
        return self.message(channel, number, receive=receive)

    def span(self, message: MessageTrace, stage: Stage, begin: int, end: int | None = None) -> None:
        """A stage of a message is over, now or at cycle `end`."""
        message.spans.append(Span(stage, begin, self._now() if end is None else end, self._processor))
