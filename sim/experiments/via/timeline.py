"""A message's stages as lanes of a timeline: who has it when (nagar-thesis-2001 figure 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.firmware.via.trace import Stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LANES", "draw", "lanes", "overlapping", "spared", "stage_means", "timeline_rows"]

MOVES = (Stage.DESCRIPTOR, Stage.DATA, Stage.STATUS, Stage.COMPLETION)
"""Stages in which a message has the host DMA engine, or the completion unit beside it."""
LANES = (
    "bus, sender",
    "host DMA, sender",
    "processor, sender",
    "network send",
    "link",
    "network receive",
    "processor, receiver",
    "host DMA, receiver",
    "bus, receiver",
)
"""The lanes, in the order in which a message comes by them."""

Message = Mapping[str, Any]
"""A message as plain values: `number`, `channel`, `receive`, and `spans`, each a stage, its begin and its end."""
Spans = list[tuple[int, int, int]]
"""Begin and end in cycles, and the number of the message; -1 for work of no one message."""


def lanes(series: Mapping[str, Any]) -> dict[str, Spans]:
    """The lanes' spans of a run: of its messages, its processors' steps, and its processes' posts."""
    found: dict[str, Spans] = {name: [] for name in LANES}
    for message, number in _numbered(series["messages"]):
        end = "receiver" if message["receive"] else "sender"
        for stage, begin, over in message["spans"]:
            span = begin, over, number
            if stage in MOVES:
                found[f"host DMA, {end}"].append(span)
                found[f"bus, {end}"].append(span)
            elif stage == Stage.SEND:
                for name in ("network send", "link"):
                    found[name].append(span)
            elif stage == Stage.FOUND and message["receive"]:
                found["network receive"].append(span)
    for end in ("sender", "receiver"):
        found[f"processor, {end}"] += [(begin, over, -1) for begin, over in series["steps"][end]]
        found[f"bus, {end}"] += [(begin, over, -1) for begin, over in series["posts"][end]]
    return found


def _numbered(messages: Sequence[Message]) -> Iterator[tuple[Message, int]]:
    """Each message with one number at both ends: the ends see different VIs' messages in different orders.

    VIs are told by the order of their channels, and messages of a VI come in the order in which they went.
    """
    channels = {
        end: sorted({one["channel"] for one in messages if one["receive"] == end}) for end in (False, True)
    }
    before: dict[tuple[bool, int], int] = {}
    for message in messages:
        end, channel = message["receive"], message["channel"]
        turn = before.get((end, channel), 0)
        before[end, channel] = turn + 1
        yield message, turn * len(channels[end]) + channels[end].index(channel)


def timeline_rows(series: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each span of the last burst, lane by lane: `lane`, `message` (-1: none in particular), `stage` (in
    words), `begin_cycle`, `end_cycle`."""
    first, last = series["bursts"][-1]
    for lane, spans in lanes(series).items():
        for begin, over, number in spans:
            if over >= first and begin <= last:
                stage = "at work" if number < 0 else "has the message"
                yield {
                    **{"lane": lane, "message": number, "stage": stage},
                    **{"begin_cycle": begin, "end_cycle": over},
                }


def draw(axes: Axes, series: Mapping[str, Any], *, to_us: float, begin_cycle: int, end_cycle: int) -> None:
    """Draw the lanes between two cycles, messages in colours by their numbers."""
    for place, (_, spans) in enumerate(lanes(series).items()):
        for begin, over, number in spans:
            if over < begin_cycle or begin > end_cycle:
                continue
            colour = "0.6" if number < 0 else f"C{number % 10}"
            left, right = max(begin, begin_cycle), min(over, end_cycle)
            axes.broken_barh(
                [((left - begin_cycle) * to_us, max(right - left, 1) * to_us)],
                (place - 0.4, 0.8),
                facecolors=colour,
            )
    axes.set_yticks(range(len(LANES)), LANES)
    axes.invert_yaxis()
    axes.set_xlim(0, (end_cycle - begin_cycle) * to_us)


def overlapping(messages: Iterable[Message]) -> int:
    """Pairs of spans of different messages of one way of which one begins while the other is under way.

    The waits for the firmware (stages 1 and 2) are none of it: nobody has the message then.
    """
    found = 0
    for receive in (False, True):
        spans = sorted(
            (begin, over, place)
            for place, message in enumerate(messages)
            if message["receive"] is receive
            for stage, begin, over in message["spans"]
            if begin < over and stage not in (Stage.WAIT, Stage.FOUND)
        )
        for place, one in enumerate(spans):
            for other in spans[place + 1 :]:
                if other[0] >= one[1]:
                    break
                found += other[2] != one[2]
    return found


def spared(messages: Sequence[Message]) -> float:
    """The part of these messages whose descriptor had no DMA of its own: without stages 3 and 4."""
    own = [any(stage == Stage.DESCRIPTOR for stage, _, _ in message["spans"]) for message in messages]
    return 1 - sum(own) / len(own) if own else 0.0


def stage_means(messages: Sequence[Message], to_us: float) -> list[float]:
    """Mean time of each of the twelve stages, microseconds; 0 for one that no message has had."""
    return [
        sum(over - begin for one in messages for at, begin, over in one["spans"] if at == stage)
        / max(1, len(messages))
        * to_us
        for stage in Stage
    ]
