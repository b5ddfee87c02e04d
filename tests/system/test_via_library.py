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


def point(model, name, spec, folder, seed=3):
    job = CONFIG.job(f"support.system.via_library_points:{name}", spec)
    return run(model, *job, out_dir=folder, seed=seed).value


def test_the_example_of_the_page_runs(model, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "via.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "hello.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run(model, *CONFIG.job("hello:main", {"text": "a word"}), out_dir=tmp_path, seed=1)
    assert found.value == "a word"


@pytest.mark.parametrize(
    ("design", "seeds"),
    [
        ("pvia", [1]),
        *(
            pytest.param(design, list(range(100, 200)), marks=pytest.mark.full)
            for design in ("svia", "pvia", "qosvia")
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} lives",
)
def test_random_lives_on_cards_leak_nothing_and_end(design, seeds, model, tmp_path):
    """As `tests/sim/host/via/test_random_lives.py`, with the firmware and the network as they are."""
    found = point(model, "lives", {"design": design, "seeds": seeds}, tmp_path)
    assert found["same"] == [True] * len(seeds) and found["connected"] > len(seeds)


@pytest.mark.parametrize("design", ["svia", pytest.param("pvia", marks=pytest.mark.full)])
def test_what_breaks_a_connection_at_each_level(design, model, tmp_path):
    """On an unreliable one nothing does: messages and remote writes are dropped."""
    found = point(model, "breaks", {"design": design}, tmp_path)
    for what in ("no descriptor", "not allowed"):
        assert found[f"UNRELIABLE: {what}"] == ["", "", "CONNECTED", "CONNECTED"]
        error, report = {
            "no descriptor": ("REMOTE_DESC_ERROR", "VIP_ERROR_RECVQ_EMPTY"),
            "not allowed": ("RDMA_PROT_ERROR", "VIP_ERROR_RDMAW_PROT"),
        }[what]
        for level in ("RELIABLE_DELIVERY", "RELIABLE_RECEPTION"):
            assert found[f"{level}: {what}"] == [error, "DESC_FLUSHED_ERROR", "ERROR", "ERROR", report]


@pytest.mark.parametrize(
    ("design", "tries"),
    [
        ("pvia", 60),
        *(pytest.param(design, 5_000, marks=pytest.mark.full) for design in ("svia", "pvia", "qosvia")),
    ],
)
def test_writes_of_a_process_into_its_own_pages_and_rings_change_nothing_of_anothers(
    design, tries, model, tmp_path
):
    """A message waits for a full queue of doorbells and a message of the other VI at most: 5 times as long as alone."""
    found = point(model, "hostile", {"design": design, "tries": tries, "seed": 4}, tmp_path)
    assert found["messages"] == found["same"] and found["slower"] < 5
    assert found["refused"] > tries // 4 and found["intact"]
    assert (found["state"], found["left"]) == ("CONNECTED", [1, 1])
