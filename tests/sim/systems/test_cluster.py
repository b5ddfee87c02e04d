"""A cluster of real blocks: configuration, both register ports, bytes from memory to memory."""

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, RouterConfig
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.sim.errors import SimulationError
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import ClusterConfig, cluster_preset, cluster_preset_names

pytestmark = pytest.mark.xdist_group("tiny")


def point(model, config, name, folder, spec=None, seed=1):
    return run(
        model,
        *config.job(f"support.sim.sim_points:{name}", spec or {}),
        out_dir=folder,
        seed=seed,
    )


def test_config_errors():
    """Wrong configurations are one line."""
    with pytest.raises(
        ConfigError,
        match=r"^ClusterConfig: unknown preset 'huge'; valid presets: tiny, lanai4, lanai7, iba, via5, lanai41$",
    ):
        cluster_preset("huge")
    with pytest.raises(ConfigError, match=r"^ClusterConfig: router.link and nic.link differ"):
        ClusterConfig(router=cluster_preset("tiny").router)
    with pytest.raises(ConfigError, match=r"^ClusterConfig.memory_bytes = 5000: "):
        ClusterConfig(memory_bytes=5000)
    with pytest.raises(
        ConfigError,
        match=r"^ClusterConfig.firmware = 'mgm': unknown firmware program 'mgm'; valid programs: am, gm, via, "
        r"work_queue$",
    ):
        ClusterConfig(firmware="mgm")
    with pytest.raises(ConfigError, match=r"raise link.hop_bits$"):
        ClusterConfig(nodes=17)
    with pytest.raises(ConfigError, match=r"^ClusterConfig: chain = \[2, 2\]: 4 nodes, but nodes = 3$"):
        ClusterConfig(chain=(2, 2))


def test_router_has_a_port_for_every_node():
    """More nodes than the router's ports raise their number; fewer do not lower it."""
    assert ClusterConfig(nodes=9).network.router.ports == 9
    assert ClusterConfig(nodes=2).network.router.ports == 4


@pytest.mark.parametrize("name", cluster_preset_names())
def test_either_end_of_every_link_may_be_reset_alone(name):
    """The links are those of cards and of routers, and links that a user makes, unless they say otherwise."""
    config = cluster_preset(name)
    assert config.nic.link.restart is config.network.router.link.restart is True
    mine = LinkConfig(flit_bits=64, vls=2)
    config = config.replace(router=RouterConfig(link=mine), nic=NicConfig(link=mine))
    assert config.nic.link.restart is config.network.router.link.restart is True
    mine = mine.replace(restart=False)
    config = config.replace(router=RouterConfig(link=mine), nic=NicConfig(link=mine))
    assert config.nic.link.restart is config.network.router.link.restart is False
    with pytest.raises(ConfigError, match=r"^ClusterConfig: router.link and nic.link differ"):
        config.replace(nic=NicConfig())


def test_a_chain_of_routers_has_ports_for_nodes_and_neighbours():
    network = ClusterConfig(nodes=7, chain=(3, 4)).network
    assert network.routers == 2 and network.router.ports == 6
    assert [place[0] for place in network.nodes] == [0, 0, 0, 1, 1, 1, 1]
    assert len(network.path(0, 6)) == 2 and len(network.path(0, 2)) == 1


def test_second_build_is_instant(tiny, tiny_config):
    """Another watchdog limit is the same model; a known one needs no elaboration."""
    again = tiny_config.replace(watchdog_cycles=7).build()
    assert again.cached and again.seconds < 3 and again.executable == tiny.executable


def test_register_ports(tiny, tiny_config, tmp_path):
    """A processor's write takes 1 cycle and its read 2; the host's go over the bus."""
    times = point(tiny, tiny_config, "access_times", tmp_path).value
    assert times["processor_write"] == [1, None]
    assert times["processor_read"] == [2, 0x1234]
    assert times["host_read"][1] == 0xDEADBEEF
    assert times["host_id"][1] >> 16 == 0x4C4E
    # Arbitration 2 and address 1 before the card sees the access.
    assert all(times[name][0] > 3 for name in ("host_write", "host_read", "host_id"))


def test_bytes_from_memory_to_memory(tiny, tiny_config, tmp_path):
    """Packets through DMA, link and router, byte for byte; a watch elsewhere is not woken; the same run again
    takes the same cycles."""
    spec = {"count": 20, "bytes": 128}
    first = point(tiny, tiny_config, "packets", tmp_path, spec).value
    assert first["equal"] and first["dropped"] == 0 and first["woken"] == []
    assert point(tiny, tiny_config, "packets", tmp_path, spec).value == first


def test_refused_programmed_io(tiny, tiny_config, tmp_path):
    """An access that the card answers with an error is a BusError with node and address."""
    with pytest.raises(
        SimulationError, match=r"^BusError: node 0: the NIC refused a write to 0x7ff000 \(log: "
    ):
        point(tiny, tiny_config, "bad_programmed_io", tmp_path, {"address": 0x7FF000})


def test_processes_of_a_host_take_turns_at_the_bus(tiny, tiny_config, tmp_path):
    """A process that writes back to back keeps no other from the card: each has the bus once between two accesses of
    another. One that is ended while it waits does not keep the bus."""
    ran = point(tiny, tiny_config, "turns", tmp_path).value
    assert ran["longest"] <= 4 * ran["alone"] + 4
    assert ran["writers"] == [True, True]


def test_words_written_together(tiny, tiny_config, tmp_path):
    """The words take the cycles that they take one by one, also while somebody else has the bus, with three wake-ups at
    most. The first that is refused ends them. Words that are read together are those, in those cycles, too."""
    ran = point(tiny, tiny_config, "words_together", tmp_path).value
    assert ran["ended"]["together"] == ran["ended"]["one by one"]
    assert ran["ended"]["first"] == ran["ended"]["second"] > 10
    assert ran["wakeups"] <= 3
    assert ran["read"] == [100, 101, 102, 103] * 2
    assert ran["refused"] == [
        "node 0: the NIC refused a write to 0x7ff000",
        f"address {SRAM_BASE + 2:#x}: a multiple of 4",
    ]
    assert ran["before"] == 1
