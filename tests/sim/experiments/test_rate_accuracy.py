"""rate-accuracy without the simulator: its IDTs, its results, and claims that fail when broken."""

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.rate_accuracy import RateAccuracy

EXPERIMENT = RateAccuracy()


def test_flows_ask_together_for_the_load_and_spread_as_asked():
    parameters = parse(EXPERIMENT, ["flows=[2,100]", "loads=[0.8]", "spread=4"])
    for point, count in zip(EXPERIMENT.points(parameters, "quick"), (2, 100), strict=True):
        idts = point.spec["idts"]
        assert len(idts) == count and idts[-1] / idts[0] == pytest.approx(4, rel=0.03)
        assert 16 * sum(1 / idt for idt in idts) == pytest.approx(0.8, rel=0.02)


def test_up_to_16_flows_run_in_a_unit_of_16_and_more_in_one_of_1024():
    parameters = parse(EXPERIMENT, ["flows=[2,16,17]"])
    units = [EXPERIMENT.system(parameters, point).nic for point in EXPERIMENT.points(parameters, "quick")]
    assert [(unit.flows, unit.rate_tree) for unit in units[::2]] == [(16, False), (16, False), (1024, True)]
    assert parse(EXPERIMENT, ["structure=tree"]).system(2).nic.rate_tree


def outcome(parameters, load, rates, *, busy, packets=100):
    point = next(one for one in EXPERIMENT.points(parameters, "quick") if one.parameters["load"] == load)
    asked = [1 / idt for idt in point.spec["idts"]]
    part = min(1, 1 / (16 * sum(asked)))
    rows = [
        {"idt": idt, "packets": packets, "rate": one * part * factor}
        for idt, one, factor in zip(point.spec["idts"], asked, rates, strict=True)
    ]
    measured = {"busy_cycles": busy * point.spec["window_cycles"], "series": {"flows": rows}}
    return Outcome(
        point=point,
        results=EXPERIMENT.results(parameters, point, measured),
        seed=0,
        cycles=1,
        wall_seconds=1.0,
        series=measured["series"],
    )


@pytest.mark.parametrize(
    ("roomy", "short", "busy", "packets", "holds"),
    [
        ((1, 1), (1, 1), 1.0, 100, [True, True, True, True]),
        ((1, 1.0009), (0.9991, 1), 0.991, 100, [True, True, True, True]),
        ((1, 0.9988), (1, 1), 1.0, 100, [False, True, True, True]),
        ((1, 1), (1.0012, 1), 1.0, 100, [True, False, True, True]),
        ((1, 1), (1, 1), 0.98, 100, [True, True, False, True]),
        ((1, 1), (1, 1), 1.0, 3, [True, True, True, False]),
    ],
)
def test_claims_catch(roomy, short, busy, packets, holds):
    parameters = parse(EXPERIMENT, ["flows=[2]"])
    outcomes = [
        outcome(parameters, 0.9, roomy, busy=0.9, packets=packets),
        outcome(parameters, 1.5, short, busy=busy, packets=packets),
    ]
    assert [claim.holds for claim in EXPERIMENT.claims(parameters, outcomes)] == holds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["flows=[1]"], "flows"),
        (["flows=[1025]"], "flows"),
        (["loads=[0]"], "loads"),
        (["service_cycles=11"], "service_cycles"),
        (["flows=[1024]", "spread=64"], "the slowest flow sends a packet every"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    with pytest.raises(UserError, match=message):
        parse(EXPERIMENT, settings)
