"""Deadlines of frames: the rule, what counts, and sums."""

from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.sim.experiments.qos.deadlines import Deadlines, DeadlinesMissed, total


def test_a_missed_deadline_moves_those_behind_it():
    stream = Deadlines(interval_cycles=100)
    # Deadlines: none, 150, 250 (missed by 20: from 270), 370, 470 (in time, however early), 570 (missed by 1).
    assert [stream.arrive(at) for at in (50, 150, 270, 370, 371, 571)] == [0, 0, 20, 0, 0, 1]
    assert stream.result == DeadlinesMissed(frames=6, missed=2, late_cycles=21)
    assert stream.deadline == 671
    assert stream.result.probability == 2 / 6 and stream.result.mean_late_cycles == 10.5


def test_frames_of_the_warm_up_move_deadlines_and_do_not_count():
    stream = Deadlines(interval_cycles=100, measure_from=200)
    assert [stream.arrive(at) for at in (0, 150, 240, 351)] == [0, 50, 0, 1]
    assert stream.result == DeadlinesMissed(frames=2, missed=1, late_cycles=1)


@given(st.lists(st.integers(0, 300), max_size=30))
def test_a_frame_is_late_only_if_its_gap_is_longer_than_all_slack(gaps):
    """A second count: the deadline is the latest arrival, each moved on by an interval a frame."""
    stream, times, now = Deadlines(interval_cycles=100), [], 0
    for gap in gaps:
        now += gap
        due = max((at + 100 * (len(times) - k) for k, at in enumerate(times)), default=None)
        assert stream.arrive(now) == (0 if due is None else max(0, now - due))
        times.append(now)


@pytest.mark.parametrize("before", [1, 19])
def test_frame_n_is_late_with_a_chance_of_one_in_n_whatever_the_delays_are(before):
    """Delays alike in distribution: a frame is late if it took longer than all before it. So DMP is of the run's length
    (docs/admission.md)."""
    chance = Random(1)
    streams = [Deadlines(interval_cycles=100, measure_from=100 * before) for _ in range(4000)]
    for stream in streams:
        for n in range(before + 6):
            stream.arrive(100 * n + chance.random() * chance.choice((1, 50)))
    expected = fmean(1 / n for n in range(before + 1, before + 7))
    # 24,000 frames: a standard deviation of some 2%.
    assert total([stream.result for stream in streams]).probability == pytest.approx(expected, rel=0.08)


def test_results_add_up_and_an_empty_one_has_no_probability():
    one, two = (
        DeadlinesMissed(frames=9, missed=1, late_cycles=7),
        DeadlinesMissed(frames=1, missed=1, late_cycles=3),
    )
    assert total([one, two]) == DeadlinesMissed(frames=10, missed=2, late_cycles=10)
    assert total([]).probability is None and total([]).mean_late_cycles is None


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match=r"^Deadlines: interval_cycles = 0: above 0$"):
        Deadlines(interval_cycles=0)
    stream = Deadlines(interval_cycles=1)
    stream.arrive(5)
    with pytest.raises(
        ValueError, match=r"^a frame arrives in cycle 4, before the one before it \(cycle 5\)$"
    ):
        stream.arrive(4)
