"""The choice of the endpoint that leaves its frame."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.host.am.config import AmHostConfig
from lanikai.sim.host.am.policies import POLICIES, find_policy


@dataclass
class Page:
    frame: int
    used_cycle: int = 0
    referenced: bool = False


def test_the_least_recently_used_goes():
    pages = [Page(1, 30), Page(2, 10), Page(3, 20), Page(4, 10)]
    assert find_policy("lru")(1).victim(pages) is pages[1]


def test_the_clock_gives_a_second_chance_and_goes_round():
    pages = [Page(1, referenced=True), Page(2), Page(3, referenced=True), Page(4)]
    clock = find_policy("clock")(1)
    assert clock.victim(pages) is pages[1] and not pages[0].referenced
    pages[1].referenced = True
    assert clock.victim(pages) is pages[3]
    assert clock.victim(pages) is pages[0]
    for page in pages:
        page.referenced = True
    assert clock.victim(pages) is pages[1], "all are used: one round clears the bits"


def test_random_takes_each_as_often_and_the_same_with_the_same_seed():
    pages = [Page(frame) for frame in range(1, 5)]
    drawn = [[find_policy("random")(seed).victim(pages).frame for _ in range(1)] for seed in (3, 3)]
    assert drawn[0] == drawn[1]
    policy = find_policy("random")(3)
    counts = Counter(policy.victim(pages).frame for _ in range(4000))
    assert all(900 < counts[frame] < 1100 for frame in range(1, 5))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_takes_one_of_those_that_may_leave(name):
    policy = find_policy(name)(2)
    for frames in ((1, 2, 3), (2,), (1, 3), (3,), (1, 2)):
        pages = [Page(frame, 5, True) for frame in frames]
        assert policy.victim(pages) in pages


def test_an_unknown_policy_is_refused_in_one_line():
    with pytest.raises(ConfigError, match="unknown policy 'fifo'; valid policies: clock, lru, random"):
        AmHostConfig(policy="fifo")
