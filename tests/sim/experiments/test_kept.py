"""Things that a run keeps and says: points before one that failed, files of the user's, nodes that send nothing."""

import json
import shlex

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.pattern import PERMUTATIONS
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.hdl.vl_arbiter.deficit_round_robin import DeficitRoundRobinVlArbiter
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.framework.backend import Measured
from lanikai.sim.experiments.framework.command import settings_of
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.run_folder import RunFolder
from lanikai.sim.experiments.framework.runner import execute
from lanikai.sim.experiments.measure.traffic_results import silent_nodes
from lanikai.sim.experiments.network_load import NetworkLoad, NetworkLoadParameters
from lanikai.sim.experiments.share_senders import ShareSenders
from lanikai.sim.experiments.vl_isolation import VlIsolationParameters
from lanikai.sim.experiments.wrr_shares import WrrSharesParameters
from lanikai.sim.input_files import keep_inputs
from support.sim.fake_backend import FakeBackend

GRAPH = {"routers": 2, "nodes": [[0, 0], [1, 0]], "links": [[[0, 1], [1, 1]]]}


class FailsAtThree(FakeBackend):
    """Fails where there are three flows: the last point of share-senders."""

    def run(self, model, job, progress) -> Measured:
        if len(job.spec["flows"]) == 3:
            raise SimulationError("nothing has moved for 100000 cycles")
        return super().run(model, job, progress)


def test_results_that_had_ended_are_kept_where_a_point_fails(tmp_path):
    experiment = ShareSenders()
    parameters = parse(experiment, [])
    points = list(experiment.points(parameters, "quick"))
    folder = RunFolder(tmp_path / "r", experiment=experiment.name, size="quick", seed=1)
    with pytest.raises(
        SimulationError, match=r"nothing has moved.*; the results of 2 of 3 points are in .*r$"
    ):
        execute(
            experiment, parameters, points=points, size="quick", seed=1, folder=folder, backend=FailsAtThree()
        )  # fmt: skip
    folder.keep()
    found = json.loads((tmp_path / "r" / "results.json").read_text())
    assert len(found["points"]) == 2 and found["claims"] == found["claims_not_judged"] == []
    (failure,) = found["failures"]
    assert failure == {"point": points[2].label, "why": "nothing has moved for 100000 cycles"}
    assert (tmp_path / "r" / "results.csv").is_file() and not (tmp_path / "r" / "plot.png").exists()


def test_a_network_of_the_users_is_kept_and_the_command_names_the_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").write_text(json.dumps(GRAPH))
    (tmp_path / "mesh2x2").write_text("no network")
    parameters = NetworkLoadParameters(network="mine.json")
    places = keep_inputs(parameters, tmp_path / "inputs")
    assert json.loads((tmp_path / "inputs" / "mine.json").read_text()) == GRAPH
    (setting,) = settings_of(parameters, places)
    wanted = parameters.system("separable").network
    (tmp_path / "mine.json").unlink()
    again = parse(NetworkLoad(), [shlex.split(setting)[0]])
    assert again.system("separable").network == wanted
    assert keep_inputs(NetworkLoadParameters(network="mesh2x2"), tmp_path / "none") == {}


@pytest.mark.parametrize("pattern", sorted(PERMUTATIONS))
@pytest.mark.parametrize("nodes", [4, 16])
def test_every_fixed_point_of_a_pattern_is_told(pattern, nodes):
    fixed = [node for node in range(nodes) if PERMUTATIONS[pattern](node, nodes) == node]
    told = silent_nodes([ClassSetup(load=0.1, packet_flits=4, pattern=pattern)], nodes)
    if not fixed:
        assert told == []
        return
    (text,) = told
    assert text.startswith(f"pattern {pattern!r}: {nodes - len(fixed)} of {nodes} nodes send; ")
    assert f" {', '.join(map(str, fixed))} would send to" in text


def test_shuffle_on_8_nodes_says_that_6_send():
    experiment = NetworkLoad()
    parameters = NetworkLoadParameters(network="router8", pattern="shuffle")
    notes = experiment.notes(parameters, experiment.points(parameters, "quick"))
    assert notes == ["pattern 'shuffle': 6 of 8 nodes send; nodes 0, 7 would send to themselves"]


@pytest.mark.parametrize("more", [(), ((3, 5),)])
def test_ways_that_are_longer_than_they_need_be_are_told(tmp_path, more):
    """Shortest ways round a ring of six could deadlock. Across a line of six there is one way."""
    ring = ((router, router + 1) for router in range(5))
    links = [*ring, *(((0, 5), *more) if more else ())]
    file = tmp_path / "own.anynet"
    file.write_text("".join(f"router {a} node {a} router {b}\n" for a, b in links) + "router 5 node 5\n")
    experiment, parameters = NetworkLoad(), NetworkLoadParameters(network=str(file))
    notes = experiment.notes(parameters, experiment.points(parameters, "quick"))
    assert notes == (
        [
            "routing source: ways go up*/down*, as shortest ones could deadlock; `lanikai topology` says how much "
            "throughput they leave"
        ]
        if more
        else []
    )


def test_wrr_shares_takes_an_arbiter_that_has_tables_without_a_line_of_its_own(monkeypatch):
    class Mine(DeficitRoundRobinVlArbiter):
        """An arbiter of the user's."""

    with pytest.raises(ConfigError, match="'mine': some of small_fast"):
        WrrSharesParameters(variants="mine")
    monkeypatch.setitem(VL_ARBITERS, "mine", Mine)
    parameters = WrrSharesParameters(variants="mine,deficit", packet_flits=4)
    assert parameters.system("mine").network.router.vl_arbiter == "mine"
    assert parameters.table("mine", "quick") == parameters.table("deficit", "quick")
    with pytest.raises(ConfigError, match="'round_robin': this arbiter has no tables of weights"):
        WrrSharesParameters(variants="round_robin")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"vl_arbiter": "round_robin"},
            "weights = .* 'round_robin' has no tables of weights; those that have",
        ),
        ({"weights": [1]}, "weights = .*1 weights: one for each of 2 classes"),
        ({"weights": [1, 256]}, r"weights\[1\] = 256: 'table_fast' takes 1 to 255"),
        (
            {"vl_arbiter": "deficit", "weights": [1, 7]},
            r"weights\[1\] = 7: 'deficit' takes 1 to 6, as it gives quanta",
        ),
    ],
)
def test_weights_that_cannot_be_are_refused_in_a_line(changes, words):
    right = {"vl_arbiter": "table_fast", "class_shares": [0.5, 0.5], "vls": 4, "weights": [3, 1]}
    NetworkLoadParameters(network="router2", **right)
    with pytest.raises(ConfigError, match=words):
        NetworkLoadParameters(network="router2", **(right | changes))


def test_weights_are_rows_for_the_vls_of_each_class():
    network = NetworkLoadParameters(
        network="router2", vl_arbiter="table_fast", class_shares=[0.5, 0.5], vls=4, weights=[3, 1]
    )
    assert network.table() == [(0, 3), (1, 3), (2, 1), (3, 1)] and network.system("separable").agents
    isolation = VlIsolationParameters(vl_arbiter="table_slow", weights=[5, 2])
    assert isolation.table("table_slow") == [(0, 5), (1, 5), (2, 2), (3, 2)]
