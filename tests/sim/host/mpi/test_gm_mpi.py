"""MPI over GM on plain Python cards: the protocols on real tokens, buffers and rings; bandwidth by attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from lanikai.firmware.gm.wire import unpack_flow
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.packet import Kind
from lanikai.sim.bandwidth.errors import ManagerSilentError, NotHeldError, RefusedError
from lanikai.sim.bandwidth.pace import Pace
from lanikai.sim.host.mpi.comm.intracomm import Intracomm
from lanikai.sim.host.mpi.config import MpiConfig, MpiCosts
from lanikai.sim.host.mpi.data.request import Request
from lanikai.sim.host.mpi.data.status import Status
from lanikai.sim.host.mpi.envelope import HEADER_BYTES
from lanikai.sim.host.mpi.errors import QosError, RankError, TransportError
from lanikai.sim.host.mpi.estimate import fragments, mpi_mb_per_s, need, packets, peak_mb_per_s, raw_mb_per_s
from lanikai.sim.host.mpi.gm_transport import Place, open_transports
from lanikai.sim.host.mpi.matching import ANY_SOURCE, ANY_TAG
from lanikai.sim.host.mpi.qos import QOS, QosRequest, attach_bandwidth
from lanikai.sim.host.mpi.world import idt_between, start_mpi
from support.firmware.python_cluster import Cluster
from support.sim.gm_ranks import run

LANAI4 = MpiConfig()


async def exchange(world: Intracomm) -> list[tuple[int, int, int]]:
    """Have everybody send everybody messages of all kinds of lengths. Returns the messages that came, in order."""
    lengths = [0, 1, 480, 481, 5000, 3]
    buffers = {}
    for source in range(world.size):
        for tag, length in enumerate(lengths):
            buffers[source, tag] = bytearray(length + 1)
    receives = [
        await world.Irecv(buffer, source, tag)
        for (source, tag), buffer in sorted(buffers.items(), key=lambda item: -item[0][1])
    ]
    sends = [
        await world.Isend(bytes([world.rank * 16 + tag]) * length, target, tag)
        for target in range(world.size)
        for tag, length in enumerate(lengths)
    ]
    await Request.Waitall(sends)
    statuses: list[Status] = []
    await Request.Waitall(receives, statuses)
    for (source, tag), buffer in buffers.items():
        assert buffer == bytes([source * 16 + tag]) * lengths[tag] + b"\0"
    return sorted((one.source, one.tag, one.length) for one in statuses)


@pytest.mark.parametrize("nodes", [[0, 1, 2], [0, 0, 1], [2, 1, 2, 1]])
def test_everybody_to_everybody(nodes) -> None:
    """Messages are longer than all buffers of a tiny card's port, which has 8 receive tokens. There are ranks of one
    node, too."""
    found = run(Cluster(3, nic={"flows": 16}), exchange, nodes)
    size = len(nodes)
    expected = sorted((s, t, n) for s in range(size) for t, n in enumerate([0, 1, 480, 481, 5000, 3]))
    assert found == [expected] * size


def test_more_ranks_than_buffers_and_packets_that_are_lost() -> None:
    lost = iter(range(10**6))
    cluster = Cluster(3, nic={"flows": 32}, drop=lambda header: next(lost) % 23 == 7)

    async def main(world: Intracomm) -> int:
        if world.rank:
            for number in range(5):
                await world.Send(bytes([number]) * 600, 0, 1)
                await world.Send(bytes([number]), 0, 1)
            return 0
        seen = [0] * world.size
        for _ in range(10 * (world.size - 1)):
            buffer = bytearray(600)
            status = Status()
            await world.Recv(buffer, ANY_SOURCE, ANY_TAG, status)
            number, kind = divmod(seen[status.source], 2)
            assert status.length == (1 if kind else 600) and buffer[0] == number
            seen[status.source] += 1
        return sum(seen)

    assert run(cluster, main, [0, 1, 2, 0, 1, 2, 1, 2])[0] == 70


def test_places_and_buffers_that_cannot_be() -> None:
    cluster = Cluster(2)
    small = MpiConfig.for_gm(cluster.gm_config, cluster.nic)

    async def main() -> None:
        for places, config, message in (
            ([Place(5, 0)], small, "rank 0 is to run on node 5: there are nodes 0, 1"),
            ([Place(1, 2)] * 2, small, "rank 1 is to have port 2 of node 1, as rank 0 has"),
            ([Place(0, 0)], LANAI4, "MpiConfig: 16 send buffers, but a port has 4 send tokens"),
            (
                [Place(0, 0)],
                small.replace(data_receives=9),
                "MpiConfig: 11 receive buffers, but a port has 8 receive tokens",
            ),
        ):
            with pytest.raises(ConfigError) as caught:
                await open_transports(cluster.gms, places, config)
            assert str(caught.value) == message and not cluster.gms[0]._ports

    cluster.run(main())


def test_a_message_to_a_rank_that_has_gone_is_an_error_and_others_are_none_of_this_layers() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        first, second = await start_mpi(cluster.gms)
        stranger = await cluster.gms[1].open_port(3)
        await stranger.send(await stranger.dma_malloc(4), node=0, port=0)
        await second.Send(b"hello", 0)
        buffer = bytearray(5)
        await first.Recv(buffer)
        assert buffer == b"hello"
        await second.process.transport.close()
        with pytest.raises(TransportError) as caught:
            await first.Send(b"x", 1)
            await first.Recv(buffer)
        assert re.fullmatch(
            r"rank 0 of the world: 3[23] bytes from port 0 of node 0 to port 0 of node 1 failed: port 0 of node 1 is "
            "not open",
            str(caught.value),
        )

    cluster.run(main())


def test_an_idt_is_that_of_the_fragments_flow() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        first, second = await start_mpi(cluster.gms)
        await idt_between(first, 1, 77)
        (flow,) = [f for f in cluster.programs[0].flows.values() if f.key.priority == 0]
        assert (flow.connection.node, flow.key.source_port, flow.key.target_port) == (1, 0, 0)
        assert cluster.cards[0].flows[flow.number].idt == 77
        _ = second

    cluster.run(main())


def test_what_a_message_is_on_the_wire() -> None:
    full = 16384 - HEADER_BYTES
    assert fragments(0, LANAI4) == [32] and fragments(full, LANAI4) == [16384]
    assert fragments(full + 1, LANAI4) == [32, 16384, 33]
    assert fragments(65536, LANAI4) == [32, 16384, 16384, 16384, 16384, 160]
    assert packets(65536, LANAI4, 4096) == 18 and packets(36000, LANAI4, 4096) == 10
    assert raw_mb_per_s(20.0, 65536, LANAI4, 4096) == 22.5
    assert mpi_mb_per_s(22.5, 65536, LANAI4, 4096) == 20.0


def test_the_estimate_is_what_is_sent() -> None:
    """The estimate is held against the bytes that the transport puts on the wire."""
    cluster = Cluster(2)

    async def main(world: Intracomm) -> list[int]:
        config = world.process.config
        for length in (0, 100, config.eager_bytes, config.eager_bytes + 1, 4000):
            if world.rank == 0:
                before = len(cluster.network.log)
                await world.Send(bytes(length), 1)
                await world.Recv(bytearray())  # the answer: all of it has arrived
                sent = [
                    header.length
                    for _, header in cluster.network.log[before:]
                    if header.source == 0
                    and header.kind is Kind.DATA
                    and unpack_flow(header.flow)[0].priority == 0
                ]
                assert len(sent) == packets(length, config, cluster.nic.mtu_bytes)
                assert sum(sent) == sum(fragments(length, config))
            else:
                await world.Recv(bytearray(length))
                await world.Send(b"", 0)
        return []

    run(cluster, main)


def test_what_sizes_need_of_packets_and_of_bytes() -> None:
    """In packets, sizes need full ones. In bytes, they need headers, and no packet counts less than a quarter of the
    mean one.

    There are as many packets as of GM messages of the mean size. Of 4069 bytes p = 2041, so that 82 bytes count as 510.
    """
    nic = preset(NicConfig, "lanai4")
    packets_pace, bytes_pace = Pace.of(nic), Pace.of(nic, by_bytes=True)
    mixed = [50, 50, 50, 16000]
    assert need(mixed, LANAI4, packets_pace).factor == (3 + 4) * 4096 / 16150
    assert need(mixed, LANAI4, packets_pace).message_bytes is None
    found = need(mixed, LANAI4, bytes_pace)
    assert (found.message_bytes, found.factor) == ((16150 + 128) // 4, (3 * 510 + 16032) / 16150)
    assert need([500], LANAI4, bytes_pace).factor == 532 / 500
    # 64 KB: an announcement, four fragments and 160 bytes; the short ones count as a quarter of 2981.
    found = need([65536], LANAI4, bytes_pace)
    assert (found.message_bytes, found.factor) == (10954, (4 * 16384 + 2 * 745) / 65536)
    assert need([65536], LANAI4, packets_pace).factor == 18 / 16


@dataclass
class Manager:
    """A bandwidth manager of one number."""

    left: float
    granted: list[tuple[int, int, float]] = field(default_factory=list)
    silent: bool = False

    async def request(
        self,
        node: int,
        port: int,
        mb_per_s: float,
        *,
        message_bytes: int | None = None,
        burst_bytes: int | None = None,
    ) -> Any:
        assert message_bytes is None and burst_bytes is None  # packets are charged
        if self.silent:
            raise ManagerSilentError("the manager of node 0 does not answer")
        if mb_per_s > self.left:
            raise RefusedError(
                f"node {node}: {self.left:g} MB/s left", where=f"node {node}", left_mb_per_s=self.left
            )
        self.left -= mb_per_s
        self.granted.append((node, port, mb_per_s))
        return self.granted[-1]

    async def release(self, grant: Any) -> None:
        if grant not in self.granted:
            raise NotHeldError("not held")
        self.granted.remove(grant)
        self.left += grant[2]
        if self.silent:  # as the manager has it: the flow has no standing, the master is told later
            raise ManagerSilentError("the master, on node 0, does not answer")


def test_bandwidth_by_attributes() -> None:
    cluster = Cluster(3)
    manager = Manager(left=20)

    async def main() -> None:
        worlds = await start_mpi(cluster.gms, first_port=1)
        world = worlds[0]
        with pytest.raises(QosError) as caught:
            await world.Set_attr(QOS, QosRequest(dest=1, mb_per_s=1))
        assert str(caught.value) == ("QOS on world: rank 0 has no bandwidth manager; attach_bandwidth first")
        attach_bandwidth(world, manager)
        mtu, config = cluster.nic.mtu_bytes, world.process.config
        size = 3000
        per_mb = raw_mb_per_s(1.0, size, config, mtu)

        def ask(destination: int, mb_per_s: float) -> QosRequest:
            return QosRequest(dest=destination, mb_per_s=mb_per_s, message_bytes=size)

        await world.Set_attr(QOS, [ask(1, 4.0), ask(2, 2.0)])
        answer = world.Get_attr(QOS)
        assert answer.granted and answer.reason == ""
        assert manager.granted == [(1, 1, 4.0 * per_mb), (2, 1, 2.0 * per_mb)]
        assert [flow.raw_mb_per_s for flow in answer.flows] == [4.0 * per_mb, 2.0 * per_mb]
        # Setting it again gives back what was held; refused is refused as a whole.
        await world.Set_attr(QOS, [ask(1, 4.0), ask(2, 24.0)])
        answer = world.Get_attr(QOS)
        assert not answer.granted and answer.flows == () and manager.granted == []
        assert answer.reason == f"node 2: {20 - 4 * per_mb:g} MB/s left"
        assert manager.left == pytest.approx(20)
        await world.Set_attr(QOS, ask(1, 1.0))
        with pytest.raises(RankError):
            await world.Set_attr(QOS, [ask(1, 2.0), ask(7, 1.0)])
        assert world.Get_attr(QOS).granted and len(manager.granted) == 1  # a bad request changes nothing
        await world.Delete_attr(QOS)
        assert world.Get_attr(QOS) is None
        # A silent manager is an error, and nothing stays set.
        manager.silent = True
        with pytest.raises(ManagerSilentError):
            await world.Set_attr(QOS, ask(1, 1.0))
        assert world.Get_attr(QOS) is None
        manager.silent = False
        # One that falls silent between: all flows are released, whichever release is not answered.
        await world.Set_attr(QOS, [ask(1, 4.0), ask(2, 2.0)])
        manager.silent = True
        with pytest.raises(ManagerSilentError):
            await world.Delete_attr(QOS)
        assert manager.granted == []
        await world.Delete_attr(QOS)  # there is nothing left to release
        assert world.Get_attr(QOS) is None

    cluster.run(main())


def test_bandwidth_goes_back_when_its_communicator_is_freed() -> None:
    cluster = Cluster(2)
    manager = Manager(left=20.0)

    async def main(world: Intracomm) -> None:
        copy = await world.Dup()
        if world.rank == 0:
            attach_bandwidth(world, manager)
            await copy.Set_attr(QOS, QosRequest(dest=1, mb_per_s=1.0, message_bytes=400))
            assert len(manager.granted) == 1
        again = await copy.Dup()
        assert again.Get_attr(QOS) is None  # a reservation is not copied
        await copy.Free()
        assert not manager.granted or world.rank

    run(cluster, main)
    assert manager.granted == []


def test_bandwidth_that_cannot_be_asked_for() -> None:
    cluster = Cluster(2)
    manager = Manager(left=20.0)

    async def main() -> None:
        world = (await start_mpi(cluster.gms, [0, 1, 0]))[0]
        attach_bandwidth(world, manager)
        process = world.process
        peak = peak_mb_per_s(65536, process.costs, process.config, cluster.gms[0].host)
        pace = Pace.of(cluster.nic)
        wrong: list[tuple[type[Exception], str, Any]] = [
            (RankError, "dest = 3: ranks are 0 to 2", QosRequest(dest=3, mb_per_s=1)),
            (
                QosError,
                "rank 2 is on this rank's node; messages to it do not use the network",
                QosRequest(dest=2, mb_per_s=1),
            ),
            (QosError, "set it to a QosRequest or a list of them", []),
            (QosError, "set it to a QosRequest or a list of them", 5.0),
            (QosError, "str is no QosRequest", ["x"]),
            (RankError, "dest = 1.0: a whole number", QosRequest(dest=1.0, mb_per_s=1)),  # type: ignore[arg-type]
            (QosError, "mb_per_s = '1': a number", QosRequest(dest=1, mb_per_s="1")),  # type: ignore[arg-type]
            (QosError, "mb_per_s = True: a number", QosRequest(dest=1, mb_per_s=True)),
            (QosError, f"mb_per_s = {10**400}: a number", QosRequest(dest=1, mb_per_s=10**400)),
            (QosError, "rank 1 is asked for twice", [QosRequest(dest=1, mb_per_s=1)] * 2),
            (
                QosError,
                "message_bytes = 0: 1 or more",
                QosRequest(dest=1, mb_per_s=1, message_bytes=0),
            ),
            (
                QosError,
                "message_bytes = []: a size, or a list of sizes",
                QosRequest(dest=1, mb_per_s=1, message_bytes=[]),
            ),
            (
                QosError,
                "message_bytes = -1: 1 or more",
                QosRequest(dest=1, mb_per_s=1, message_bytes=[9, -1]),
            ),
            (
                QosError,
                "message_bytes = 1.5: a whole number",
                QosRequest(dest=1, mb_per_s=1, message_bytes=[1.5]),  # type: ignore[list-item]
            ),
            (
                QosError,
                "burst_bytes = 0: a whole number of bytes, 1 to 2147483647",
                QosRequest(dest=1, mb_per_s=1, burst_bytes=0),
            ),
            (
                QosError,
                "burst_bytes = 9000: for messages of one size alone",
                QosRequest(dest=1, mb_per_s=1, message_bytes=[1, 2], burst_bytes=9000),
            ),
            (
                QosError,  # a packet each, of a peak of full ones
                f"1 MB/s to rank 1: at most {pace.peak / cluster.nic.mtu_bytes / 1e6:.3f} in messages of 1 "
                "bytes, as a packet counts as a full one",
                QosRequest(dest=1, mb_per_s=1, message_bytes=1),
            ),
        ]
        for mb_per_s in (0, -3, peak * 1.01, float("nan")):
            what = (
                f"{mb_per_s:g} MB/s to rank 1: above 0 and at most {peak:.1f}, which is what a rank can do with "
                "messages of 65536 bytes"
            )
            wrong.append((QosError, what, QosRequest(dest=1, mb_per_s=mb_per_s)))
        for kind, message, value in wrong:
            with pytest.raises(kind) as caught:
                await world.Set_attr(QOS, value)
            assert str(caught.value) == f"QOS on world: {message}"
        assert manager.granted == []

    cluster.run(main())


def test_the_host_lets_through_what_the_fit_says() -> None:
    """The host lets through 2.5% more than a packet every 140 ticks, 18 of them for 64 KB (config.py)."""
    from lanikai.sim.host.config import HostConfig

    peak = peak_mb_per_s(65536, MpiCosts(), LANAI4, HostConfig())
    knee = 65536 / (18 * 140 * 0.5)
    assert 1.015 * knee < peak < 1.035 * knee
