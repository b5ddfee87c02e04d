"""Networks of host channel adapters, in composed simulations: every byte, the same results whatever runs them."""

from random import Random

import pytest
from lanikai.hdl.config import ConfigError, HcaConfig, RouterConfig, preset
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.machine import ONE_THREAD, Threads
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig

HCA = preset(HcaConfig, "tiny")
ROUTER = RouterConfig(link=HCA.link, ports=3, input_buffer_flits=4, output_buffer_flits=4)


def adapters(network="router3", **changes):
    return AdapterNetworkConfig.on(named_network(network, ROUTER), HCA.replace(**changes))


@pytest.fixture
def play(tmp_path):
    def played(spec, *, seed=1, config=None, threads=ONE_THREAD):
        config = config or adapters()
        entry, job = config.job("support.sim.adapter_points:workload", spec)
        return run(config.build(), entry, job, out_dir=tmp_path, seed=seed, threads=threads).value

    return played


def test_every_message_arrives_once_with_its_bytes(play):
    """A seed gives the same messages in the same cycles; another one gives others. Adapters that rest change
    nothing: their registers are looked at all the same (`check`)."""
    seed = Random(4).randrange(1 << 31)
    print("seed", seed)
    spec = {"messages": 30, "gap_cycles": 300, "check": True}
    first = play(spec, seed=seed)
    assert len(first) == 90
    assert play(spec | {"check": False}, seed=seed) == first
    assert play(spec, seed=seed + 1) != first


def test_the_same_on_threads(play):
    spec = {"messages": 20, "gap_cycles": 100}
    first = play(spec, seed=7)
    for threads in (2, 3):
        assert play(spec, seed=7, threads=Threads(threads, asked=True)) == first


@pytest.mark.parametrize("policy", ["alo", "self_tuned"])
def test_with_a_side_band(play, policy):
    """Messages arrive under injection control that hears of the network."""
    config = adapters("mesh2x2", injection=policy)
    assert len(play({"messages": 20, "gap_cycles": 60}, config=config)) == 80


def test_injection_control_without_its_side_band_is_refused():
    config = adapters(injection="alo")
    network = config.network.replace(router=config.network.router.replace(status_outputs=False))
    with pytest.raises(
        ConfigError,
        match=r"^AdapterNetworkConfig: hca.injection = 'alo': needs network.router.status_outputs = True, which tell "
        r"it of the network$",
    ):
        AdapterNetworkConfig(network=network, hca=config.hca)


def test_a_network_without_credits_for_adapters_is_refused():
    config = adapters()
    with pytest.raises(
        ConfigError,
        match=r"^AdapterNetworkConfig: network.node_buffer_flits = 3: must be 12, the adapter's buffer of each VL "
        r"\(receive_packets x packet_flits\)$",
    ):
        config.replace(network=config.network.replace(node_buffer_flits=3))
