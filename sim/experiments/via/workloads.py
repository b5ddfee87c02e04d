"""Messages of channels: constant rate, films, best effort, all as lists of times and bytes made before a run.

Hosts of the thesis' simulator pump messages into infinite queues, whatever the card has done. These lists are the same:
a message is due at its time. A host posts it then if its work queue has a place, else as soon as it has. Its latency
counts from the time that it was due.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Channel", "Due", "constant_rate", "film_mix", "poisson"]

Due = tuple[float, int]
"""A message: when it is due, microseconds, and its bytes."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A VI with its messages.

    - `source`, `target`: nodes.
    - `kind`: the name of its class.
    - `mb_per_s`: the bandwidth that it has negotiated; None for best effort.
    - `message_bytes`: the message size for which it has.
    - `messages`: what it sends.
    """

    source: int
    target: int
    kind: str
    mb_per_s: float | None
    message_bytes: int
    messages: Sequence[Due]

    @property
    def interval_us(self) -> float | None:
        """The negotiated time between two messages; None for best effort."""
        return None if self.mb_per_s is None else self.message_bytes / self.mb_per_s

    def spec(self) -> dict[str, object]:
        """The channel as plain JSON, for the coroutine that runs it."""
        return {
            "source": self.source,
            "target": self.target,
            "kind": self.kind,
            "mb_per_s": self.mb_per_s,
            "message_bytes": self.message_bytes,
            "messages": [[round(at, 3), size] for at, size in self.messages],
        }


def constant_rate(*, mb_per_s: float, message_bytes: int, until_us: float, rng: random.Random) -> list[Due]:
    """Messages at a constant rate. The first is due within the first interval, at random: channels are not in step."""
    interval = message_bytes / mb_per_s
    at = rng.uniform(0, interval)
    found = []
    while at < until_us:
        found.append((at, message_bytes))
        at += interval
    return found


def poisson(*, mb_per_s: float, message_bytes: int, until_us: float, rng: random.Random) -> list[Due]:
    """Messages of best effort, with a mean rate: times between them are exponential."""
    at = 0.0
    found: list[Due] = []
    while True:
        at += rng.expovariate(mb_per_s / message_bytes)
        if at >= until_us:
            return found
        found.append((at, message_bytes))


def film_mix(
    *,
    frames: Sequence[int],
    streams: int,
    mb_per_s: float,
    message_bytes: int,
    until_us: float,
    rng: random.Random,
) -> list[Due]:
    """`streams` copies of a film on one channel, each from a place of its own, that have `mb_per_s` together.

    A frame is due at a constant pace, which is the one at which the whole film has its part of the rate. Copies are not
    in step. A frame is cut into messages of at most `message_bytes`, all due at once.
    """
    pace_us = sum(frames) / len(frames) / (mb_per_s / streams)
    found = []
    for _ in range(streams):
        place, at = rng.randrange(len(frames)), rng.uniform(0, pace_us)
        while at < until_us:
            left = frames[place % len(frames)]
            while left > 0:
                size = min(left, message_bytes)
                found.append((at, size))
                left -= size
            place, at = place + 1, at + pace_us
    return sorted(found)
