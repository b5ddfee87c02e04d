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


def test_the_example_of_the_page_runs(model, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "via.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "hello.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run(model, *CONFIG.job("hello:main", {"text": "a word"}), out_dir=tmp_path, seed=1)
    assert found.value == "a word"
