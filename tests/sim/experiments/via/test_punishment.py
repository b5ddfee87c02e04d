"""The claim of via-schedulers on idle bandwidth, for the schedulers alone: before a server of a message at a time."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from lanikai.firmware.via.schedulers.base import Rate
from lanikai.firmware.via.schedulers.registry import find_scheduler
from lanikai.firmware.virtual_clock import VirtualClock
from lanikai.sim.experiments.via.schedulers import (
    GREED,
    HURRY_US,
    IDLE,
    KEEPS,
    MESSAGE_BYTES,
    ViaSchedulers,
    catching_up_us,
)
from lanikai.sim.experiments.via.workloads import Channel, messages
from support.firmware.fluid_server import Arrival, serve
from support.system import via_mutants

TICKS_PER_US = 2
SERVER_MB_PER_S = 90
"""Less than the 120 MB/s that all channels send, so that some message always waits."""


def longest_wait_us(order: str) -> float:
    """The longest time from a message's due time to its service, of those that the claim is about."""
    experiment = ViaSchedulers()
    point = next(
        one
        for one in experiment.points(experiment.Parameters(), "quick")
        if one.parameters["setup"] == IDLE and one.parameters["order"] == order
    )
    scheduler = find_scheduler(order)(vis=8)
    rng, arrivals = random.Random(1), list[Arrival]()
    for vi, one in enumerate(point.spec["channels"]):
        channel = Channel(**one)
        assert channel.interval_us is not None and (vi == 0) == (channel.kind == KEEPS)
        ticks = int(channel.interval_us * TICKS_PER_US)
        scheduler.open(vi, Rate(message_bytes=MESSAGE_BYTES, interval_ticks=ticks))
        due = messages(channel, until_us=point.spec["until_us"], rng=rng)
        arrivals += [Arrival(int(at * TICKS_PER_US), vi, size) for at, size in due]
    services = serve(scheduler, arrivals, bytes_per_tick=Fraction(SERVER_MB_PER_S, TICKS_PER_US))
    waits = [
        one.begin - one.arrival.at
        for one in services
        if one.arrival.vi == 0 and HURRY_US <= one.arrival.at / TICKS_PER_US < HURRY_US * (1 + 1 / GREED)
    ]
    assert len(waits) > 10
    return float(max(waits)) / TICKS_PER_US


@pytest.mark.parametrize("order", ["virtual_clock", "wf2q", "deficit"])
def test_only_virtualclock_lets_a_channel_wait_for_the_bandwidth_that_it_has_used(order: str) -> None:
    wait_us = longest_wait_us(order)
    assert (wait_us >= catching_up_us(HURRY_US)) == (order == "virtual_clock"), wait_us


def test_a_virtualclock_that_forgets_punishes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VirtualClock, "stamp", VirtualClock.stamp)
    via_mutants.virtualclock_forgets({})
    assert longest_wait_us("virtual_clock") < catching_up_us(HURRY_US)
