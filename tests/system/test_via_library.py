"""VIPL and the kernel agent on small cards with VIA's firmware, from end to end."""

import re
from pathlib import Path

import pytest
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS

pytestmark = pytest.mark.xdist_group("owners")
CONFIG = OWNERS.replace(firmware="via")


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def parts(model, design, folder, **settings):
    """The results of some parts, by name, of one run."""
    job = CONFIG.job("support.system.via_library_points:parts", {"design": design, "parts": settings})
    return run(model, *job, out_dir=folder, seed=3).value


@pytest.fixture(scope="module")
def found(model, tmp_path_factory):
    """A little of each part, in one run."""
    return parts(
        model,
        "pvia",
        tmp_path_factory.mktemp("parts"),
        breaks={},
        lives={"seeds": [1]},
        hostile={"tries": 60, "seed": 4},
    )


def test_the_example_of_the_page_runs(model, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "via.md"
    example, limits = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "hello.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run(model, *CONFIG.job("hello:main", {"text": "a word"}), out_dir=tmp_path, seed=1)
    assert found.value == "a word"
    names = {}
    exec(limits, names)
    assert names["config"].limits.most_vis == 16


def check_lives(found):
    """As `tests/sim/host/via/test_random_lives.py`, with the firmware and the network as they are."""
    assert all(found["same"]) and found["connected"] > len(found["same"])


def check_breaks(found):
    """On an unreliable connection nothing breaks it: messages and remote writes are dropped."""
    errors = {
        "no descriptor": ("REMOTE_DESC_ERROR", "VIP_ERROR_RECVQ_EMPTY"),
        "not allowed": ("RDMA_PROT_ERROR", "VIP_ERROR_RDMAW_PROT"),
    }
    for what, (error, report) in errors.items():
        assert found[f"UNRELIABLE: {what}"] == ["", "", "CONNECTED", "CONNECTED"]
        for level in ("RELIABLE_DELIVERY", "RELIABLE_RECEPTION"):
            assert found[f"{level}: {what}"] == [error, "DESC_FLUSHED_ERROR", "ERROR", "ERROR", report]


def check_hostile(found, tries):
    """A message waits for a full queue of doorbells and a message of the other VI at most: 5 times as long as alone."""
    assert found["messages"] == found["same"] and found["slower"] < 5
    assert found["refused"] > tries // 4 and found["intact"]
    assert (found["state"], found["left"]) == ("CONNECTED", [1, 1])


def test_random_lives_on_cards_leak_nothing_and_end(found):
    check_lives(found["lives"])


def test_what_breaks_a_connection_at_each_level(found):
    check_breaks(found["breaks"])


def test_writes_of_a_process_into_its_own_pages_and_rings_change_nothing_of_anothers(found):
    check_hostile(found["hostile"], 60)


@pytest.mark.full
@pytest.mark.parametrize("design", ["svia", "pvia", "qosvia"])
def test_a_hundred_lives_breaks_and_a_hostile_neighbour_in_each_design(design, model, tmp_path):
    seeds, tries = list(range(100, 200)), 5_000
    found = parts(
        model, design, tmp_path, breaks={}, lives={"seeds": seeds}, hostile={"tries": tries, "seed": 4}
    )
    assert len(found["lives"]["same"]) == len(seeds)
    check_lives(found["lives"])
    check_breaks(found["breaks"])
    check_hostile(found["hostile"], tries)
