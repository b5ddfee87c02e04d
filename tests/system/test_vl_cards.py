"""Cards of the profile `iba` on a router with 4 VLs: packet buffers of each VL at every port, tables, credits."""

import pytest
from lanikai.hdl.config import LinkConfig, NicConfig, RouterConfig, preset
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset

LINK = preset(LinkConfig, "iba", vls=4)
CONFIG = cluster_preset(
    "iba",
    nodes=2,
    router=preset(RouterConfig, "iba", link=LINK, ports=2),
    nic=preset(NicConfig, "iba", link=LINK, send_queue_entries=4),
    memory_bytes=1 << 20,
    watchdog_cycles=200_000,
)


@pytest.fixture
def exchange(tmp_path):
    def measure(**spec):
        job = CONFIG.job("support.system.vl_cards:exchange", {"held": None, "until": 0, **spec})
        found = run(CONFIG.build(), *job, out_dir=tmp_path, seed=1).value
        # Whole, in order in each VL, all of them, and all credits are home.
        for vl, wanted in enumerate(spec["packets"]):
            assert [number for v, number in found["came"] if v == vl] == list(range(wanted))
        assert found["equal"] and found["dropped"] == 0 and found["credits_out"] == [0, 0]
        assert found["waiting"] == {"room": 0b1111, "waiting": 0}
        assert found["errors"] == [{"packets": 0}, {"packets": 0}]
        return found

    return measure


@pytest.mark.full
def test_a_vl_that_is_held_holds_up_no_other_over_the_router(exchange):
    found = exchange(weights=[1] * 4, packets=[12] * 4, held=0, until=36)
    # All of the others came while VL 0 waited at its receiver, in the router and at its sender.
    assert found["held"] == {"receiver": {"hold": 1, "waiting": 1}, "came": 0}


@pytest.mark.full
def test_vls_share_the_link_by_the_cards_tables(exchange):
    """The shares are within 1% of the link, while all have packets: an entry's weight is flits."""
    weights = [1, 2, 4, 8]
    found = exchange(weights=weights, packets=[24 * weight for weight in weights])
    # Not the first frames, in which the buffers fill, nor the last ones, in which they run empty.
    window = [vl for vl, _ in found["came"]][60:300]
    for vl, weight in enumerate(weights):
        assert abs(window.count(vl) / len(window) - weight / 15) <= 0.01, f"VL {vl}"
