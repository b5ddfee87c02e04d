"""Points that run with several seeds: means and intervals."""

from __future__ import annotations

import random

import pytest
from lanikai.sim.experiments.framework.base import Claim, Outcome, Point
from lanikai.sim.experiments.framework.repetitions import average, half_width, judged
from lanikai.sim.experiments.framework.results import rows


def outcome(seed, **results):
    point = Point(label="a", parameters={"load": 1}, spec={})
    return Outcome(point=point, results=results, seed=seed, cycles=10, wall_seconds=0.5)


def test_one_run_is_itself():
    one = outcome(1, x=2.0)
    assert average([one]) is one


def test_means_and_intervals():
    found = average(
        [
            outcome(1, x=1.0, flows=[1.0, 5], bad=False, late=None, name="a", other="b"),
            outcome(2, x=3.0, flows=[2.0, 5], bad=True, late=7, name="a", other="c"),
        ]
    )
    assert found.results == {
        "x": 2.0,
        "flows": [1.5, 5],
        "bad": True,
        "late": None,
        "name": "a",
        "other": None,
    }
    # Two values 2 apart: standard deviation sqrt 2, over sqrt 2, times 12.706.
    assert found.intervals["x"] == pytest.approx(12.706)
    assert found.intervals["flows"] == [pytest.approx(6.353), 0.0]
    assert found.intervals["bad"] is None and found.intervals["late"] is None
    assert (found.seed, found.cycles, found.wall_seconds) == (1, 20, 1.0)
    assert [one["seed"] for one in found.repetitions] == [1, 2]
    assert [row["interval_flows"] for row in rows([found], ["flows"])] == found.intervals["flows"]


@pytest.mark.parametrize("count", [2, 5, 10, 31, 60])
def test_an_interval_holds_the_mean_as_often_as_it_says(count):
    draw = random.Random(4)
    held = 0
    for _ in range(4000):
        values = [draw.gauss(5, 2) for _ in range(count)]
        held += abs(sum(values) / count - 5) <= half_width(values)
    # 95%, within 4 standard deviations of 4000 draws.
    assert abs(held / 4000 - 0.95) < 0.014


def test_a_claim_holds_with_every_seed_or_not_at_all():
    """A seed that breaks it is not hidden by a mean. A seed with which it is not judged says nothing."""
    yes, no = Claim(text="a", holds=True), Claim(text="a: 3%", holds=False)
    silent = Claim.unjudged("a", "nothing arrived")
    assert judged([[yes], [yes]]) == [yes]
    assert judged([[silent], [yes]]) == [yes] and judged([[silent], [silent]]) == [silent]
    assert judged([[yes], [no], [silent]]) == [Claim(text="a: 3% (fails with 1 of 3 seeds)", holds=False)]
    assert judged([[no]]) == [no]
