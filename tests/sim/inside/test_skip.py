"""Passing over quiet cycles changes nothing but the time that a simulation takes."""

import time

import pytest
from lanikai.sim.errors import SimulationError
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset

pytestmark = pytest.mark.xdist_group("gm-cluster")


def play(tmp_path, config, spec, *, skip, seed, entry="support.sim.skip_points:workload"):
    """Play one run. Returns its value and the wall-clock seconds."""
    config = config.replace(skip_quiet=skip)
    began = time.perf_counter()
    done = run(
        config.build(),
        *config.job(entry, spec),
        out_dir=tmp_path / str(skip),
        seed=seed,
    )
    assert done.cycles == done.value["end"]
    done.value.pop("evaluated", None)
    return done.value, done.seconds, time.perf_counter() - began


SPEC = {"messages": 5, "bytes": 9000, "silence_cycles": 60_000, "idt_ticks": 9_000}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_to_the_cycle(tmp_path, seed):
    """A random workload runs with and without: the same time stamps, the same registers, the same end.

    Only a tenth of the cycles is evaluated when hosts are silent most of the time.
    """
    config = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20)
    plain, *_ = play(tmp_path, config, SPEC, skip=False, seed=seed)
    skipping, *_ = play(tmp_path, config, SPEC, skip=True, seed=seed)
    assert plain.pop("skipped") == 0
    skipped = skipping.pop("skipped")
    assert skipping == plain
    assert len(plain["stamps"]) == 40
    assert skipped > 0.4 * plain["end"]


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_with_a_tree(tmp_path, seed):
    """Rate control has a scan that goes by one: whole rounds of it are passed over."""
    config = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20)
    config = config.replace(nic=config.nic.replace(rate_structure="tree"))
    plain, *_ = play(tmp_path, config, SPEC, skip=False, seed=seed)
    skipping, *_ = play(tmp_path, config, SPEC, skip=True, seed=seed)
    assert plain.pop("skipped") == 0
    skipped = skipping.pop("skipped")
    assert skipping == plain
    assert skipped > 0.4 * plain["end"]


def test_a_silent_cluster_is_fast(tmp_path):
    """Hosts compute 99% of the time: at least 20 times fewer cycles are evaluated."""
    config = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20, watchdog_cycles=0)
    spec = {"messages": 4, "bytes": 512, "silence_cycles": 3_000_000, "idt_ticks": 9_000}
    value, _, _ = play(tmp_path, config, spec, skip=True, seed=5)
    assert value["end"] > 20 * (value["end"] - value["skipped"])


def test_the_watchdog_fires_in_the_same_cycle(tmp_path):
    """A hang is found in the cycle in which it would have been."""
    config = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20, watchdog_cycles=50_000)
    messages = []
    for skip in (False, True):
        with pytest.raises(SimulationError) as caught:
            play(tmp_path, config, {}, skip=skip, seed=1, entry="support.sim.skip_points:nothing")
        messages.append(str(caught.value).partition(" (log")[0])
    assert messages[0] == messages[1] and "nothing has moved for 50000 cycles" in messages[0]
