"""Jitter, latency and the onset rule, against values made by hand."""

from __future__ import annotations

import pytest
from lanikai.sim.experiments.via.metrics import (
    NO_JITTER,
    Jitter,
    Latency,
    jitter,
    latency,
    mean_jitter,
    onset,
)


def test_jitter_by_hand():
    # Gaps 10, 14, 6, 12 for a negotiated 10: late by 0, 4, 0, 2; an early message makes up for none.
    found = jitter([5, 15, 29, 35, 47], 10)
    assert found == Jitter(
        theta=pytest.approx(6 / 4 / 10), sustained=pytest.approx(2 / 4 / 10), late_part=0.5, messages=4
    )


def test_no_jitter_in_step_or_early():
    assert jitter([0, 10, 20, 30], 10) == Jitter(theta=0, sustained=0, late_part=0, messages=3)
    assert jitter([0, 1, 2], 10).theta == 0
    assert jitter([3], 10) == jitter([], 10) == NO_JITTER


def test_a_gap_of_the_source_is_its_own():
    # The source leaves 25 between its second and third message: the third is 3 late, not 18.
    assert jitter([0, 10, 38], 10, [0, 10, 35]).theta == pytest.approx(3 / 2 / 10)
    # A source that is faster than negotiated may be slowed to its rate.
    assert jitter([0, 10, 20], 10, [0, 1, 2]).theta == 0


def test_a_polling_cycle_is_no_late_message():
    found = jitter([0, 10.05, 20.0], 10)
    assert found.late_part == 0 and found.theta == pytest.approx(0.05 / 2 / 10)


def test_a_class_is_the_mean_of_its_messages():
    a = Jitter(theta=0.3, sustained=0.06, late_part=1.0, messages=1)
    b = Jitter(theta=0.0, sustained=0.0, late_part=0.0, messages=2)
    found = mean_jitter([a, b])
    assert (found.theta, found.sustained) == (pytest.approx(0.1), pytest.approx(0.02))
    assert found.late_part == pytest.approx(1 / 3) and found.messages == 3
    assert mean_jitter([]).messages == 0


def test_latency_by_hand():
    # The third message was not received before the end.
    assert latency([0, 10, 20], [30, 50]) == Latency(mean_us=35, longest_us=40, messages=2)
    assert latency([0], []) == Latency(mean_us=0, longest_us=0, messages=0)


def test_a_late_message_and_an_early_one_are_no_sustained_jitter():
    # 4 late, then 4 early: half the gaps are late, none of the rate is lacking.
    found = jitter([0, 14, 20, 34, 40], 10)
    assert found.theta == pytest.approx(0.2) and found.sustained == 0
    # A channel that has five sixths of its rate.
    assert jitter([12.0 * number for number in range(9)], 10).sustained == pytest.approx(0.2)


def test_bursts_do_not_hide_what_a_channel_lacks():
    sent = [0, 0, 0, 30, 30, 30]
    # At the negotiated rate; then at five sevenths of it, where no gap by itself exceeds the source's but by 4.
    assert jitter([10.0 * number for number in range(6)], 10, sent).sustained == 0
    assert jitter([14.0 * number for number in range(6)], 10, sent).sustained == pytest.approx(0.4)
    # A source that gives half of its rate lacks nothing, if its messages come as it gave them.
    assert jitter([3, 23, 43], 10, [0, 20, 40]).sustained == 0
    assert jitter([3, 23, 53], 10, [0, 20, 40]).sustained == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("sustained", "load"),
    [
        ({40: [0.0, 0.04], 60: [0.04, 0.0], 80: [0.04, 0.06], 100: [0.5, 0.9]}, 80),
        # One load above the line between two below it is no onset; a class that a load lacks is none either.
        ({40: [], 60: [0.2], 80: [0.01], 100: [0.3]}, 100),
        ({40: [0.05], 60: [0.05]}, None),
        ({}, None),
    ],
)
def test_onset_by_hand(sustained, load):
    assert onset(sustained) == load


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"^interval_us = 0: above 0$"):
        jitter([1], 0)
    with pytest.raises(ValueError, match=r"^2 messages received, 1 sent$"):
        jitter([1, 2], 1, [0])
    with pytest.raises(ValueError, match=r"^receipts go back in time$"):
        jitter([2, 1], 1)
