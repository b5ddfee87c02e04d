"""Virtual networks' firmware on two cards of chun-1998, with a bare driver and bare processes."""

import random

import pytest
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset

pytestmark = pytest.mark.xdist_group("lanai41")
CONFIG = cluster_preset("lanai41", firmware="am")
WRITES = 100_000


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def point(model, name, spec, folder, seed=3):
    job = CONFIG.job(f"support.system.am_points:{name}", spec)
    return run(model, *job, out_dir=folder, seed=seed).value


def test_messages_of_all_kinds_arrive_while_pages_move(model, tmp_path):
    spec = {"messages": 8, "sizes": [4, 333, 4096, 8192], "seed": 5}
    found = point(model, "exchange", spec, tmp_path)
    assert all(found["same"]) and len(found["same"]) == 2 * 8 + 2 * 2 * 4
    assert found["pages"] >= 5 and found["pending"] == [0, 0]
    assert found["drops"] == [{}, {}]


@pytest.mark.full
def test_no_write_into_a_page_changes_anything_of_others(model, tmp_path):
    """10^5 writes by programmed I/O, on the card, as fast as the bus takes them. Others' messages come as ever.

    Before each attempt of theirs are 8 of the hostile endpoint at most, so they take 9 times as long at most.
    """
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    found = point(model, "hostile", {"writes": WRITES, "seed": seed}, tmp_path)
    print(found)
    assert found["writes"] >= WRITES and found["same"] and found["untouched"]
    assert max(found["rounds"]) <= 9 * found["alone"] and len(found["rounds"]) > 5
    assert found["refused"] > WRITES // 100 and found["served"] > WRITES // 1000 and found["pending"] == 0
