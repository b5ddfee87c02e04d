"""Experiments of virtual networks on real cards: short runs, for numbers that make sense."""

from __future__ import annotations

import pytest
from lanikai.sim.experiments.registry import find
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("lanai41")


def results(name, number, folder, **changes):
    """The results of the point `number` of a quick run, with a spec that is changed to be shorter."""
    experiment = find(name)
    parameters = experiment.Parameters()
    point = experiment.points(parameters, "quick")[number]
    system = experiment.system(parameters, point)
    done = run(
        system.build(),
        *system.job(experiment.entry, {**point.spec, **changes}),
        out_dir=folder,
        seed=1,
    )
    return experiment.results(parameters, point, done.value)


def test_logp_of_the_whole_program(tmp_path):
    """Overheads are those of the paper. The round trip has both, twice; the gap is that of the firmware."""
    found = results("am-logp", 2, tmp_path, rounds=4, burst=60)
    assert found["o_send_us"] == pytest.approx(4.09, rel=0.5)
    assert found["o_recv_us"] == pytest.approx(4.28, rel=0.5)
    assert found["rtt_us"] > 2 * (found["o_send_us"] + found["o_recv_us"])
    assert found["o_send_us"] + found["o_recv_us"] < found["gap_us"] < found["rtt_us"]


@pytest.mark.full
@pytest.mark.parametrize("number", [0, 3])
def test_bandwidth_of_medium_messages(tmp_path, number):
    """More of larger messages, and the data come as they were sent; less than the bus has."""
    found = results("am-bandwidth", number, tmp_path, messages=10)
    least, most = ((0.5, 10), (5, 53.3))[number == 3]
    assert least < found["bandwidth_mb_per_s"] < most


@pytest.mark.full
def test_a_server_with_more_endpoints_than_frames(tmp_path):
    """Every client has messages, and endpoints move."""
    found = results("am-virtual-networks", 7, tmp_path, endpoints=6, warm_us=3000, window_us=12000)
    assert found["loads"] > 0 and min(found["client_messages_per_s"]) > 0
    assert len(found["client_messages_per_s"]) == 6


@pytest.mark.full
def test_twelve_times_as_many_endpoints_as_frames_keep_the_rate(tmp_path):
    """The server keeps more than 80% of its peak, and every client has a quarter of the mean at least (issue 17)."""
    peak = results("am-virtual-networks", 5, tmp_path / "peak")
    over = results("am-virtual-networks", 7, tmp_path / "over", warm_us=4000, window_us=36_000)
    assert peak["loads"] == 0 < over["loads"] and len(over["client_messages_per_s"]) == 24
    assert over["messages_per_s"] > 0.8 * peak["messages_per_s"]
    assert over["least_share"] >= 0.25


@pytest.mark.full
def test_every_client_of_one_endpoint_is_served(tmp_path):
    found = results("am-contention", 3, tmp_path, warm_us=1500, window_us=4000)
    assert len(found["client_messages_per_s"]) == 8 and min(found["client_messages_per_s"]) > 0
