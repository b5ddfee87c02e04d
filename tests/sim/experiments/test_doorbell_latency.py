"""doorbell-latency: its points, and claims that fail when broken."""

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.doorbell_latency import line
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from matplotlib.figure import Figure


def judge(polled, queue, settings=()):
    """The claims that hold, if `polled(channels)` and `queue(channels)` are the latencies."""
    experiment = find("doorbell-latency")
    parameters = parse(experiment, settings)
    outcomes = []
    for point in experiment.points(parameters, "quick"):
        answer = polled if point.parameters["doorbell"] == "polled" else queue
        measured = {
            "latency_cycles": answer(point.parameters["channels"]),
            "look_period_cycles": 8,
            "clock_hz": 33_000_000,
        }
        results = experiment.results(parameters, point, measured)
        outcomes.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert figure.axes
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


def linear(channels):
    return [20, 20 + 8 * channels]


@pytest.mark.parametrize(
    ("polled", "queue", "holds"),
    [
        (linear, lambda n: [17, 17], [True, True, True]),
        (linear, lambda n: [17, 18], [False, True, True]),
        (linear, lambda n: [17 + (n > 500)] * 2, [False, True, True]),
        (lambda n: [20 + 9 * n], lambda n: [17], [True, False, True]),
        (lambda n: [20 + n * n / 260], lambda n: [17], [True, True, False]),
    ],
)
def test_claims(polled, queue, holds):
    assert judge(polled, queue) == holds


def test_a_line_through_points():
    assert line([(0, 1), (1, 3), (2, 5)]) == (2, 1, 0)
    assert line([(0, 0), (1, 3), (2, 0)]) == (0, 1, 2)
    assert line([(4, 7), (4, 7)]) == (0, 7, 0)


def test_points_share_a_build_of_each_kind():
    experiment = find("doorbell-latency")
    parameters = parse(experiment, ("channels=[2,3]",))
    points = experiment.points(parameters, "full")
    assert [point.parameters["channels"] for point in points] == [2, 3, 2, 3]
    assert len({experiment.system(parameters, point) for point in points}) == 2


def test_channels_are_checked():
    with pytest.raises(UserError, match="channels"):
        parse(find("doorbell-latency"), ("channels=[1,2000]",))
