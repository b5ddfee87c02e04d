"""QoS attributes with the real bandwidth manager, GM and firmware, on plain Python cards: what is asked for is what
messages get."""

from __future__ import annotations

import pytest
from cluster import Cluster
from lanikai.hdl.config import RouterConfig, preset
from lanikai.hdl.network import single_router
from lanikai.sim.host.mpi.qos import QOS, QosRequest, attach_bandwidth
from lanikai.sim.host.mpi.world import start_mpi
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.start import start_managers

NETWORK = single_router(3, router=preset(RouterConfig, "lanai4").replace(ports=3))


@pytest.mark.parametrize(("mb_per_s", "message_bytes"), [(20.0, 65536), (12.5, 36000), (10.0, 8192)])
def test_messages_get_the_bandwidth_that_was_asked_for(mb_per_s, message_bytes) -> None:
    cluster = Cluster(3, preset_name="lanai4")
    messages = 8

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
            requests = [await receiver.Irecv(bytearray(message_bytes), 0) for _ in range(messages)]
            for one in requests:
                await one.Wait()
                ends.append(cluster.world.cycle)

        async def send() -> None:
            # Two at a time: an announcement for each message that ends, all through the window.
            requests = []
            for number in range(messages):
                requests.append(await sender.Isend(bytes(message_bytes), 1))
                if number:
                    await requests[number - 1].Wait()
            await requests[-1].Wait()

        await cluster.world.gather(send(), receive())
        seconds = (ends[5] - ends[1]) / cluster.nic.clock_hz
        assert 4 * message_bytes / seconds / 1e6 == pytest.approx(mb_per_s, rel=0.02)

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
