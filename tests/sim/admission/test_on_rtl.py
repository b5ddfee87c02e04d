"""Admission on simulated routers and adapters: their registers, and last packets that free their paths."""

import pytest
from lanikai.hdl.network import mesh, single_router
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from support.sim.admission_networks import ADMISSION, HCA, ROUTER

NETWORKS = {
    "mesh": mesh(2, 2, router=ROUTER),
    "router": single_router(3, router=ROUTER),
}


@pytest.fixture
def play(tmp_path):
    def played(network, connections, *, power=None):
        spec = {
            "admission": ADMISSION,
            "connections": connections,
            "power": power,
            "messages": 5,
            "flits": 8,
        }
        config = AdapterNetworkConfig.on(NETWORKS[network], HCA)
        entry, job = config.job("support.sim.admission_points:connections", spec)
        return run(config.build(), entry, job, out_dir=tmp_path, seed=1, threads=ONE_THREAD).value

    return played


@pytest.mark.full
def test_connections_are_reserved_used_and_freed_on_a_mesh(play):
    """Node 0 to node 3 and node 1 to node 2 cross; a second connection to node 3 does not fit behind the first."""
    found = play("mesh", [[0, 3, 60], [1, 2, 30], [0, 1, 40], [2, 3, 50], [1, 3, 10]])
    states = [state[0] for state in found["states"]]
    # 60 and 50 do not fit on the link to node 3: one of the two is refused, whichever comes later.
    assert sorted((states[0], states[3])) == ["OPEN", "REFUSED"]
    assert [states[1], states[2], states[4]] == ["OPEN"] * 3
    refused = found["states"][states.index("REFUSED")]
    assert refused[1] == "LINK"
    print({name: found[name] for name in ("freed_cycles", "sent", "arrived", "records", "failed")})
    assert found["used"] == found["expected"] != found["before"]
    assert found["after"] == found["before"]
    before, opened, expected, after = found["adapters"]
    assert opened == expected != before == after
    assert found["sent"] == found["arrived"] == 20
    assert not (found["harmed"] or found["records"] or found["failed"])


@pytest.mark.full
def test_a_routers_power_budget_is_kept_in_its_register(play):
    connections = [[0, 1, 50], [1, 2, 40], [2, 0, 30]]
    found = play("router", connections, power=100)
    assert sorted(state[0] for state in found["states"]) == ["OPEN", "OPEN", "REFUSED"]
    assert [state[1:] for state in found["states"] if state[0] == "REFUSED"] == [["POWER", 0]]
    units = [c[2] for c, s in zip(connections, found["states"], strict=True) if s[0] == "OPEN"]
    assert found["used"][0][-1] == 100 - sum(units) and found["before"][0][-1] == 100
    assert found["after"] == found["before"]
