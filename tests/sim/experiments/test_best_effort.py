"""best-effort: its points, its results from measurements, and claims that fail when broken.

Tested, too, are the managers on the GM control program of plain Python cards, with flows that flood.
"""

from __future__ import annotations

import pytest
from lanikai.sim.experiments.best_effort.cases import CASES, PEAK_MB_PER_S, REST
from lanikai.sim.experiments.best_effort.experiment import _binned
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.registry import find
from matplotlib.figure import Figure

CLOCK_HZ, MTU, WINDOW = 33_000_000, 4096, 33_000_000
GOOD = {
    "one": [[PEAK_MB_PER_S, 0, 0], [38, 40, 0], [18, 40, 20], [58, 0, 20], [PEAK_MB_PER_S, 0, 0]],
    "two": [[PEAK_MB_PER_S, 0, 0], [39, 39, 0], [29, 29, 20], [39, 39, 0], [0, PEAK_MB_PER_S, 0]],
    "set_aside": [[15.3, 39, 70]],
    "max_min": [[15.3, 62.7, 70]],
    "full": [[0, 16.37, 30, 33]],
}
"""MB/s of the flows in the stages, if all goes well: those that they may have and those that they get."""


def judge(*, left: int = 0, off: int = 0, **changes: list) -> tuple[list[bool | None], list[bool]]:
    """The verdicts of points and claims with rates as in `GOOD`, except for the points in `changes`: (stage, flow,
    rate)."""
    experiment = find("best-effort")
    parameters = experiment.Parameters()
    outcomes = []
    for point in experiment.points(parameters, "quick"):
        name = point.parameters["case"]
        case = next(case for case in CASES if case.name == name)
        rates = [list(stage) for stage in GOOD[name]]
        for stage, flow, rate in changes.get(name, ()):
            rates[stage][flow] = rate
        measured = {
            "stages": [
                {
                    "name": stage.name,
                    "packets": [rate * 1e6 / MTU for rate in achieved],
                    "window_cycles": WINDOW,
                    "idt_error_ticks": [
                        off if flow.mb_per_s and may else None
                        for flow, may in zip(case.flows, allowed, strict=True)
                    ],
                    "allowed_mb_per_s": [may or (None if name != "full" else 0.0) for may in allowed],
                }
                for stage, achieved, allowed in zip(case.stages, rates, GOOD[name], strict=True)
            ],
            "counters_left": left,
            "clock_hz": CLOCK_HZ,
            "tick_cycles": 16.5,
            "mtu_bytes": MTU,
        }
        results = experiment.results(parameters, point, measured)
        series = {"bin_ticks": 1000, "packets": [[1, 2, 3]] * len(case.flows), "stage_ticks": [0.0, 900.0]}
        outcomes.append(
            Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0, series=series)
        )
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert len(figure.axes) == len(outcomes)
    return [outcome.within for outcome in outcomes], [
        claim.holds for claim in experiment.claims(parameters, outcomes)
    ]


def test_the_published_rates_pass():
    assert judge() == ([True, True, None, None, None], [True] * 8)


@pytest.mark.parametrize(
    ("changes", "points", "claims"),
    [
        # 3% of a published rate, 2% of a promise, 1% of an equal share.
        ({"one": [(1, 0, 39.2)]}, [0], [2]),
        ({"one": [(1, 1, 38.7)]}, [0], [0]),
        ({"one": [(3, 2, 20.5)]}, [], [0]),
        ({"one": [(4, 0, 83.0)]}, [], [3]),
        ({"two": [(1, 0, 39.5)]}, [], [4, 5]),
        ({"two": [(2, 0, 28.0)]}, [1], [2, 4]),
        ({"two": [(3, 0, 38.2), (3, 1, 38.2)]}, [], [5]),
        ({"two": [(4, 1, 40.0)]}, [], [2, 3]),
        ({"max_min": [(0, 1, 52.0)]}, [], [2, 7]),
        ({"max_min": [(0, 0, 14.5)]}, [], [2, 7]),
        ({"full": [(0, 1, 16.0)]}, [], [0]),
        ({"full": [(0, 3, 32.0)]}, [], [0]),
        ({"full": [(0, 0, 1.0)]}, [], [2]),
        ({"left": 1}, [], [6]),
        ({"off": 2}, [], [1]),
    ],
)
def test_a_rate_that_is_off_fails_its_point_and_claims(changes, points, claims):
    verdicts, holds = judge(**changes)
    assert [place for place, verdict in enumerate(verdicts) if verdict is False] == points
    assert [place for place, one in enumerate(holds) if not one] == claims


def test_the_published_numbers_stand_in_the_points():
    points = find("best-effort").points(find("best-effort").Parameters(), "full")
    assert points[0].published["both_mb_per_s"] == [18.0, 40.0, 20.0]
    assert points[0].published["packets_per_1000_ticks_first"] == 4.7
    assert points[1].published["none_mb_per_s"][:2] == [39.0, 39.0]
    assert points[1].published["premium_mb_per_s"] == [29.0, 29.0, 20.0]
    assert set(points[0].tolerance.values()) == {0.03}
    assert CASES[-1].flows[-1].mb_per_s == REST


def test_packets_are_counted_in_bins_of_the_clock():
    assert _binned([5, 10, 19.9, 20, 45, 99], 10, 10.0, 3) == [2, 1, 0]
