"""Admission on two routers and two adapters: forged control packets, and agents that all have something to send."""

import pytest
from lanikai.hdl.hca.layout import CqeStatus
from lanikai.hdl.network import mesh
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from support.sim.admission_networks import ADMISSION, HCA, ROUTER


@pytest.fixture
def play(tmp_path):
    def played(point, **spec):
        config = AdapterNetworkConfig.on(mesh(2, 1, router=ROUTER), HCA)
        entry, job = config.job(f"support.sim.admission_attacks:{point}", spec | {"admission": ADMISSION})
        return run(config.build(), entry, job, out_dir=tmp_path, seed=1, threads=ONE_THREAD).value

    return played


@pytest.mark.full
def test_forged_control_packets_change_no_ledger(play):
    """A process knows all of a request. It sends what would be answers, probes and releases, as data and as they are,
    on three of its VLs and on VL 15."""
    found = play("forged")
    print({name: found[name] for name in ("sent", "statuses", "drops")})
    assert found["before"][3] == "OPEN"
    assert found["after"] == found["before"]
    # As data on its own VLs they leave, and the other adapter drops them. Other kinds, and VL 15, are refused at once.
    data = found["sent"] // 2 * 3 // 4
    assert found["statuses"] == [[CqeStatus.OK, data], [CqeStatus.FORMAT, found["sent"] - data]]
    assert found["drops"] == data == 18


@pytest.mark.full
@pytest.mark.parametrize("deaf", [False, True])
def test_agents_that_send_to_each_other_do_not_wait_in_a_circle(play, deaf):
    """Both nodes ask for many connections at once: each agent has probes for the other one. Agents that take nothing
    while they wait to send do wait in a circle."""
    found = play("both_ways", requests=24, limit_cycles=60_000, deaf=deaf)
    print(found)
    assert (found["states"] == ["OPEN"]) is not deaf
