"""via-bulk: its points, averages and claims on made-up results."""

import pytest
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.registry import EXPERIMENTS

EXPERIMENT = EXPERIMENTS["via-bulk"]
PARAMETERS = EXPERIMENT.Parameters()
POINTS = EXPERIMENT.points(PARAMETERS, "quick")


def test_the_table_is_published_but_for_one_number():
    assert len(POINTS) == 12
    published = [EXPERIMENT.published_us("svia", size)["average_us"] for size in (4, 1024, 4096, 16384)]
    assert published == [8, 14, 48, 152]
    assert EXPERIMENT.published_us("qosvia", 16384) == EXPERIMENT.published_us("pvia", 64) == {}
    assert [point.published is None for point in POINTS] == [False] * 11 + [True]


def test_the_window_with_the_lowest_average_counts():
    point = POINTS[0]
    cycles = [[66 * 400, 66 * 400], [66 * 480, 66 * 480], [66 * 960, 66 * 1000], [66 * 3200, 66 * 3200]]
    found = EXPERIMENT.results(PARAMETERS, point, {"cycles": cycles, "clock_hz": 66_000_000})
    assert found["averages_us"] == pytest.approx([50, 30, 30.625, 50])
    assert (found["average_us"], found["window"], found["message_us"]) == pytest.approx((30, 4, 60))


def verdicts(change=lambda design, size: 0.0):
    made = []
    for point in POINTS:
        design, size = point.parameters["design"], point.parameters["message_bytes"]
        us = EXPERIMENT.published_us(design, size).get("average_us", 100)
        made.append(
            Outcome(
                point=point,
                results={"average_us": us + change(design, size)},
                seed=1,
                cycles=1,
                wall_seconds=0.0,
            )
        )
    return [claim.holds for claim in EXPERIMENT.claims(PARAMETERS, made)]


def test_claims_hold_of_what_was_published_and_each_can_fail():
    assert verdicts() == [True] * 3
    assert verdicts(lambda design, size: 200 * (design == "pvia" and size == 4096)) == [False, True, False]
    assert verdicts(lambda design, size: 50 * (design == "svia" and size == 4)) == [True, False, True]
    assert verdicts(lambda design, size: 7 * (design == "pvia" and size == 1024)) == [True, True, False]
