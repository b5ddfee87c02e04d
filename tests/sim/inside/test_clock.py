"""The rule of sampling: the values that coroutines see in each phase, and when they wake."""

import pytest
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("counter")


def test_phases(counter, tmp_path):
    """A write in the drive phase counts at the next edge; sleep ends in a drive phase, wherever it began."""
    seen = run(counter, "support.sim.counter_points:count", {}, out_dir=tmp_path).value["seen"]
    # Cycle by the clock's times, by the main loop's edges, and the counter.
    assert seen == [[0, 0, 0], [0, 0, 0], [1, 1, 1], [6, 6, 6], [8, 8, 8]]


def test_change(counter, tmp_path):
    """A rare event of the RTL wakes in the drive phase of its first cycle."""
    seen = run(counter, "support.sim.counter_points:wait_for_carry", {}, out_dir=tmp_path).value
    assert seen == [[256, 256], [256, 256], [512, 512], [512, 512]]


def test_wide_ports(counter, tmp_path):
    """Ports beyond 64 bits, and the errors."""
    value = run(counter, "support.sim.counter_points:wide", {}, out_dir=tmp_path).value
    assert value["plus_one"]
    assert value["errors"] == [f"value {1 << 100:#x} does not fit 100 bits", "'no public signal TOP.absent'"]


def test_handles(counter, tmp_path):
    """cocotb's own handles work beside ours."""
    assert run(counter, "support.sim.counter_points:handles", {}, out_dir=tmp_path).value == 3


def test_clock_edges(counter, tmp_path):
    """With `edges`, RisingEdge of the clock wakes before registers move."""
    assert run(counter, "support.sim.counter_points:edges", {}, out_dir=tmp_path, edges=True).value == [
        0,
        1,
        2,
    ]


def test_idle_speed(counter, tmp_path):
    """No Python in idle cycles: 200,000 of them in far less than Python's share would be."""
    assert run(counter, "support.sim.counter_points:spin", {}, out_dir=tmp_path).value < 0.5


def test_a_timer_at_the_step_of_a_value_change(counter, tmp_path):
    """Both wake in that step: a timer is not held back until Python wakes for something else."""
    woken = run(
        counter, "support.sim.counter_points:timer_at_a_change", {"first": 256}, out_dir=tmp_path
    ).value
    assert sorted(woken) == [["change", 256], ["change", 512], ["timer", 256], ["timer", 512]]
