"""The base of the flow experiments, on one that is made from nothing else: `support.sim.toy_flows`."""

import asyncio
import inspect

import pytest
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.measure import flows_experiment
from lanikai.sim.experiments.measure.flows_experiment import FlowsExperiment, flows_of, published_setting
from lanikai.sim.experiments.measure.gm_flows import Flow
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.inside.session import load_coroutine
from matplotlib.figure import Figure
from support.sim.toy_flows import ToyFlows

TOY = ToyFlows()
SEVEN = {
    "fair-queueing",
    "idt-sweep",
    "incoming-rate",
    "mpi-idt",
    "share-bidir",
    "share-receiver",
    "share-senders",
}


def test_a_point_holds_its_flows_and_its_window():
    """Flows go through JSON and come back; what is published has the tolerance of its name."""
    (point,) = TOY.points(parse(TOY, ["idt_ticks=300"]), "quick")
    assert flows_of(point.spec) == [
        Flow(source=0, target=node, message_bytes=4096, idt_ticks=300) for node in (1, 2)
    ]
    assert {name: point.spec[name] for name in point.spec if name != "flows"} == {
        "warm_up_packets": 8,
        "window_packets": 8,
    }
    assert point.tolerance == {"share": 0.01} and point.parameters == {"idt_ticks": 300}
    assert TOY.cluster(parse(TOY, [])).nodes == 4


def test_a_published_result_without_a_tolerance_is_refused():
    with pytest.raises(ValueError, match=r"^toy-flows: no tolerance for the published latency$"):
        TOY.point("a", {}, flows=[], window={}, published={"share": [1.0], "latency": 3})


@pytest.mark.parametrize("settings", [{"window_packets": 8}, {"window_cycles": 5}], ids=["rounds", "time"])
def test_the_window_says_what_measures(settings, monkeypatch):
    """Rounds of packets or a stretch of time, with the flows of the point."""
    called = []

    def stand_in(kind):
        async def measured(cluster, *given):
            called.append((kind, [one for one in given if isinstance(one, list)][-1]))
            return {}

        return measured

    monkeypatch.setattr(flows_experiment, "start_gm", lambda cluster: ())
    for kind in ("rounds", "window"):
        monkeypatch.setattr(flows_experiment, f"measure_{kind}", stand_in(kind))
    flow = {"source": 0, "target": 1, "message_bytes": 5}
    asyncio.run(load_coroutine(TOY.entry)(None, {"flows": [flow], **settings}))
    assert called == [("rounds" if "window_packets" in settings else "window", [Flow(**flow)])]


def judged(*payload_bytes):
    parameters = parse(TOY, [])
    (point,) = TOY.points(parameters, "quick")
    measured = {"payload_bytes": list(payload_bytes), "window_cycles": 1000, "clock_hz": 1_000_000}
    results = TOY.results(parameters, point, measured)
    outcome = Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0)
    return outcome, [claim.holds for claim in TOY.claims(parameters, [outcome])]


def test_results_are_bandwidths_and_shares():
    """4096 bytes in a millisecond are 4.096 MB/s; a fault shows in the verdict and in the claim."""
    outcome, claims = judged(4096, 4096)
    assert outcome.results == {"bandwidth_mb_per_s": [4.096, 4.096], "share": [0.5, 0.5]}
    assert outcome.within and claims == [True]
    outcome, claims = judged(4096, 12288)
    assert outcome.results["share"] == [0.25, 0.75] and outcome.within is False and claims == [False]


def test_the_plot_has_a_group_of_bars_a_point():
    figure = Figure()
    TOY.plot(None, [judged(4096, 4096)[0]], figure)
    (axes,) = figure.axes
    assert (axes.get_title(), axes.get_xlabel()) == ("Two equal flows", "IDT (ticks)")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["200, 200"] and len(axes.patches) == 2


def test_a_setting_is_looked_up_among_the_published_ones():
    table = {"idt_over_T": [[2.0, 2.0], [2.0, 4.0]], "achieved_mb_per_s": [[40, 40], [50, 25]]}
    found = published_setting(table, [2.0, 4.0])
    assert found["bandwidth_mb_per_s"] == [50, 25] and found["share"] == pytest.approx([2 / 3, 1 / 3])
    assert published_setting(table, [4.0, 2.0]) is None


@pytest.mark.parametrize("name", sorted(SEVEN))
def test_the_flow_experiments_are_made_from_it(name):
    """Each declares its points, and takes the cluster, the making of a point and the flows from the base."""
    experiment = EXPERIMENTS[name]
    assert isinstance(experiment, FlowsExperiment)
    assert "point" not in vars(type(experiment)) and inspect.iscoroutinefunction(
        load_coroutine(experiment.entry)
    )
    for point in experiment.points(parse(experiment, []), "quick"):
        assert flows_of(point.spec)
