"""Segment driver and Active Messages II on the cards of chun-1998, from end to end."""

import re
from pathlib import Path

import pytest
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset

pytestmark = pytest.mark.xdist_group("lanai41")
CONFIG = cluster_preset("lanai41", firmware="am")


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def test_the_example_of_the_page_runs(model, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "am.md"
    example, *_ = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "hello.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run(model, *CONFIG.job("hello:main", {"text": "a word"}), out_dir=tmp_path, seed=1)
    assert found.value == "a word"


def test_more_endpoints_than_frames_while_processes_die(model, tmp_path):
    """Ten endpoints of a host share seven frames. Each message is handled once or comes back once."""
    spec = {"servers": 10, "messages": 4, "seed": 2}
    job = CONFIG.job("support.system.am_library_points:overcommit", spec)
    found = run(model, *job, out_dir=tmp_path, seed=2).value
    assert found["answered"] == found["sent"] and found["twice"] == 0
    assert found["loads"] > 10 and found["same"] == [True] * 3
    assert found["returned"] == found["unreached"] > 0
    assert found["left"] == [0, 0, 0, 0]
