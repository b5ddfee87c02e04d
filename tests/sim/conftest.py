"""Fixtures of the simulation layer's tests: models that are built once."""

import pytest
from lanikai.sim.build.model import build
from lanikai.sim.systems.cluster import cluster_preset
from support.sim.counter import counter_design


@pytest.fixture(scope="session")
def counter():
    """The model of `counter.py`."""
    return build(counter_design())


@pytest.fixture(scope="session")
def tiny_config():
    """Two tiny nodes; nothing in these tests is quiet for longer than 3000 cycles."""
    return cluster_preset("tiny", watchdog_cycles=3000)


@pytest.fixture(scope="session")
def tiny(tiny_config):
    """The model of the tiny cluster."""
    return tiny_config.build()
