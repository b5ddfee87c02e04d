"""Messages of channels: constant rate, films, best effort, all as lists of times and bytes made before a run.

Hosts of the thesis' simulator pump messages into infinite queues, whatever the card has done. These lists are the same:
a message is due at its time. A host posts it then if its work queue has a place, else as soon as it has. Its latency
counts from the time that it was due.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = [
    "Channel",
    "Due",
    "Traffic",
    "constant_rate",
    "film_mix",
    "messages",
    "poisson",
]

Due = tuple[float, int]
"""A message: when it is due, microseconds, and its bytes."""
Traffic = Literal["constant", "films", "poisson", "greedy"]
"""Kinds of sources: `greedy` has its next message due every `GREEDY_US`, however fast the card is."""
GREEDY_US = 4.0


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A VI that sends one way.

    - `source`, `target`: nodes.
    - `kind`: the name of its class.
    - `mb_per_s`: the bandwidth that it has negotiated; None for best effort.
    - `message_bytes`: bytes of each message.
    - `traffic`: its source.
    - `sends_mb_per_s`: the rate of its source.
    - `streams`: films on it.
    - `begins_us`: its source is silent before.
    - `hurries_until_us`: until then its source, of constant rate, sends at twice its rate.
    """

    source: int
    target: int
    kind: str
    mb_per_s: float | None
    message_bytes: int
    traffic: Traffic
    sends_mb_per_s: float
    streams: int = 0
    begins_us: float = 0.0
    hurries_until_us: float = 0.0

    @property
    def interval_us(self) -> float | None:
        """The negotiated time between two messages; None for best effort."""
        return None if self.mb_per_s is None else self.message_bytes / self.mb_per_s

    def spec(self) -> dict[str, Any]:
        """The channel as plain JSON, for the coroutine that runs it."""
        return asdict(self)


def messages(
    channel: Channel, *, until_us: float, rng: random.Random, frames: Sequence[int] = ()
) -> list[Due]:
    """The messages of a channel that are due before `until_us`. `frames`: bytes of a film's frames."""
    span_us = until_us - channel.begins_us
    shared: Mapping[str, Any] = {
        "mb_per_s": channel.sends_mb_per_s,
        "message_bytes": channel.message_bytes,
        "until_us": span_us,
    }
    match channel.traffic:
        case "constant":
            found = constant_rate(**shared, rng=rng)
            # Between two messages goes another one.
            half = channel.message_bytes / channel.sends_mb_per_s / 2
            early = [(at + half, size) for at, size in found if at < channel.hurries_until_us]
            found = sorted(found + early)
        case "poisson":
            found = poisson(**shared, rng=rng)
        case "films":
            found = film_mix(**shared, frames=frames, streams=channel.streams, rng=rng)
        case "greedy":
            found = [
                (GREEDY_US * number, channel.message_bytes) for number in range(int(span_us / GREEDY_US))
            ]
    return [(at + channel.begins_us, size) for at, size in found]


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

    A frame comes at a constant pace, which is the one at which the whole film has its part of the rate. Copies are not
    in step. The channel's frames stand one behind the other, and each `message_bytes` of them are a message, due when
    the last byte has come. A large frame ends several at once. The first message has a part from before.
    """
    pace_us = sum(frames) / len(frames) / (mb_per_s / streams)
    come = []
    for _ in range(streams):
        place, at = rng.randrange(len(frames)), rng.uniform(0, pace_us)
        while at < until_us:
            come.append((at, frames[place % len(frames)]))
            place, at = place + 1, at + pace_us
    found, have = [], rng.randrange(message_bytes)
    for at, size in sorted(come):
        have += size
        found += [(at, message_bytes)] * (have // message_bytes)
        have %= message_bytes
    return found
