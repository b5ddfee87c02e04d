"""Hosts are started as the registries and `ClusterConfig.firmware` say, or refused: on plain Python cards."""

import pytest
from lanikai.firmware import programs
from lanikai.firmware.gm import GmConfig, GmProgram
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.measure.gm_hosts import start_gm
from lanikai.sim.experiments.measure.hosts import open_programs, start_hosts
from lanikai.sim.experiments.measure.kit_hosts import start_kit
from lanikai.sim.host.config import HostConfig, KitConfig
from lanikai.sim.host.interfaces import INTERFACES
from support.sim.python_nodes import Nodes


@pytest.fixture
def nic():
    """A card that GM fits."""
    return preset(NicConfig, "lanai4")


class DearGm(GmProgram):
    """GM whose every step costs ten times as much."""

    default_costs = GmProgram.default_costs.replace(
        **{step: 10 * cycles for step, cycles in GmProgram.default_costs.table.items()}
    )


def sent_cycle(cluster):
    """The cycle in which a message from node 0 has come to node 1."""
    first, second = start_gm(cluster)

    async def main():
        out, into = await first.open_port(0), await second.open_port(0)
        await into.provide_receive_buffer(await into.dma_malloc(64))
        buffer = await out.dma_malloc(64)
        buffer.write(bytes(range(64)))
        await out.send(buffer, node=1, port=0)
        assert (await into.receive()).read() == bytes(range(64))
        return cluster.world.cycle

    return cluster.world.run(main())


def test_the_named_program_is_the_one_that_runs(nic, monkeypatch):
    monkeypatch.setitem(programs.PROGRAMS, "dear", DearGm)
    usual, dear = Nodes("gm", nic), Nodes("dear", nic)
    assert sent_cycle(dear) > 2 * sent_cycle(usual)
    assert [type(part) for part in dear.watched[::2]] == [DearGm] * 2
    assert [type(part).__name__ for part in usual.watched] == ["GmProgram", "Gm"] * 2


def test_started_programs_and_their_configuration_are_the_caller_s(nic):
    cluster, started = Nodes("gm", nic), []
    gm = GmConfig.for_nic(nic, send_tokens=5)
    hosts = start_hosts(cluster, "gm", config=gm, costs=HostConfig(send_ns=7), started=started.append)
    assert [program.gm for program in started] == [host.gm for host in hosts] == [gm] * 2
    assert [host.host.send_ns for host in hosts] == [7, 7]


def test_ranks_are_opened_on_nodes_and_watched(nic):
    cluster = Nodes("gm", nic)
    hosts = start_hosts(cluster, "mpi")

    async def main():
        return await open_programs(cluster, "mpi", hosts, [1, 0], first_port=2)

    worlds = cluster.world.run(main())
    assert [world.process.transport.gm.node for world in worlds] == [1, 0]
    assert cluster.watched[4:] == [world.process for world in worlds]


@pytest.mark.parametrize(
    ("firmware", "start", "says"),
    [
        (
            "work_queue",
            start_gm,
            "ClusterConfig.firmware = 'work_queue': it speaks work queues, the host interface 'gm' needs gm: "
            "one of: gm",
        ),
        (
            "gm",
            start_kit,
            "ClusterConfig.firmware = 'gm': it speaks gm, the host interface 'kit' needs work queues: "
            "one of: work_queue",
        ),
        (None, start_gm, "ClusterConfig.firmware = None: the host interface 'gm' needs one of: gm"),
        (
            "gm",
            lambda cluster: start_hosts(cluster, "gm", costs=KitConfig()),
            "KitConfig: not what calls of the host interface 'gm' cost; it takes HostConfig",
        ),
    ],
)
def test_what_cannot_be_started_as_named_is_refused(nic, firmware, start, says):
    cluster = Nodes(firmware, nic)
    with pytest.raises(ConfigError) as refused:
        start(cluster)
    assert str(refused.value) == says and not cluster.watched


def test_an_unknown_interface_or_setting_is_refused(nic):
    cluster = Nodes("gm", nic)
    with pytest.raises(
        UserError, match=r"^unknown host interface 'ib'; valid interfaces: am, gm, kit, mpi, via$"
    ):
        start_hosts(cluster, "ib")

    async def main():
        await open_programs(cluster, "gm", start_hosts(cluster, "gm"), first_port=1)

    with pytest.raises(TypeError, match=r"^GmInterface has no settings: first_port$"):
        cluster.world.run(main())


@pytest.mark.parametrize("name", INTERFACES)
def test_every_interface_has_a_program_that_speaks_to_it(name):
    assert INTERFACES[name].speaks in {program.speaks for program in programs.PROGRAMS.values()}
