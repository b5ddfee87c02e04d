"""E_packet and L_packet against the document's formulas."""

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig, preset
from lanikai.sim.energy.budget import check_budget, flit_energies_pj, path_cycles
from lanikai.sim.energy.table import published_energy
from lanikai.sim.experiments.measure.named_networks import named_network

NETWORK = named_network("mesh4x4", preset(RouterConfig, "yum2006"))
NODE, FLITS = 5, 40
E_ROUTER = 2 * 31.125 + 2 * 27.075 + 68.475 + (3 + 1 / FLITS) * 6.10086
"""Two buffers, the crossbar, three decisions a flit and one a packet; pJ."""
E_LINK = 128 * 10.21


def hops(there):
    return abs(there % 4 - NODE % 4) + abs(there // 4 - NODE // 4)


def test_a_flit_takes_what_its_way_says():
    found = flit_energies_pj(NETWORK, published_energy(), node=NODE, packet_flits=FLITS)
    assert set(found) == set(range(16)) - {NODE}
    for there, energy in found.items():
        exact = E_ROUTER * (hops(there) + 1) + E_LINK * hops(there)
        assert exact <= energy < exact + 1


def test_a_way_takes_the_cycles_of_an_idle_network():
    assert path_cycles(NETWORK, node=NODE, wait_cycles=7) == {
        there: (hops(there) + 1) * 5 - 1 + 7 for there in range(16) if there != NODE
    }


def test_a_budget_that_a_packet_never_fits_is_refused():
    energies = {1: 100, 3: 260, 2: 200}
    check_budget(260 * FLITS, energies, packet_flits=FLITS)
    with pytest.raises(ConfigError) as error:
        check_budget(260 * FLITS - 1, energies, packet_flits=FLITS)
    assert str(error.value) == (
        "budget = 10399 pJ: a packet of 40 flits to node 3 takes 10400 pJ, and would never begin"
    )
