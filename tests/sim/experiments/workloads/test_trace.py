"""network-trace: packets leave when the trace says, wait for their source and for each other, and are told as late."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find
from lanikai.sim.experiments.workloads.trace import chosen_packets, trace_results
from lanikai.sim.run import run
from support.sim.netrace_files import netrace_bytes, write_netrace

NETWORK = ["network=router3"]
EXPERIMENT = find("network-trace")


@pytest.fixture
def play(tmp_path):
    """Plays a file; returns results and series."""

    def played(path, *settings, vls=2):
        parameters = parse(EXPERIMENT, [*NETWORK, f"vls={vls}", f"file={path}", *settings])
        (point,) = EXPERIMENT.points(parameters, "quick")
        config = EXPERIMENT.system(parameters, point)
        entry, job = config.job(EXPERIMENT.entry, point.spec)
        measured = run(config.build(), entry, job, out_dir=tmp_path, seed=1).value
        return EXPERIMENT.results(parameters, point, measured), measured["series"]

    return played


def test_times_of_single_packets_and_of_those_that_wait(play, tmp_path):
    path = tmp_path / "a.trace"
    path.write_text("50 0 1 6\n100 0 1 8 1\n100 0 2 4 1\n300 1 2 1\n300 2 2 5\n")
    results, series = play(path)
    # Birth to head on the link 2 cycles, through a router 5, and the flits less one.
    latencies = series["latency_cycles"]
    assert latencies[:2] + latencies[3:] == [2 + 5 + 5, 2 + 5 + 7, 2 + 5 + 0, 1]
    assert latencies[2] >= 8 + 2 + 5 + 3  # behind the one before, whose VL in the router it must wait for
    assert series["wait_cycles"] == [0, 0, 8, 0, -1]
    assert (
        results["late_packets"] == 1 and results["late_share"] == 1 / 4 and results["wait_mean_cycles"] == 2
    )
    assert results["local_packets"] == 1 and results["least_spare_cycles"] == 0
    assert results["source_packets"] == [3, 1, 1] and results["source_late_packets"] == [1, 0, 0]
    assert results["latency_mean_cycles_by_class"] == [(12 + 7) / 2, (14 + latencies[2]) / 2]
    # The trace is 301 cycles long; what arrives later is offered and not accepted.
    assert results["offered_flits_per_node_per_cycle"] == pytest.approx(19 / 3 / 301)
    assert results["accepted_flits_per_node_per_cycle"] == pytest.approx(18 / 3 / 301)


def test_a_source_that_cannot_keep_up_keeps_the_packets(play, tmp_path):
    """40 packets of 8 flits in 40 cycles: each waits for all before it, and none is lost."""
    path = tmp_path / "a.trace"
    path.write_text("\n".join(f"{i} 0 1 8" for i in range(40)))
    results, series = play(path, vls=1)
    waits = series["wait_cycles"]
    assert waits[:3] == [0, 7, 14]
    # The router holds the source up a little besides.
    assert all(8 <= b - a + 1 <= 12 for a, b in pairwise(waits))
    assert results["late_packets"] == 39 and results["delivered_packets"] == 40


def test_packets_wait_for_those_that_they_depend_on(play, tmp_path):
    packets = [
        (0, 1, 2, 0, 1, [3, 4]),
        (0, 2, 1, 2, 2, [4]),
        (1, 3, 1, 1, 0, [5]),
        (200, 4, 1, 1, 2, []),
        (201, 5, 1, 0, 2, [6]),
        (202, 6, 1, 2, 0, []),
    ]
    path = write_netrace(tmp_path / "a.tra.bz2", netrace_bytes(packets, nodes=3))
    _, series = play(path)
    arrived = np.array(series["arrived_cycle"])
    born = arrived - np.array(series["latency_cycles"])
    assert born[0] == born[1] == 0
    # As soon as the host knows; a packet whose cycle has not come then waits for it.
    assert arrived[0] < born[2] <= arrived[0] + 6
    assert born[3] == 200 and born[4] == 201
    assert arrived[4] < born[5] <= arrived[4] + 6
    _, free = play(path, "dependencies=false")
    born = np.array(free["arrived_cycle"]) - np.array(free["latency_cycles"])
    assert born.tolist() == [row[0] for row in packets]


def test_nothing_to_send_through_the_network():
    """Results of packets to their own node alone: no latency, and no division by nothing."""
    series = {"latency_cycles": [1], "wait_cycles": [-1], "source": [0], "traffic_class": [0], "flits": [4]}
    measured = {"series": series | {"arrived_cycle": [1]}, "span_cycles": 1, "unknown_dependencies": 0}
    results = trace_results(measured | {"least_spare_cycles": None}, 2)
    assert results["latency_mean_cycles"] is None and results["offered_flits_per_node_per_cycle"] == 0


def test_a_point_names_its_file_by_the_whole_path_and_no_network(tmp_path, monkeypatch):
    """A worker in another folder plays the same packets. The network was read by who built it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.trace").write_text("0 0 1 4")
    (tmp_path / "n.anynet").write_text("router 0 node 0 node 1")
    parameters = parse(EXPERIMENT, ["file=a.trace", "network=n.anynet"])
    (point,) = EXPERIMENT.points(parameters, "quick")
    assert point.spec["file"] == str(tmp_path / "a.trace") and "network" not in point.spec
    link = parameters.message_network().traffic.link
    monkeypatch.chdir("/")
    assert len(chosen_packets(point.spec, link)) == 1
