"""Fixtures of the simulation layer's tests: models that are built once, coroutines that the simulator can
import."""

from pathlib import Path

import pytest
from lanikai.sim.build import build
from lanikai.sim.cluster import build_cluster, cluster_preset

HERE = str(Path(__file__).parent)


@pytest.fixture
def points(monkeypatch):
    """Makes `sim_points` and `counter_points` importable in the simulator's process, which is given this
    one's search path."""
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture(scope="session")
def counter():
    """The model of `counter.py`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        from counter import counter_design

    return build(counter_design())


@pytest.fixture(scope="session")
def tiny_config():
    """Two tiny nodes; nothing in these tests is quiet for longer than 3000 cycles."""
    return cluster_preset("tiny", watchdog_cycles=3000)


@pytest.fixture(scope="session")
def tiny(tiny_config):
    """The model of the tiny cluster."""
    return build_cluster(tiny_config)
