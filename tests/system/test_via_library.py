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


@pytest.mark.parametrize("design", ["svia", "pvia"])
def test_random_lives_on_cards_leak_nothing_and_end(design, model, tmp_path):
    found = point(model, "lives", {"design": design, "seeds": [1]}, tmp_path)
    assert found["same"] == [True] and found["connected"] > 2
