"""`weights` of network-load and vl-isolation on the RTL: a saturated link is shared by them, and evenly without them.

The controls run the same models, and write no weights: what the tests find does not come from the traffic.
"""

from __future__ import annotations

import pytest
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.measure.traffic_results import ACCEPTED
from lanikai.sim.experiments.registry import find
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("traffic network")
WITHIN = 0.02
"""In parts of the link: a packet more or less in the window is 0.1%, and a round of the table is 4 or 5 flits."""
SHORT = {"warmup_cycles": 2_000, "window_cycles": 10_000, "limit_cycles": 1_000}


def measured(name, settings, label, folder, **changes):
    """Results of the point of an experiment whose label ends so."""
    experiment = find(name)
    parameters = parse(experiment, settings)
    (point,) = [one for one in experiment.points(parameters, "quick") if one.label.endswith(label)]
    system = experiment.system(parameters, point)
    entry, spec = system.job(experiment.entry, {**point.spec, **SHORT, **changes})
    return experiment.results(
        parameters, point, run(system.build(), entry, spec, out_dir=folder, seed=1).value
    )


def first_share(folder, weights, **changes):
    """The part of node 0's link that class 0 has, where two nodes send it twice as much as it takes."""
    settings = ["network=router3", "allocator=separable", "vls=2", "flit_bits=32", "packet_flits=10"]
    settings += ["pattern=table", "destinations=[0,0,0]", "loads=[1.0]", "class_shares=[0.5,0.5]"]
    settings += ["vl_arbiter=table_fast", f"weights={weights}"]
    found = measured("network-load", settings, "", folder, **changes)
    assert found["class_saturated"] == [True, True]
    first, second = (2 * one for one in found[f"class_{ACCEPTED}"])
    assert first + second == pytest.approx(1, abs=WITHIN)
    return first / (first + second)


@pytest.mark.parametrize(("weights", "share"), [([3, 1], 3 / 4), ([1, 4], 1 / 5)])
def test_a_saturated_link_is_shared_by_the_weights_of_classes(weights, share, tmp_path):
    assert first_share(tmp_path, weights) == pytest.approx(share, abs=WITHIN)


def test_it_is_shared_evenly_where_no_weights_are_written(tmp_path):
    assert first_share(tmp_path, [3, 1], table=[]) == pytest.approx(1 / 2, abs=WITHIN)


@pytest.mark.parametrize(
    ("weights", "changes", "saturated"), [([1, 255], {}, True), ([255, 1], {}, False), ([1, 255], {"table": []}, False)]
)  # fmt: skip
def test_weights_decide_whether_a_class_is_left_alone_by_a_flood(weights, changes, saturated, tmp_path):
    """The class that behaves asks 1/10 of node 0's link. By the first weights it has 1/256 of it."""
    settings = ["network=router3", "vl_arbiter=table_fast", "vls=2", "packet_flits=10", f"weights={weights}"]
    found = measured("vl-isolation", settings, "own VLs", tmp_path, **changes)
    assert found["class_saturated"] == [saturated, True]
