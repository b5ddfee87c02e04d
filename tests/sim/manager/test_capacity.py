"""Capacities and the arithmetic of rates: the published numbers, and the file of the measured curve."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from lanikai.hdl.config import NicConfig, RouterConfig, preset
from lanikai.hdl.network import single_router
from lanikai.sim.bandwidth.pace import Pace
from lanikai.sim.manager.capacity import (
    CURVE_FILE,
    NodeCapacity,
    _curve_file,
    cluster_capacity,
    measured_curve,
    node_capacity,
)

NIC = preset(NicConfig, "lanai4")
PACE = Pace.of(NIC)


def test_rates_become_idts_as_in_3_3_1():
    """IDT = T * B_max / B_req: T = 96 ticks and B_max = 4096 bytes in 48 us."""
    assert PACE.peak == 85_333_333
    assert [PACE.premium_idt(rate * 1_000_000) for rate in (85, 40, 20, 1)] == [96, 204, 409, 8192]
    assert PACE.premium_idt(PACE.peak) == 96
    # A flow never gets less than it asked for, and at most 1% more.
    for rate in range(1_000_000, PACE.peak, 777_777):
        got = 4096 * 2_000_000 / PACE.premium_idt(rate)
        assert rate <= got < 1.011 * rate


def test_a_best_effort_flow_never_gets_more_than_its_share():
    longest = NIC.max_idt_ticks
    assert PACE.best_effort_idt(PACE.peak, longest=longest) == 0
    assert PACE.best_effort_idt(PACE.peak - 255, longest=longest) == 0
    assert PACE.best_effort_idt(0, longest=longest) == longest
    assert PACE.best_effort_idt(1, longest=longest) == longest
    for rate in range(1_000_000, PACE.peak - 1000, 777_777):
        assert 0.99 * rate < 4096 * 2_000_000 / PACE.best_effort_idt(rate, longest=longest) <= rate


def test_the_measured_curve_is_one_of_a_node():
    """The points that are kept make a curve that falls, from a sender's peak to the most that comes in from several."""
    node = node_capacity(NIC)
    assert node.curve[0] == (0, PACE.peak) and node.curve[-1] == (113_060_000, 0)
    assert len(node.curve) == len(measured_curve()) + 1
    for incoming, outgoing in node.curve:
        assert node.fits(incoming=incoming, outgoing=outgoing, flows=1, destinations=1)
        assert not node.fits(incoming=incoming, outgoing=outgoing + 1, flows=1, destinations=1)
    assert node.most_outgoing(113_060_001, flows=1, destinations=1) == -1
    # 5.6's sum, and the third and fourth destination's part in it.
    most = [node.most_outgoing(0, flows=n, destinations=n) for n in (1, 2, 3, 4)]
    assert most == [PACE.peak, 78_000_000, 78_000_000, 85_333_333 * 1584 // 1788]


def test_what_a_node_takes_in_is_its_own_limit_and_can_be_set():
    """Two flows of 56 MB/s into one node are carried, and nothing goes out beside them. A third one of 2 is not. A
    limit cuts the curve."""
    node = node_capacity(NIC)
    assert node.fits(incoming=112_000_000, outgoing=0, flows=0, destinations=0)
    assert not node.fits(incoming=112_000_000, outgoing=1, flows=1, destinations=1)
    assert not node.fits(incoming=114_000_000, outgoing=0, flows=0, destinations=0)
    thesis = node_capacity(NIC, receive_mb_per_s=4096 / 48)
    assert (
        thesis.curve[-1] == (PACE.peak, 15_898_000)
        and thesis.curve[:-1] == node.curve[: len(thesis.curve) - 1]
    )
    between = node_capacity(NIC, receive_mb_per_s=50.0)
    assert between.curve[-1][0] == 50_000_000
    assert between.curve[-1][1] == node.most_outgoing(50_000_000, flows=1, destinations=1)
    assert node_capacity(NIC, receive_mb_per_s=200.0) == node


def test_between_measured_points_lies_a_straight_line():
    node = node_capacity(NIC, curve=[(10_000_000, 80_000_000), (PACE.peak, 10_000_000)])
    assert node.most_outgoing(5_000_000, flows=1, destinations=1) == pytest.approx(82_666_666, abs=1)
    assert node.most_outgoing(10_000_000, flows=1, destinations=1) == 80_000_000


@pytest.mark.parametrize(
    "points",
    [[(0, 5), (1, 6)], [(0, 5), (0, 4)], [(1, 5)], [(0, 4), (1, 3)]],
    ids=["rises", "still", "starts", "peak"],
)
def test_what_is_no_curve_is_refused(points):
    with pytest.raises(ValueError, match="a node's curve begins at"):
        NodeCapacity(peak=5, shared=5, curve=tuple(points), packet_cycles=1, turn_cycles=1)


def test_a_port_carries_the_links_rate_less_headers():
    """The link has 1.28 Gbit/s. 4096 bytes are 515 flits of 8 bytes with header (2) and checksum (1)."""
    capacity = cluster_capacity(single_router(3, router=preset(RouterConfig, "lanai4").replace(ports=3)), NIC)
    assert capacity.port == 160_000_000 * 4096 // (515 * 8)
    assert capacity.path(0, 2) == ((0, 2),)


def test_the_curve_is_made_from_the_results_of_incoming_rate(tmp_path):
    """Incoming bandwidth is the one that the flow has alone; points are in order, in MB/s."""
    points = [
        {
            "results": {
                "incoming_alone_mb_per_s": 85.33,
                "incoming_mb_per_s": 84.8,
                "peak_outgoing_mb_per_s": 24.4,
            }
        },
        {
            "results": {
                "incoming_alone_mb_per_s": 16.384,
                "incoming_mb_per_s": 16.3,
                "peak_outgoing_mb_per_s": 65.04,
            }
        },
    ]
    most = [
        {"results": {"bandwidth_mb_per_s": [one, one]}, "parameters": {"idt_ticks": [idt, idt]}}
        for one, idt in ((56.53, 96), (56.55, 134), (42.0, 195))
    ]
    runs = [
        {"experiment": "incoming-rate", "points": points},
        {"experiment": "share-receiver", "points": most},
    ]
    text = _curve_file(runs)
    assert "incoming = 16.384, outgoing = 65.040 },\n  { incoming = 85.330, outgoing = 24.400 }" in text
    assert "{ incoming = 113.060, outgoing = 0.000 },\n]" in text
    assert text.splitlines()[:3] == CURVE_FILE.read_text().splitlines()[:3]
    command = [sys.executable, "-m", "lanikai.sim.manager.capacity"]
    for number, run in enumerate(runs):
        (tmp_path / f"{number}.json").write_text(json.dumps(run))
    out = tmp_path / "curve.toml"
    inputs = [str(tmp_path / "0.json"), str(tmp_path / "1.json")]
    subprocess.run([*command, *inputs, "--out", str(out)], check=True)
    assert out.read_text() == text


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (
            '{"experiment": "idt-sweep", "points": []}',
            ["--out", "x"],
            "results of idt-sweep, not of incoming-rate",
        ),
        ("nothing", ["--out", "x"], "r.json: no results of incoming-rate or share-receiver"),
        ('{"experiment": "incoming-rate", "points": []}', [], "the following arguments are required: --out"),
        ('{"experiment": "incoming-rate", "points": []}', ["--out", "no/x"], "no/x cannot be written"),
    ],
)
def test_the_curve_is_written_where_it_is_asked_for_alone(tmp_path, content, arguments, message):
    before = CURVE_FILE.read_bytes()
    (tmp_path / "r.json").write_text(content)
    command = [sys.executable, "-m", "lanikai.sim.manager.capacity", "r.json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert CURVE_FILE.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["r.json"]
