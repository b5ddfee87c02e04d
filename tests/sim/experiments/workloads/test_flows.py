"""flow-times: flows have the load and the sizes that were asked for, and alone they take what they must."""

from __future__ import annotations

import itertools
import random

import pytest
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from lanikai.sim.experiments.workloads.flows import make_flows
from lanikai.sim.inputs.flow_sizes import read_flow_sizes
from lanikai.sim.run import run

EXPERIMENT = find("flow-times")


def test_flows_are_as_many_as_the_load_needs():
    parameters = parse(EXPERIMENT, ["flows=20000"])
    sizes = read_flow_sizes(parameters.path)
    (point, _) = EXPERIMENT.points(parameters, "quick")
    link = parameters.message_network().traffic.link
    flows = make_flows(point.spec, link, 4, 0.4, random.Random(3))
    flits = sum(parameters.flits_of(size * parameters.size_scale) for *_, size in flows)
    assert flits / 4 / flows[-1][0] == pytest.approx(0.4, rel=0.03)
    assert sum(size for *_, size in flows) / len(flows) == pytest.approx(sizes.mean_bytes, rel=0.05)
    assert {flow[1] for flow in flows} == {flow[2] for flow in flows} == set(range(4))
    assert not [flow for flow in flows if flow[1] == flow[2]]
    gaps = [b[0] - a[0] for a, b in itertools.pairwise(flows)]
    mean = sum(gaps) / len(gaps)
    # Of exponential gaps the standard deviation is the mean.
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.05)


def test_alone_they_take_what_they_must_and_together_longer(tmp_path):
    path = tmp_path / "a.cdf"
    path.write_text("100 0\n2000 100")
    means = []
    for load in (0.01, 0.6):
        settings = [
            "network=router3",
            "vls=2",
            f"sizes={path}",
            "size_scale=1",
            "flows=60",
            f"loads=[{load}]",
        ]
        parameters = parse(EXPERIMENT, [*settings, "bins_bytes=[1000]"])
        (point,) = EXPERIMENT.points(parameters, "quick")
        config = EXPERIMENT.system(parameters, point)
        entry, job = config.job(EXPERIMENT.entry, point.spec)
        measured = run(config.build(), entry, job, out_dir=tmp_path, seed=1).value
        results = EXPERIMENT.results(parameters, point, measured)
        assert sum(results["bin_flows"]) == 60 and all(results["bin_flows"])
        assert results["least_slowdown"] >= 1
        means.append(results["slowdown_mean"])
    assert means[0] < 1.1 and means[1] > 1.4


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["loads=[0]"], "loads: 0: above 0 and at most 1"),
        (["bins_bytes=[5, 5]"], "bins_bytes = [5, 5]: sizes above 0, each larger than the one before"),
        (["packet_flits=4", "flit_bits=32"], "packet_flits = 4: more than the header's 4"),
        (["size_scale=1000", "flows=100000"], "packets: at most 2000000"),
        (["sizes=none.cdf"], "flow sizes 'none.cdf' cannot be read: No such file or directory"),
    ],
)
def test_wrong_settings(settings, text):
    with pytest.raises(UserError) as caught:
        parse(EXPERIMENT, settings)
    assert text in str(caught.value)
