"""Energy of a network: prices are exact, and packets say the same activity as the routers' counters do."""

from random import Random

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.sim.energy.activity import Activity, activity_of_packets, router_links
from lanikai.sim.energy.table import EnergyTable, _attojoules, published_energy
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.run import run
from lanikai.sim.systems.message_config import MessageNetworkConfig

ROUTER = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=2),
    ports=5,
    input_buffer_flits=4,
    output_buffer_flits=4,
    activity_counters=True,
)
NETWORK = named_network("mesh2x2", ROUTER)
CONFIG = MessageNetworkConfig(network=NETWORK)


@pytest.fixture
def play(tmp_path):
    def played(point, spec=None, *, seed=1, config=CONFIG):
        entry, job = config.job(f"support.sim.energy_points:{point}", spec or {})
        return run(config.build(), entry, job, out_dir=tmp_path, seed=seed).value

    return played


def test_prices_are_those_of_the_document():
    """Whole attojoules: 31.125 pJ, 27.075, 6.10086, 68.475, 10.21 a bit."""
    assert published_energy() == EnergyTable(
        buffer_read=31_125_000,
        buffer_write=27_075_000,
        arbitration=6_100_860,
        crossbar=68_475_000,
        link_per_bit=10_210_000,
    )


def test_prices_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"^EnergyTable\.crossbar = -1: at least 0 attojoules$"):
        EnergyTable(buffer_read=1, buffer_write=1, arbitration=1, crossbar=-1, link_per_bit=1)
    with pytest.raises(ValueError, match=r"^0\.0000001 pJ: a whole number of attojoules$"):
        _attojoules("0.0000001")


def test_a_flits_energy_is_the_documents_formula():
    """E_packet = (E_router (D + 1) + E_link D) N, and a decision a packet and router for its VL."""
    energies, flits = published_energy(), 40
    (there,) = [node for node in range(4) if len(NETWORK.path(0, node)) == 3]
    activity = Activity.total(activity_of_packets(NETWORK, [(0, there, flits)]))
    router = 2 * (energies.buffer_read + energies.buffer_write) + energies.crossbar + 3 * energies.arbitration
    expected = (3 * router + 2 * 32 * energies.link_per_bit) * flits + 3 * energies.arbitration
    assert activity.attojoules(energies, flit_bits=32) == expected


def test_packets_say_the_same_as_the_counters(play):
    """Every count of every router is equal, and so is the energy. What single readings have adds up to it."""
    seed = Random(11).randrange(1 << 31)
    print("seed", seed)
    found = play("random_messages", {"messages": 40, "gap_cycles": 30, "interval_cycles": 250}, seed=seed)
    assert len(found["messages"]) == 160 and len(found["readings"]) > 5
    expected = activity_of_packets(NETWORK, found["messages"])
    counted = [
        Activity.total(Activity.from_list(reading[router]) for reading in found["readings"])
        for router in range(NETWORK.routers)
    ]
    assert counted == expected
    whole = Activity.total(counted)
    assert whole.link_flits and whole.link_flits < whole.crossbar_flits
    energies = published_energy()
    assert whole.attojoules(energies, flit_bits=32) == Activity.total(expected).attojoules(
        energies, flit_bits=32
    )
    # Nothing moves any more.
    assert found["readings"][-1] == [[0] * 5] * NETWORK.routers


def test_links_of_nodes_are_none_between_routers():
    """A router of the 2 x 2 mesh has two neighbours."""
    for router in range(4):
        ports = router_links(NETWORK, router)
        assert len(ports) == 2
        assert not any((router, port) in NETWORK.nodes for port in ports)


def test_a_meter_needs_counters(play):
    config = MessageNetworkConfig(network=named_network("mesh2x2", ROUTER.replace(activity_counters=False)))
    with pytest.raises(SimulationError, match=r"RouterConfig\.activity_counters = False"):
        play("no_counters", config=config)


def test_a_meter_is_not_read_too_late(play):
    with pytest.raises(SimulationError, match=r"read after \d+ cycles: at most 214748364, as counters go"):
        play("read_too_late")
