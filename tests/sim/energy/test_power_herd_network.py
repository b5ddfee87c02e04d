"""PowerHerd in a network: what routers lend each other is neither lost nor made, and no window is above the budget."""

from random import Random
from types import SimpleNamespace

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.network import mesh
from lanikai.hdl.network_component import NetworkComponent
from lanikai.hdl.router import power_herd
from lanikai.hdl.router.power_herd import PowerHerd
from lanikai.sim.build.model import build
from lanikai.sim.build.power_wires import add_power_wires
from lanikai.sim.run import run
from lanikai.sim.systems import traffic_top
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from support.formal.harness import mutate

WINDOW, BUDGET, SHARE = 60, 40, 5
ROUTER = RouterConfig(
    link=LinkConfig(flit_bits=64, vls=2, rate_num=1, rate_den=1),
    ports=5,
    input_buffer_flits=4,
    output_buffer_flits=4,
    power_budget=BUDGET,
    power_window_cycles=WINDOW,
    power_share=SHARE,
)
NETWORK = mesh(3, 2, router=ROUTER)
CLASSES = [
    {"mode": "on_off", "load": 0.9, "packet_flits": 6, "on_cycles": 120, "off_cycles": 400},
    {"load": 0.05, "packet_flits": 5, "vl_first": 1},
]
CONFIG = TrafficNetworkConfig(network=NETWORK, classes=len(CLASSES))


def play(tmp_path, config=CONFIG, *, seed, cycles=4000, model=None):
    spec = {"classes": CLASSES, "cycles": cycles, "rest_cycles": 2 * WINDOW + 200}
    entry, job = config.job("support.sim.herd_points:credits", spec)
    return run(model or config.build(), entry, job, out_dir=tmp_path, seed=seed).value


def check(found, *, seed):
    """Every rule in every cycle, and that the run has put each to the test."""
    lent_once, above, tight = set(), 0, 0
    borrowed_until = [-WINDOW] * NETWORK.routers
    for cycle, rows in enumerate(found["rows"]):
        told = f"seed {seed}, cycle {cycle}: {rows}"
        # `power_used` is the sum of the last `WINDOW` cycles: here all windows come by.
        assert sum(row[0] for row in rows) <= NETWORK.routers * BUDGET, told
        above += any(row[0] > BUDGET for row in rows)
        for router, (used, lent, borrowed, _) in enumerate(rows):
            if borrowed:
                borrowed_until[router] = cycle
            elif borrowed_until[router] + WINDOW < cycle:
                assert used <= BUDGET - SHARE * lent.bit_count(), told
                tight += lent and used > BUDGET - SHARE * lent.bit_count() - 2 * ROUTER.ports
            for port in range(ROUTER.ports):
                if lent >> port & 1:
                    lent_once.add((router, port))
                if borrowed >> port & 1:
                    lender, its_port = NETWORK.neighbours[router, port]
                    assert rows[lender][1] >> its_port & 1, told
    assert above and tight and lent_once and lent_once <= set(NETWORK.neighbours)
    # At rest all is home again.
    assert [row[:3] for row in found["rows"][-1]] == [[0, 0, 0]] * NETWORK.routers
    assert all(row[3] for row in found["rows"][-1])


def test_no_window_is_above_the_budget_of_all(tmp_path):
    """Composed, where routers that rest are passed over."""
    seed = Random(21).randrange(1 << 31)
    print("seed", seed)
    check(play(tmp_path, seed=seed), seed=seed)


@pytest.mark.full
def test_the_same_as_one_model(tmp_path):
    """Each credit of each router, in every cycle."""
    seed = Random(22).randrange(1 << 31)
    print("seed", seed)
    composed = play(tmp_path / "composed", seed=seed)
    check(composed, seed=seed)
    assert play(tmp_path / "one", CONFIG.replace(composed=False), seed=seed) == composed


def lent_for_too_short(monkeypatch):
    old, new = "(lent[p], lends[p], 2 * window)", "(lent[p], lends[p], window)"
    monkeypatch.setattr(power_herd, "PowerHerd", mutate(PowerHerd, old, new))


def nothing_is_missed(monkeypatch):
    old, new = "self.used + worst + share * sum(count != 0 for count in lent)", "self.used + worst"
    monkeypatch.setattr(power_herd, "PowerHerd", mutate(PowerHerd, old, new))


def given_to_another(monkeypatch):
    """A share that is lent to the neighbour at a port is taken at another port."""

    def turned(m, network, top):
        places = dict(zip(network.neighbours, reversed(network.neighbours.values()), strict=True))
        return add_power_wires(m, SimpleNamespace(**dict(network) | {"neighbours": places}), top)

    monkeypatch.setattr(traffic_top, "add_power_wires", turned)


@pytest.mark.full
@pytest.mark.parametrize("break_it", [lent_for_too_short, nothing_is_missed, given_to_another])
def test_a_mutant_that_makes_credits_is_caught(tmp_path, monkeypatch, break_it):
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        check(play(tmp_path, seed=3, model=build(CONFIG.design())), seed=3)


def test_wires_go_to_the_neighbour_at_each_port():
    """A network that is one module joins the same wires, port to port."""
    text = to_verilog(NetworkComponent(NETWORK), name="network")
    assert text.count(".power_neighbour_gives(") == text.count(".power_neighbour_needs(") == 6
