"""Random histories of admission on simulated routers and adapters, with control packets that meet faults."""

import os
import random

import pytest
from lanikai.hdl.network import mesh
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from support.sim.admission_networks import ADMISSION as SMALL
from support.sim.admission_networks import HCA, ROUTER

ADMISSION = SMALL | {
    "answer_cycles": 10_000,
    "attempts": 3,
    "refresh_cycles": 20_000,
    "refresh_misses": 2,
    "lease_cycles": 100_000,
}
FIRST = int(os.environ.get("ADMISSION_RTL_SEED", random.randrange(1 << 30)))
"""Seed of the first history. `ADMISSION_RTL_SEED` gives back one that was logged."""
HISTORIES = 6
pytestmark = pytest.mark.full


@pytest.fixture
def play(tmp_path):
    def played(seed, *, mutant=None):
        print(f"ADMISSION_RTL_SEED={seed}")
        config = AdapterNetworkConfig.on(mesh(2, 2, router=ROUTER), HCA)
        spec = {"admission": ADMISSION, "requests": 40, "mutant": mutant}
        entry, job = config.job("support.sim.admission_faults:history", spec)
        found = run(config.build(), entry, job, out_dir=tmp_path, seed=seed, threads=ONE_THREAD).value
        print(
            {
                name: found[name]
                for name in ("wrong", "states", "opened", "faults", "cycles", "records", "harmed")
            }
        )
        return found

    return played


def is_as_before(found):
    """Nothing is left anywhere, and nothing was wrong meanwhile."""
    assert found["wrong"] == []
    assert found["records"] == 0
    assert found["hosts"] == [0] * 4
    assert found["after"] == found["before"]


@pytest.mark.parametrize("number", range(HISTORIES))
def test_all_registers_are_as_before_after_a_history(play, number):
    found = play(FIRST + number)
    is_as_before(found)
    assert sum(found["faults"].values()) - found["faults"]["whole"] >= 20
    assert found["opened"] and {"REFUSED", "CLOSED"} <= set(found["states"])


@pytest.mark.parametrize("mutant", ["no_lease", "probes_reserve_again", "incoming_link_stays"])
def test_a_broken_mechanism_is_noticed(play, mutant):
    """One of three histories at least notices it."""
    noticed = 0
    for number in range(3):
        try:
            is_as_before(play(number, mutant=mutant))
        except AssertionError:
            noticed += 1
    assert noticed
