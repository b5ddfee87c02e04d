"""Host processors beside a cluster in RTL: the same as by events, and messages that wait for a processor."""

from __future__ import annotations

import pytest
from lanikai.sim.host.cpu.event_time import EventTime
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset
from support.sim.cpu_workload import Workload

pytestmark = pytest.mark.xdist_group("gm-cluster")
CONFIG = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20)


def play(tmp_path, entry, **spec):
    job = CONFIG.job(f"support.sim.cpu_points:{entry}", spec)
    return run(CONFIG.build(), *job, out_dir=tmp_path, seed=1).value


def listed(value):
    return [listed(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("steps", [5, pytest.param(15, marks=pytest.mark.full)])
def test_processes_run_beside_rtl_as_by_events(tmp_path, steps):
    spec = {"seed": 7, "steps": steps, "begin": 500, "scheduler": "time sharing"}
    found = play(tmp_path, "workload", **spec)
    time = EventTime(1_000_000)
    time.cycle = spec["begin"]
    work = Workload(time, spec["seed"], spec["scheduler"], steps=spec["steps"])
    assert time.run(lambda: work.over, limit=10_000_000)
    assert {key: listed(value) for key, value in work.seen().items()} == found
    assert len(found["log"]) >= 6 * steps


def test_a_message_is_seen_when_its_process_has_the_processor(tmp_path):
    """The receiver spins for its message. Alone it sees it at once; beside a process that computes, in its next slice.
    A slice is a millisecond, 33000 cycles of the card."""
    alone, beside = [
        play(tmp_path / str(others), "message", bytes=1024, others=others, compute=200_000)
        for others in (0, 2)
    ]
    assert alone["right"] and beside["right"]
    took = alone["cycle"] - alone["begin"]
    assert took < 5_000
    # It spins until it has seen it, and takes nothing after that.
    assert alone["used"][0] <= took and beside["used"][0] >= took - 100
    assert beside["used"][1:] == [200_000, 200_000]
