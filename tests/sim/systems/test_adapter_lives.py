"""Queue pairs' numbers that are used again, and completion queues that are made anew, on simulated adapters."""

import pytest
from lanikai.hdl.config import HcaConfig, RouterConfig, preset
from lanikai.hdl.hca.layout import CqeStatus
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig

HCA = preset(HcaConfig, "tiny")
ROUTER = RouterConfig(link=HCA.link, ports=3, input_buffer_flits=4, output_buffer_flits=4)


@pytest.fixture
def play(tmp_path):
    def played(point, spec=None):
        config = AdapterNetworkConfig.on(named_network("router3", ROUTER), HCA)
        entry, job = config.job(f"support.sim.adapter_lives:{point}", spec or {})
        return run(config.build(), entry, job, out_dir=tmp_path, seed=1, threads=ONE_THREAD).value

    return played


def test_packets_for_an_earlier_life_are_dropped(play):
    """A sender that names the receiver's life of before is not heard; one that names the new one is."""
    assert play("late_packets", {"connected": False}) == [
        [[[0, "first"]], 0],
        [[], 1],
        [[[1, "second"]], 1],
        [[[2, "third"]], 1],
    ]


def test_packets_of_a_peers_earlier_or_later_life_are_dropped(play):
    """The receiver is connected with the sender's first life: its second one is another's."""
    assert play("late_packets", {"connected": True}) == [
        [[[0, "first"]], 0],
        [[], 1],
        [[], 2],
        [[[2, "third"]], 2],
    ]


def test_unread_ends_of_an_earlier_life_end_nothing_of_the_new_one(play):
    found = play("unread_completions")
    assert found["lives"] == [0, 0, 0, 1, 1]
    assert found["under_way"] == [[0, 1], [0, 1], []]


def test_an_overrun_completion_queue_is_made_anew(play):
    found = play("overrun")
    assert found["told"] == [CqeStatus.OK] * 3
    assert found["errors"] == [
        "node 0, completion queue 0: overrun: its ring of 4 entries was full; read it sooner, or make it larger",
        "node 0, completion queue 0: queue pair 0 tells of its ends in it: close it before the queue is made anew",
    ]
    assert found["ends"] == [[1, CqeStatus.OK]] * 12
    assert found["overruns"] == 1
