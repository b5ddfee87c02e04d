"""Lists of accesses that the main loop carries out: to the cycle as Python does, access by access."""

import logging
from collections import Counter

import pytest
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset
from support.sim.pair import PAIR

pytestmark = pytest.mark.xdist_group("gm-cluster")


def play(folder, *, lists, seed, late=None):
    """Random lists on both processors of a card, seen by the main loop or by Python."""
    config = PAIR.replace(access_lists=lists)
    job = config.job("support.sim.list_points:play", {"lists": 60, "late": late})
    return run(config.build(), *job, out_dir=folder / str(lists), seed=seed).value


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The lists of seed 1, seen by the main loop."""
    return play(tmp_path_factory.mktemp("first"), lists=True, seed=1)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
def test_random_lists_are_the_same_to_the_cycle(tmp_path, seed, first):
    """Their ends, what they read and left out, and the SRAM, beside another processor and a host on the same SRAM.

    All ends of a list and all kinds of records are among them, also accesses that find the SRAM busy.
    """
    logging.getLogger(__name__).info("seed %d", seed)
    native = first if seed == 1 else play(tmp_path, lists=True, seed=seed)
    assert native == play(tmp_path, lists=False, seed=seed)
    ends = Counter(one[4] for one in native["found"])
    assert ends.keys() == {"END", "STOPPED", "MARKED", "LATE"} and ends["END"] > 40


def test_a_cycle_more_is_found(tmp_path, first):
    """One list of 120 that takes one cycle more is not the same."""
    assert first != play(tmp_path, lists=False, seed=1, late=[1, 30])


@pytest.mark.parametrize(
    ("seed", "silence_cycles"), [pytest.param(1, 60_000, marks=pytest.mark.full), (2, 4_000)]
)
def test_messages_are_the_same_to_the_cycle(tmp_path, seed, silence_cycles):
    """Random messages of GM, far apart and close together: the same time stamps, and at the end the same registers."""
    logging.getLogger(__name__).info("seed %d", seed)
    spec = {"messages": 4, "bytes": 9000, "silence_cycles": silence_cycles, "idt_ticks": 900}

    def messages(lists):
        config = cluster_preset("lanai4", nodes=4, memory_bytes=1 << 20, access_lists=lists)
        job = config.job("support.sim.skip_points:workload", spec)
        return run(config.build(), *job, out_dir=tmp_path / str(lists), seed=seed).value

    native = messages(True)
    assert native == messages(False)
    assert len(native["stamps"]) == 32 and native["skipped"] > 0
