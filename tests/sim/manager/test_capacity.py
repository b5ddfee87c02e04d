"""Capacities and the arithmetic of rates: the published numbers, and the file of the measured curve."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from lanikai.hdl.config import NicConfig, RouterConfig, preset
from lanikai.hdl.network import single_router
from lanikai.sim.manager.capacity import (
    CURVE_FILE,
    NodeCapacity,
    Pace,
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
    # What a flow gets is never less than what it asked for, and at most 1% more.
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
    """The points that are kept make a curve that falls, from the peak to what comes in beside the peak."""
    node = node_capacity(NIC)
    assert node.curve[0] == (0, PACE.peak) and node.curve[-1][0] == PACE.peak
    assert len(node.curve) == len(measured_curve()) + 1
    for incoming, outgoing in node.curve:
        assert node.fits(incoming=incoming, outgoing=outgoing, flows=1, destinations=1)
        assert not node.fits(incoming=incoming, outgoing=outgoing + 1, flows=1, destinations=1)
    assert node.most_outgoing(PACE.peak + 1, flows=1, destinations=1) == -1
    # 5.6's sum, and the third and fourth destination's part in it.
    most = [node.most_outgoing(0, flows=n, destinations=n) for n in (1, 2, 3, 4)]
    assert most == [PACE.peak, 78_000_000, 78_000_000, 85_333_333 * 1584 // 1788]


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
    """1.28 Gbit/s; 4096 bytes are 515 flits of 8 bytes with header (2) and checksum (1)."""
    capacity = cluster_capacity(single_router(3, router=preset(RouterConfig, "lanai4").replace(ports=3)), NIC)
    assert capacity.port == 160_000_000 * 4096 // (515 * 8)
    assert capacity.path(0, 2) == ((0, 2),)


def test_the_curve_is_made_from_the_results_of_incoming_rate(tmp_path):
    """What comes in is what the flow has alone; points in order, MB/s."""
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
    text = _curve_file({"experiment": "incoming-rate", "points": points})
    assert "incoming = 16.384, outgoing = 65.040 },\n  { incoming = 85.330, outgoing = 24.400 }" in text
    assert text.splitlines()[:2] == CURVE_FILE.read_text().splitlines()[:2]
    other = tmp_path / "results.json"
    other.write_text(json.dumps({"experiment": "idt-sweep", "points": []}))
    command = [sys.executable, "-m", "lanikai.sim.manager.capacity", str(other)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode and "these are results of idt-sweep, not of incoming-rate" in done.stderr
