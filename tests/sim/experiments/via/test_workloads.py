"""Workloads have the rates that they say, and nothing is in step."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from lanikai.sim.experiments.via.workloads import (
    Channel,
    constant_rate,
    film_mix,
    messages,
    poisson,
)


def rate(found, until_us):
    return sum(size for _, size in found) / until_us


def test_constant_rate():
    found = constant_rate(mb_per_s=32, message_bytes=4096, until_us=1280, rng=random.Random(1))
    assert len(found) == 10 and 0 <= found[0][0] < 128
    assert all(b[0] - a[0] == pytest.approx(128) and a[1] == 4096 for a, b in pairwise(found))
    assert found != constant_rate(mb_per_s=32, message_bytes=4096, until_us=1280, rng=random.Random(2))


def test_best_effort_has_its_mean_rate_and_bursts():
    until = 4e6
    found = poisson(mb_per_s=33, message_bytes=4096, until_us=until, rng=random.Random(3))
    assert rate(found, until) == pytest.approx(33, rel=0.02)
    gaps = [b[0] - a[0] for a, b in pairwise(found)]
    mean = sum(gaps) / len(gaps)
    # Exponential: the mean is the standard deviation.
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.05)


def test_films_have_their_rate_together_and_share_messages():
    frames = [1000, 9000, 500, 1500]
    until = 1e6
    found = film_mix(
        frames=frames, streams=20, mb_per_s=0.95, message_bytes=4096, until_us=until, rng=random.Random(4)
    )
    assert rate(found, until) == pytest.approx(0.95, rel=0.03)
    assert {size for _, size in found} == {4096} and [at for at, _ in found] == sorted(at for at, _ in found)
    # A frame of 9000 ends two messages at once, or three; the others one at most.
    at_once = Counter(at for at, _ in found)
    assert set(at_once.values()) == {1, 2, 3}
    # Most messages have parts of several frames: there are more frames than messages.
    one = film_mix(
        frames=[1024], streams=1, mb_per_s=1.024, message_bytes=4096, until_us=20_500, rng=random.Random(4)
    )
    assert len(one) in (5, 6) and {round(b[0] - a[0]) for a, b in pairwise(one)} == {4000}


def test_a_channel_s_messages():
    channel = Channel(
        source=0,
        target=2,
        kind="2 MB/s",
        mb_per_s=2.0,
        message_bytes=4096,
        traffic="constant",
        sends_mb_per_s=4.0,
        begins_us=500,
    )
    assert channel.interval_us == 2048
    # It sends at twice its rate, and begins late.
    found = messages(channel, until_us=500 + 10 * 1024, rng=random.Random(5))
    assert len(found) == 10 and found[0][0] >= 500 and found[1][0] - found[0][0] == pytest.approx(1024)
    assert Channel(**channel.spec()) == channel
    other = {**channel.spec(), "mb_per_s": None, "traffic": "greedy"}
    assert len(messages(Channel(**other), until_us=900, rng=random.Random(5))) == 100
    assert Channel(**other).interval_us is None


def test_a_source_that_hurries_at_first():
    channel = Channel(
        source=0,
        target=1,
        kind="a",
        mb_per_s=4.096,
        message_bytes=4096,
        traffic="constant",
        sends_mb_per_s=4.096,
        hurries_until_us=5000,
    )
    found = messages(channel, until_us=10_000, rng=random.Random(6))
    times = [at for at, _ in found]
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == pytest.approx([500] * 10 + [1000] * (len(gaps) - 10), abs=1) or gaps == pytest.approx(
        [500] * 9 + [1000] * (len(gaps) - 9), abs=1
    )
    assert len(gaps) in (13, 14) and times[0] < 1000
