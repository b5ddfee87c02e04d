"""The energy of a network of adapters, twice: from its counters, and from what passes its links and buses alone."""

from random import Random
from types import SimpleNamespace

import pytest
from lanikai.hdl.config import HcaConfig, RouterConfig, preset
from lanikai.hdl.hca import hca as hca_module
from lanikai.hdl.hca.activity import ADAPTER_COUNTED, AdapterCounters
from lanikai.hdl.router import router as router_module
from lanikai.hdl.router.activity import ActivityCounters
from lanikai.sim.build.model import build
from lanikai.sim.energy.activity import Activity
from lanikai.sim.energy.adapter import AdapterActivity, AdapterEnergies
from lanikai.sim.energy.adapter_meter import AdapterMeter
from lanikai.sim.energy.flit_meter import LinkTally, adapter_activity, router_activity
from lanikai.sim.energy.table import published_energy
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from lanikai.sim.systems.adapters.network import AdapterNetwork
from support.formal.harness import mutate

HCA = preset(HcaConfig, "tiny").replace(activity_counters=True)
FLIT_BITS = HCA.link.flit_bits
ROUTER = RouterConfig(
    link=HCA.link, ports=5, input_buffer_flits=4, output_buffer_flits=4, activity_counters=True
)
CONFIG = AdapterNetworkConfig.on(named_network("mesh2x2", ROUTER), HCA, tally=True)
PRICES = AdapterEnergies.derived(published_energy(), flit_bits=FLIT_BITS)


@pytest.fixture
def play(tmp_path):
    def played(point="adapter_messages", *, messages=25, seed=1, config=CONFIG, model=None):
        entry, job = config.job(
            f"support.sim.energy_points:{point}", {"messages": messages, "gap_cycles": 60}
        )
        return run(model or config.build(), entry, job, out_dir=tmp_path, seed=seed).value

    return played


def energies(routers, adapters):
    """The energy of each router and of each adapter, attojoules."""
    table = published_energy()
    return (
        [Activity.from_list(one).attojoules(table, flit_bits=FLIT_BITS) for one in routers],
        [AdapterActivity.from_list(one).attojoules(PRICES) for one in adapters],
    )


def check(found, *, seed):
    """Every count of every router and adapter is equal, and so is its energy; all of them have counted."""
    for name in ("routers", "adapters"):
        assert found[name] == found[f"seen_{name}"], f"seed {seed}: {name}"
        assert all(all(one) for one in found[name]), f"seed {seed}: {name}: {found[name]}"
    counted = energies(found["routers"], found["adapters"])
    assert counted == energies(found["seen_routers"], found["seen_adapters"])


def test_flits_say_the_same_energy_as_the_counters(play):
    seed = Random(31).randrange(1 << 31)
    print("seed", seed)
    check(play(seed=seed), seed=seed)


@pytest.mark.full
def test_flits_say_the_same_of_many_messages(play):
    for number in range(5):
        seed = Random(32 + number).randrange(1 << 31)
        print("seed", seed)
        check(play(messages=400, seed=seed), seed=seed)


WRONG = {
    "a write into the output buffer is forgotten": (
        router_module,
        ActivityCounters,
        "+ arrived + crossed",
        "+ arrived",
    ),
    "a tail decides nothing": (
        router_module,
        ActivityCounters,
        "+ popped + crossed + sent + ended",
        "+ popped + crossed + sent",
    ),
    "a flit on a link counts twice": (
        router_module,
        ActivityCounters,
        "self.port_flits[p] + self.sent[p]",
        "self.port_flits[p] + (self.sent[p] << 1)",
    ),
    "what comes by the link is not counted": (hca_module, AdapterCounters, "range(events)", "range(1)"),
}
"""For each mutant the module that has the component, the component, what is changed, and to what."""


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG)
def test_a_counter_that_counts_wrong_is_caught(play, monkeypatch, name):
    module, component, old, new = WRONG[name]
    monkeypatch.setattr(module, component.__name__, mutate(component, old, new))
    with pytest.raises(AssertionError):
        check(play(model=build(CONFIG.design())), seed=1)


CAME = LinkTally(flits=70, tails=10, lasts=4, credits=69)
LEFT = LinkTally(flits=68, tails=9, lasts=3, credits=68)


def test_what_each_event_follows_from():
    none = LinkTally(flits=0, tails=0, lasts=0, credits=0)
    assert router_activity([CAME, none], [none, LEFT], to_routers=[1]) == Activity(
        buffer_writes=70 + 69,
        buffer_reads=69 + 68,
        arbitrations=69 + 69 + 68 + 9,
        crossbar_flits=69,
        link_flits=68,
    )
    assert router_activity([CAME, none], [none, LEFT], to_routers=[0]).link_flits == 0
    assert adapter_activity(CAME, LEFT, beats=11) == AdapterActivity(
        buffer_writes=70 + 68,
        buffer_reads=69 + 68,
        arbitrations=68,
        link_flits=70 + 68,
        bus_beats=11,
        queue_writes=3,
        queue_reads=3,
    )


def test_prices_of_an_adapter_follow_from_table_1():
    """Attojoules: a buffer's, an arbiter's, 128 bits of a link; 24 of 128 bits of a buffer."""
    assert (
        AdapterEnergies(
            buffer_writes=27_075_000,
            buffer_reads=31_125_000,
            arbitrations=6_100_860,
            link_flits=128 * 10_210_000,
            bus_beats=27_075_000 + 31_125_000,
            queue_writes=5_076_563,
            queue_reads=5_835_938,
        )
        == PRICES
    )
    one = AdapterActivity.from_list(range(1, 8))
    assert one.as_list() == list(range(1, 8))
    assert AdapterActivity.total([one, one]).as_list() == [2, 4, 6, 8, 10, 12, 14]
    assert one.attojoules(PRICES) == sum(
        number * getattr(PRICES, name) for number, name in enumerate(ADAPTER_COUNTED, start=1)
    )
    with pytest.raises(ValueError, match=r"^AdapterEnergies\.bus_beats = -1: at least 0 attojoules$"):
        AdapterEnergies(**vars(PRICES) | {"bus_beats": -1})


def test_meters_need_what_they_read():
    with pytest.raises(SimulationError, match=r"HcaConfig\.activity_counters = False"):
        AdapterMeter(HCA.replace(activity_counters=False), None, nodes=4, top="top")
    with pytest.raises(SimulationError, match=r"AdapterNetworkConfig\.tally = False"):
        AdapterNetwork.flit_meter(SimpleNamespace(config=CONFIG.replace(tally=False)))
