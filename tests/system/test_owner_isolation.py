"""A process' writes into its pages change nothing of another's, and hang nothing: on the whole card."""

import pytest
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG

pytestmark = pytest.mark.xdist_group("owners")


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


@pytest.mark.parametrize("accesses", [2_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_a_stranger_changes_nothing(model, accesses, tmp_path):
    job = CONFIG.job("support.system.owner_isolation:isolation", {"accesses": accesses})
    found = run(model, *job, out_dir=tmp_path, seed=accesses).value
    assert found["accesses"] == accesses
    # It did try: doorbells that were served, writes and accesses that were refused.
    assert found["served"] > accesses / 20 and found["refused"] > accesses / 4
    assert found["violations"] > accesses / 100 and found["doorbells_refused"] > accesses / 20
    assert found["messages_of_b"] >= 10
