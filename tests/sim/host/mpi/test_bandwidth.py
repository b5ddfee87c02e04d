"""QoS attributes with the real bandwidth manager, GM and firmware, on plain Python cards.

Messages get the bandwidth that is asked for.
"""

from __future__ import annotations

import pytest
from lanikai.hdl.config import RouterConfig, preset
from lanikai.hdl.network import single_router
from lanikai.sim.host.mpi.errors import QosError
from lanikai.sim.host.mpi.estimate import host_ns
from lanikai.sim.host.mpi.qos import QOS, QosRequest, attach_bandwidth
from lanikai.sim.host.mpi.world import start_mpi
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.start import start_managers
from support.firmware.python_cluster import Cluster

NETWORK = single_router(3, router=preset(RouterConfig, "lanai4").replace(ports=3))


BYTES = {"charge": "bytes", "nic": {"rate_charge": "bytes"}}
MIXED = [50, 50, 50, 16000]


@pytest.mark.parametrize(
    ("charge", "mb_per_s", "message_bytes", "sent"),
    [
        ({}, 20.0, 65536, [65536]),
        ({}, 12.5, 36000, [36000]),
        ({}, 10.0, 8192, [8192]),
        ({}, 2.0, 500, [500]),
        ({}, 4.0, MIXED, MIXED),
        (BYTES, 12.5, 36000, [36000]),
        (BYTES, 2.0, 500, [500]),
        (BYTES, 4.0, MIXED, MIXED),
        # Messages that are not what was said, but have its mean: by bytes it matters little, by packets much.
        (BYTES, 4.0, 4000, [2000, 6000]),
        (BYTES, 4.0, 6000, [3000, 9000]),
    ],
)
def test_messages_get_the_bandwidth_that_was_asked_for(charge, mb_per_s, message_bytes, sent) -> None:
    cluster = Cluster(3, preset_name="lanai4", **charge)
    rounds, around = max(2, 8 // len(sent)), -(-4 // len(sent))
    sizes = sent * (around + rounds + around)

    async def main() -> None:
        managers = await start_managers(cluster.gms, NETWORK)
        sender, receiver, _ = await start_mpi(cluster.gms)
        attach_bandwidth(sender, BandwidthClient(managers[0], sender.process.transport.port))
        request = QosRequest(dest=1, mb_per_s=mb_per_s, message_bytes=message_bytes)
        await sender.Set_attr(QOS, request)
        answer = sender.Get_attr(QOS)
        assert answer.granted, answer.reason
        ends = []

        async def receive() -> None:
            requests = [await receiver.Irecv(bytearray(size), 0) for size in sizes]
            for one in requests:
                await one.Wait()
                ends.append(cluster.world.cycle)

        async def send() -> None:
            # Several at a time: an announcement for each message that ends, all through the window.
            requests = []
            for number, size in enumerate(sizes):
                requests.append(await sender.Isend(bytes(size), 1))
                if number >= 3:
                    await requests[number - 3].Wait()
            for one in requests[-3:]:
                await one.Wait()

        await cluster.world.gather(send(), receive())
        first, last = around * len(sent) - 1, (around + rounds) * len(sent) - 1
        seconds = (ends[last] - ends[first]) / cluster.nic.clock_hz
        got = sum(sizes[first + 1 : last + 1]) / seconds / 1e6
        assert got == pytest.approx(mb_per_s, rel=0.03 if charge else 0.02)

    cluster.run(main(), limit=200_000_000)


@pytest.mark.parametrize("charge", [{}, BYTES])
def test_short_messages_of_a_burst_arrive_within_the_bound_of_the_grant(charge) -> None:
    """The bursts have four messages, each with the rest that their bandwidth leaves. Another flow of the node is
    busy."""
    cluster = Cluster(3, preset_name="lanai4", **charge)
    size, mb_per_s, burst, bursts = 600, 2.0, 4, 6

    async def main() -> None:
        managers = await start_managers(cluster.gms, NETWORK)
        sender, receiver, _ = await start_mpi(cluster.gms)
        attach_bandwidth(sender, BandwidthClient(managers[0], sender.process.transport.port))
        request = QosRequest(dest=1, mb_per_s=mb_per_s, message_bytes=size, burst_bytes=burst * size)
        await sender.Set_attr(QOS, request)
        (flow,) = sender.Get_attr(QOS).flows
        hz = cluster.nic.clock_hz
        bound_us = flow.grant.latency_us
        # The burst at its rate, and 34 packets of 48 us.
        assert bound_us == pytest.approx(burst * size / mb_per_s + 34 * 48, rel=0.01)
        out, into = await cluster.gms[0].open_port(4), await cluster.gms[2].open_port(4)
        full = await out.dma_malloc(4096)
        for _ in range(8):
            await into.provide_receive_buffer(await into.dma_malloc(4096))

        async def flood() -> None:
            while True:
                await (await out.send(full, 4096, node=2, port=4)).wait()

        async def drain() -> None:
            while True:
                await into.provide_receive_buffer((await into.receive()).buffer)

        cluster.world.spawn(drain(), "drain")
        for number in range(2):
            cluster.world.spawn(flood(), f"flood {number}")
        began, ends = [], []

        async def send() -> None:
            for number in range(bursts):
                requests = []
                for _ in range(burst):
                    requests.append(await sender.Isend(bytes(size), 1))
                    began.append(cluster.world.cycle)
                for one in requests:
                    await one.Wait()
                rest = (number + 1) * burst * size / mb_per_s * hz / 1e6
                await cluster.world.sleep(max(1, round(began[0] + rest - cluster.world.cycle)))

        async def receive() -> None:
            for one in [await receiver.Irecv(bytearray(size), 0) for _ in range(burst * bursts)]:
                await one.Wait()
                ends.append(cluster.world.cycle)

        await cluster.world.gather(send(), receive())
        process = receiver.process
        copies = burst * host_ns(size, process.costs, process.config, cluster.gms[1].host) / 1000
        late = [(end - start) / hz * 1e6 for start, end in zip(began, ends, strict=True)]
        # The last one of a burst waits for three packet times at least: there is something to bound.
        assert size / mb_per_s * (burst - 1) * 0.9 < max(late) <= bound_us + copies

    cluster.run(main(), limit=200_000_000)


def test_more_in_short_messages_than_a_card_counts_changes_nothing() -> None:
    """20 MB/s in messages of 500 bytes are more packets than the peak has. The error comes before the manager is asked,
    and a held reservation stays."""
    cluster = Cluster(3, preset_name="lanai4", **BYTES)

    async def main() -> None:
        managers = await start_managers(cluster.gms, NETWORK)
        world, *_ = await start_mpi(cluster.gms)
        attach_bandwidth(world, BandwidthClient(managers[0], world.process.transport.port))
        await world.Set_attr(QOS, QosRequest(dest=1, mb_per_s=2.0, message_bytes=500))
        held = world.Get_attr(QOS)
        assert held.granted and held.flows[0].grant.message_bytes == 532
        with pytest.raises(QosError) as caught:
            await world.Set_attr(QOS, QosRequest(dest=1, mb_per_s=20.0, message_bytes=500))
        assert str(caught.value) == (
            "QOS on world: 20 MB/s to rank 1: at most 9.203 in messages of 500 bytes, as a packet counts as a full one"
        )
        assert world.Get_attr(QOS) is held
        await world.Set_attr(QOS, QosRequest(dest=1, mb_per_s=9.2, message_bytes=500))
        assert world.Get_attr(QOS).granted

    cluster.run(main(), limit=200_000_000)


def test_too_much_is_refused_in_the_managers_words_and_goes_back() -> None:
    cluster = Cluster(3, preset_name="lanai4")

    async def main() -> None:
        managers = await start_managers(cluster.gms, NETWORK)
        world, *_ = await start_mpi(cluster.gms)
        attach_bandwidth(world, BandwidthClient(managers[0], world.process.transport.port))

        def idts() -> dict[int, int]:
            """IDT of the fragments' flow to each node that has one."""
            program = cluster.programs[0]
            return {
                flow.connection.node: cluster.cards[0].flows[flow.number].idt
                for flow in program.flows.values()
                if (flow.key.source_port, flow.key.priority) == (0, 0)
            }

        both = [QosRequest(dest=to, mb_per_s=50.0) for to in (1, 2)]
        await world.Set_attr(QOS, both)
        answer = world.Get_attr(QOS)
        assert not answer.granted and "node 0" in answer.reason
        assert set(idts().values()) <= {0}
        await world.Set_attr(QOS, both[0])
        assert world.Get_attr(QOS).granted
        # 50 MB/s of 64 KB messages are 56.25 MB/s of packets: T * B_max / B_req = 145.6 ticks.
        assert idts()[1] == 145
        await world.Delete_attr(QOS)
        assert set(idts().values()) == {0}
        await world.Set_attr(QOS, both[1])
        assert world.Get_attr(QOS).granted and idts()[2] == 145

    cluster.run(main(), limit=200_000_000)
