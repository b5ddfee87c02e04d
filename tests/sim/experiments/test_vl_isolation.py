"""vl-isolation without the simulator: its settings, and claims that fail when broken."""

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.vl_isolation import VlIsolation

EXPERIMENT = VlIsolation()


def test_settings_differ_in_classes_and_vls():
    parameters = parse(EXPERIMENT, ["vl_arbiter=fcfs", "vls=16"])
    alone, own, same = (point.spec["classes"] for point in EXPERIMENT.points(parameters, "quick"))
    assert len(alone) == 1 and alone[0] == own[0] == same[0]
    assert [(one["vl_first"], one["vl_count"]) for one in own] == [(0, 7), (7, 7)]
    assert [(one["vl_first"], one["vl_count"]) for one in same] == [(0, 7), (0, 7)]
    assert (
        EXPERIMENT.system(parameters, EXPERIMENT.points(parameters, "quick")[0]).network.router.vl_arbiter
        == "fcfs"
    )


def outcomes(accepted, saturated):
    """Outcomes of all settings. `accepted` and `saturated` are those of the well-behaved class on its own VLs and on
    the flood's."""
    parameters = parse(EXPERIMENT, ["vl_arbiter=fcfs"])
    found = []
    for point, got, late in zip(
        EXPERIMENT.points(parameters, "quick"), [0.1, *accepted], [False, *saturated], strict=True
    ):
        results = {
            "class_offered_flits_per_node_per_cycle": [0.1, 0.6],
            "class_accepted_flits_per_node_per_cycle": [got, 0.2],
            "class_saturated": [late, True],
        }
        found.append(Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0))
    return [claim.holds for claim in EXPERIMENT.claims(parameters, found)]


def test_claims():
    assert outcomes([0.099, 0.07], [False, True]) == [True, True]
    assert outcomes([0.08, 0.07], [False, True]) == [False, True]
    assert outcomes([0.1, 0.07], [True, True]) == [False, True]
    assert outcomes([0.1, 0.1], [False, False]) == [True, False]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("flood=0.1", "flood = 0.1: too little to flood node 0"),
        ("vl_arbiter=best", "vl_arbiter = 'best': one of deficit, fcfs"),
        ("vl_arbiter=fcfs,fcfs", "one is named twice"),
    ],
)
def test_bad_parameters_are_named(setting, text):
    with pytest.raises(UserError) as caught:
        parse(EXPERIMENT, [setting])
    assert text in str(caught.value)
