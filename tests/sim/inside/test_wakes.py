"""Native events: Python is woken once for all of a cycle, none is lost, and their order is that of asking."""

import pytest
from lanikai.sim.errors import SimulationError
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("counter")


def test_one_wakeup_for_many_events(counter, tmp_path):
    """200 of 300 events of one cycle, in a ring that has grown for them: all, once, in the order of arming.

    What a coroutine woken by one brings about comes before the next.
    """
    value = run(counter, "support.sim.wakes_points:many", {"events": 300}, out_dir=tmp_path, seed=7).value
    expected = []
    for place, number in enumerate(value["armed"]):
        expected += [["function", number]] if place % 3 else [["coroutine", number], ["follower", number]]
    assert value["seen"] == expected and len(value["armed"]) == 200
    assert value["told"] == [256] and value["again"] == [512]
    assert value["served"] == [1, 2]


def test_an_error_ends_the_simulation(counter, tmp_path):
    """An exception of who waits is that of the run."""
    with pytest.raises(SimulationError, match="the carry has come"):
        run(counter, "support.sim.wakes_points:failing", {}, out_dir=tmp_path)


def test_only_bits_are_watched(counter, tmp_path):
    """Wider registers are refused."""
    error = run(counter, "support.sim.wakes_points:wide", {}, out_dir=tmp_path).value
    assert error == "a signal of 16 bits: only one-bit registers are watched"
