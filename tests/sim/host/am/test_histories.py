"""Random histories: endpoints are made, paged, freed and killed while messages of all kinds go between them."""

from __future__ import annotations

import random

import pytest
from support.sim.am_histories import History
from support.sim.am_nodes import AmNodes
from support.sim.am_processes import run


def play(make, seed: int, messages: int, *, deaths: int, limit: int, **net) -> History:
    print(f"seed {seed}")
    made = make(3, seed=seed, memory_bytes=1 << 21, endpoints=64, **net)
    history = History(made, seed, messages, deaths=deaths)
    run(made, history.run, limit=limit)
    history.check()
    return history


@pytest.mark.parametrize("seed", [1])
def test_each_message_is_delivered_once_or_returned_once_and_all_credits_come_home(make, seed):
    history = play(make, seed, 160, deaths=3, limit=30_000_000)
    assert history.killed + history.freed == 3
    assert len(history.outcome.handled) > 40 and history.outcome.back


@pytest.mark.full
@pytest.mark.parametrize("policy", ["lru", "random", "clock"])
def test_many_messages_are_delivered_once_or_returned_once(make, policy):
    """10^5 messages in all: half of them on stand-in cards, half on cards with the firmware."""
    seed = random.SystemRandom().randrange(1 << 30)
    history = play(make, seed, 16_700, deaths=60, limit=3_000_000_000, policy=policy)
    assert len(history.outcome.handled) > 4_000


def test_the_same_on_a_network_that_loses_doubles_and_delays_packets():
    rng = random.Random(5)
    history = play(
        AmNodes,
        5,
        100,
        deaths=2,
        limit=60_000_000,
        drop=lambda header: rng.random() < 0.03,
        fate=lambda header: [0] if rng.random() < 0.9 else [rng.randrange(3000), rng.randrange(3000)],
    )
    assert len(history.outcome.handled) > 30
