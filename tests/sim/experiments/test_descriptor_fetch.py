"""descriptor-fetch: its points, and claims that fail when broken."""

import pytest
from lanikai.hdl.config import NicConfig
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.descriptor_fetch import NIC
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from matplotlib.figure import Figure

GOOD = {
    "fetched": {"first": 700, "each": 600, "starts": 2},
    "tailgated": {"first": 700, "each": 550, "starts": 1.5},
    "shadow": {"first": 600, "each": 500, "starts": 1},
}
"""Cycles from posting a burst to its first message, and to each one behind it."""


def judge(changes=(), settings=(), alone=0, content="bytes"):
    """The claims that hold, with `changes` (way, what, value) of the good measurements. `alone`: cycles more of a
    tailgated message alone."""
    experiment = find("descriptor-fetch")
    parameters = parse(experiment, settings)
    times = {way: dict(values) for way, values in GOOD.items()}
    for way, what, value in changes:
        times[way][what] = value
    outcomes = []
    for point in experiment.points(parameters, "quick"):
        way, burst = point.parameters["way"], point.parameters["burst"]
        last = times[way]["first"] + times[way]["each"] * (burst - 1)
        last += alone * (way == "tailgated" and burst == 1)
        measured = {
            "first_cycles": [times[way]["first"]] * 4,
            "last_cycles": [last] * 4,
            "starts": times[way]["starts"] * 5 * burst,
            "sha256": "bytes" if way == "fetched" else content,
        }
        results = experiment.results(parameters, point, measured)
        assert results["dma_starts_a_message"] == times[way]["starts"]
        assert results["latency_first_us"] == pytest.approx(times[way]["first"] / 66)
        outcomes.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert figure.axes
    return [claim.holds for claim in experiment.claims(parameters, outcomes)]


def test_claims():
    assert judge() == [True] * 4
    assert judge(content="others") == [False, True, True, True]
    assert judge([("shadow", "first", 700)]) == [True, False, True, True]
    assert judge([("tailgated", "each", 600)]) == [True, True, False, True]
    assert judge(alone=1) == [True, True, True, False]
    assert judge(settings=("bursts=[1]",)) == [True, True, None, True]
    assert judge(settings=("bursts=[2]",)) == [True, True, True, None]


def test_points_share_one_build_and_parameters_are_checked():
    experiment = find("descriptor-fetch")
    parameters = parse(experiment, ())
    points = experiment.points(parameters, "full")
    assert len(points) == 27 and len({experiment.system(parameters, point) for point in points}) == 1
    assert isinstance(NIC, NicConfig)
    for wrong in ("message_bytes=[6]", "message_bytes=[8192]", "bursts=[17]", "bursts=[]"):
        with pytest.raises(UserError):
            parse(experiment, (wrong,))
