"""The model of VIA's peers against full cards."""

from itertools import pairwise

import pytest
from lanikai.sim.experiments.via.scalability import DOOR, SHADOW, Load, ViaScalability, point
from lanikai.sim.models.via_peer import PeerTimes
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS
from support.system.via_clusters import BASE as POLLED
from support.system.via_clusters import TWO

CONFIG = OWNERS.replace(firmware="via")
ALIKE = 0.15
"""Relative: how far a node's mean latency beside the model may be from that of a node of four full ones. It was set
before any run: a peer of the four has rounds of its own, which the model knows as a mean load alone."""


def check_peer(config, folder):
    """Latency and interval to the cycle; acknowledgements in their own time; and nothing is lost.

    A node with queues in hardware begins to send, and sees a packet, a cycle sooner or later by itself.
    """
    slack = 1 if config.nic.send_queue_entries else 0
    times = [
        {"latency_cycles": 2000, "acknowledge_cycles": 1000},
        {"latency_cycles": 2700, "acknowledge_cycles": 1500},
        {"latency_cycles": 2000, "interval_cycles": 3000, "acknowledge_cycles": 1000},
    ]
    design = {"queue_entries": 4}
    if config.nic.processors == 2:
        design |= {"design": "parallel", "send_buffers": 2, "receive_buffers": 2}
    job = config.job("support.system.via_peer_points:alone", {"config": design, "times": times})
    found = run(config.build(), *job, out_dir=folder, seed=2).value
    assert {tuple(one) for one in found["told"]} == {("OK", 64)} and found["own"] == ["OK", 32]
    assert found["drops"] == [{}, {"stranger": 1}]
    first = [came - went for went, came in (one[0] for one in found["rounds"])]
    assert abs(first[1] - first[0] - 700) <= slack and abs(first[2] - first[0]) <= slack
    arrivals = [came for _, came in found["rounds"][2]]
    assert all(abs(b - a - 3000) <= slack for a, b in pairwise(arrivals))
    assert abs(found["waits"][1] - found["waits"][0] - 500) <= 40 and found["waits"][0] > 1000


@pytest.mark.xdist_group("owners")
def test_a_peer_answers_after_its_latency_and_acknowledges_as_the_level_asks(tmp_path):
    check_peer(CONFIG, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("config", [POLLED, TWO])
def test_a_peer_on_cards_with_and_without_queues(config, tmp_path):
    check_peer(config, tmp_path)


def test_a_peer_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match=r"^PeerTimes: interval_cycles = -1: 0 or more cycles$"):
        PeerTimes(latency_cycles=0, interval_cycles=-1)


@pytest.mark.full
@pytest.mark.parametrize("design", [DOOR, SHADOW])
def test_a_node_beside_the_model_is_as_one_of_four_full_nodes(design, tmp_path):
    load = Load(design=design, declared=60, active=12, message_bytes=128)
    experiment = ViaScalability()
    found = {}
    for name, nodes, peers, entry in (
        ("model", 2, "model", experiment.entry),
        ("four", 4, "card", "support.system.via_peer_points:alike"),
    ):
        spec = {**point([load], "full", peers).spec}
        config = experiment.system(experiment.Parameters(), point([load], "full", peers)).replace(nodes=nodes)
        found[name] = run(config.build(), *config.job(entry, spec), out_dir=tmp_path / name, seed=2).value
    model, four = (sum(one) / len(one) for one in (found["model"]["loads"][0]["latencies_us"], found["four"]))
    assert abs(model - four) <= ALIKE * four, (model, four)
