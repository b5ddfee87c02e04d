"""VIA's firmware from end to end on small cards, set up by a plain agent."""

import pytest
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS

pytestmark = pytest.mark.xdist_group("owners")
CONFIG = OWNERS.replace(firmware="via")


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def point(model, name, spec, folder, seed=3):
    job = CONFIG.job(f"support.system.via_points:{name}", spec)
    return run(model, *job, out_dir=folder, seed=seed).value


@pytest.mark.parametrize("level", [0, 1, 2])
def test_messages_of_all_sizes_arrive(level, model, tmp_path):
    """Shorter than a packet, of one packet to the byte, of many; with immediate data and without."""
    for immediate in (False, True):
        sizes = [0, 1, 4, 108, 109, 111, 112, 113, 500, 4096]
        spec = {"level": level, "sizes": sizes, "immediate": immediate}
        found = point(model, "messages", spec, tmp_path)
        good = "IMMEDIATE" if immediate else "OK"
        assert found["drops"] == [{}, {}]
        for size, received, sent, same, word in found["found"]:
            assert (received, sent, same) == ([good, size], ["OK", size], True)
            assert word == ("abcd" if immediate else None)
