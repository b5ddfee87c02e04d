"""The machine's cores, shared out among simulations."""

import pytest
from lanikai.sim import machine
from lanikai.sim.machine import Threads


@pytest.mark.parametrize(
    ("asked", "runs", "workers", "threads"),
    [
        (None, 1, 8, Threads(8)),
        (None, 3, 8, Threads(2)),
        (None, 20, 8, Threads(1)),
        (None, 20, 2, Threads(4)),
        (None, 20, 100, Threads(1)),
        (3, 20, 8, Threads(3, asked=True)),
    ],
)
def test_simulations_share_the_cores(monkeypatch, asked, runs, workers, threads):
    """Points fill the cores first; what they leave is for the threads of each, as many as pay."""
    monkeypatch.setattr(machine, "cores", lambda: 8)
    assert Threads.share(asked, runs, workers) == threads
    assert threads.arguments()[0] == ("--threads" if asked else "--threads-if-worth")
