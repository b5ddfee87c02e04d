"""The metrics of nagar-thesis-2001 5.4: jitter of channels with a rate, and one-way latency by class.

"The application expects the messages to be separated by at most the negotiated inter-arrival time at the receiver end.
Else, it incurs a jitter for that message, with a jitter duration equal to the difference between the inter-receipt time
of the messages and the negotiated inter-arrival time." The jitter fraction is the mean jitter duration, over all
messages, divided by the negotiated inter-arrival time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Jitter", "Latency", "jitter", "latency", "mean_jitter", "onset"]

ONSET_THETA = 0.05
"""The sustained jitter fraction of a class from which on its jitter is meaningful. It was set before any load was run.

The thesis speaks of meaningful jitter and gives no limit. Its whole fraction is above 0 at any load: a message that
another one happens to precede is late, and the next one is early by as much. The sustained part leaves this out.
"""
LEAST_JITTER_US = 0.1
"""Jitter below this is not counted as a late message: a few cycles of the card, as receipts are seen by polling."""


@dataclass(frozen=True, kw_only=True)
class Jitter:
    """Jitter of a channel, or the mean of several.

    - `theta`: the jitter fraction.
    - `sustained`: the part of it that early messages do not make up, over the whole time. It is what all gaps together
      exceed those of the negotiated rate by, as a part of these: what a channel lacks of its rate. Where the source
      gave less than that rate, the time that it took stands in its place.
    - `late_part`: part of the messages that incur jitter.
    - `messages`: messages that were judged: all but the first.
    """

    theta: float
    sustained: float
    late_part: float
    messages: int


NO_JITTER = Jitter(theta=0.0, sustained=0.0, late_part=0.0, messages=0)


@dataclass(frozen=True, kw_only=True)
class Latency:
    """One-way latencies, in microseconds."""

    mean_us: float
    longest_us: float
    messages: int


def jitter(
    receipts_us: Sequence[float], interval_us: float, sent_us: Sequence[float] | None = None
) -> Jitter:
    """Jitter of a channel whose messages were received at `receipts_us`, in order.

    `sent_us`: the times at which the source gave them, where its rate varies. A gap of the source that is longer than
    the negotiated interval is its own, and no jitter. Raises ValueError for receipts that go back, for an interval that
    is not above 0, and for as many times of sending as there are not messages.
    """
    if interval_us <= 0:
        raise ValueError(f"interval_us = {interval_us:g}: above 0")
    if sent_us is not None and len(sent_us) != len(receipts_us):
        raise ValueError(f"{len(receipts_us)} messages received, {len(sent_us)} sent")
    gaps = [b - a for a, b in pairwise(receipts_us)]
    if any(gap < 0 for gap in gaps):
        raise ValueError("receipts go back in time")
    expected = [interval_us] * len(gaps)
    if sent_us is not None:
        expected = [max(interval_us, b - a) for a, b in pairwise(sent_us)]
    late = [max(0.0, gap - due) for gap, due in zip(gaps, expected, strict=True)]
    if not late:
        return NO_JITTER
    # Gap by gap a burst would count as late by its own silence after it. Of the whole time none of it is left out.
    whole = interval_us * len(late)
    if sent_us is not None:
        whole = max(whole, sent_us[-1] - sent_us[0])
    return Jitter(
        theta=sum(late) / len(late) / interval_us,
        sustained=max(0.0, sum(gaps) - whole) / whole,
        late_part=sum(one > LEAST_JITTER_US for one in late) / len(late),
        messages=len(late),
    )


def mean_jitter(channels: Sequence[Jitter]) -> Jitter:
    """That of a class: the mean over the messages of all its channels."""
    count = sum(one.messages for one in channels)
    if not count:
        return NO_JITTER
    return Jitter(
        theta=sum(one.theta * one.messages for one in channels) / count,
        sustained=sum(one.sustained * one.messages for one in channels) / count,
        late_part=sum(one.late_part * one.messages for one in channels) / count,
        messages=count,
    )


def latency(sent_us: Sequence[float], receipts_us: Sequence[float]) -> Latency:
    """One-way latency of messages sent and received at those times, in order: from the doorbell until the receiving
    process can see its completion. A message that has not been received when the run ends has none."""
    found = [there - here for here, there in zip(sent_us, receipts_us, strict=False)]
    if not found:
        return Latency(mean_us=0.0, longest_us=0.0, messages=0)
    return Latency(mean_us=sum(found) / len(found), longest_us=max(found), messages=len(found))


def onset(sustained: Mapping[float, Sequence[float]]) -> float | None:
    """The load at which jitter starts, of `sustained`: load, MB/s -> the sustained jitter fraction of each class.

    It is the lowest load from which on some class is above `ONSET_THETA` at every load. None: at no load that was
    measured.
    """
    found = None
    for load in sorted(sustained, reverse=True):
        if not any(one > ONSET_THETA for one in sustained[load]):
            break
        found = load
    return found
