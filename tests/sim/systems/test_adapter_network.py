"""Networks of host channel adapters, in composed simulations: every byte, the same results whatever runs them."""

import re
from pathlib import Path
from random import Random

import pytest
from lanikai.hdl.config import ConfigError, HcaConfig, LinkConfig, RouterConfig, preset
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
    def played(spec, *, point="workload", seed=1, config=None, threads=ONE_THREAD):
        config = config or adapters()
        entry, job = config.job(f"support.sim.adapter_points:{point}", spec)
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


def test_nobody_is_told_of_a_completion_that_nobody_waits_for(play):
    """Eight arrivals; eight ends of sends are found in their queue all the same."""
    assert play({}, point="told") == [8, 8]


def test_the_example_of_the_page(play):
    text = (Path(__file__).parents[3] / "docs" / "hca.md").read_text()
    code = re.search(r"```python\n(from lanikai.*?)```", text, re.DOTALL)
    assert code
    assert play({"text": code[1]}, point="example") == [7, "hello"]


def test_the_same_on_threads(play):
    spec = {"messages": 20, "gap_cycles": 100}
    first = play(spec, seed=7)
    for threads in (2, 3):
        assert play(spec, seed=7, threads=Threads(threads, asked=True)) == first


@pytest.mark.parametrize("wqe", ["fetched", "posted"])
@pytest.mark.parametrize("writes", [1_000, pytest.param(40_000, marks=pytest.mark.full)])
def test_what_a_process_writes_into_its_page_changes_nothing_of_anothers(play, writes, wqe):
    """All messages of the others arrive with their bytes (40,000 writes at each of three hosts)."""
    seed = Random(8).randrange(1 << 31)
    print("seed", seed)
    messages = max(20, writes // 100)
    spec = {"messages": messages, "gap_cycles": 200, "hostile_writes": writes, "check": wqe == "posted"}
    found = play(spec, seed=seed, config=adapters(wqe=wqe))
    assert len(found) == 3 * messages


@pytest.mark.full
def test_a_hundred_thousand_messages_at_full_load(play):
    """Sixteen adapters of the document's size, 6,250 messages each, as soon as there is room: each arrives once, with
    its bytes, and nothing is under way at the end."""
    config = AdapterNetworkConfig.on(
        named_network("mesh4x4", preset(RouterConfig, "yum2006")), preset(HcaConfig, "yum2006")
    )
    found = play({"messages": 6_250, "gap_cycles": 2}, config=config)
    assert len(found) == 100_000


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


def test_more_nodes_than_the_tables_have_rows_are_refused():
    """`on` gives the adapters as many as it takes."""
    config = adapters("mesh9x9")
    assert config.hca.destinations == 81
    with pytest.raises(
        ConfigError,
        match=r"^AdapterNetworkConfig: hca.destinations = 64: at least 81, the network's nodes$",
    ):
        config.replace(hca=config.hca.replace(destinations=64))


def test_more_buffers_than_self_tuned_counts_are_refused():
    router = RouterConfig(link=LinkConfig(flit_bits=128, vls=16), vl_arbiter="round_robin")
    with pytest.raises(
        ConfigError,
        match=r"^AdapterNetworkConfig: hca.injection = 'self_tuned': 36000 VL buffers of routers and adapters: at most "
        r"32767$",
    ):
        AdapterNetworkConfig.on(named_network("mesh20x20", router), HCA.replace(injection="self_tuned"))


def test_a_network_without_credits_for_adapters_is_refused():
    config = adapters()
    with pytest.raises(
        ConfigError,
        match=r"^AdapterNetworkConfig: network.node_buffer_flits = 3: must be 12, the adapter's buffer of each VL "
        r"\(receive_packets x packet_flits\)$",
    ):
        config.replace(network=config.network.replace(node_buffer_flits=3))
