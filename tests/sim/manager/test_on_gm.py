"""The managers on GM itself, on plain Python cards.

Premium flows keep what they have while best-effort flows flood and others come and go. A program dies.
"""

from __future__ import annotations

import random
from collections import deque

import pytest
from lanikai.hdl.config import RouterConfig, preset
from lanikai.hdl.network import single_router
from lanikai.sim.bandwidth.errors import RefusedError
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.start import start_managers
from support.firmware.python_cluster import Cluster

NETWORK = single_router(4, router=preset(RouterConfig, "lanai4").replace(ports=4))
MESSAGE_BYTES = 16384
MTU, CLOCK_HZ = 4096, 33_000_000


class Programs:
    """Programs on the four nodes of a cluster with managers. `dispatched`: cycles of packets, by source node and
    port."""

    def __init__(self, **config) -> None:
        self.cluster = Cluster(4, preset_name="lanai4")
        self.dispatched: dict[tuple[int, int], list[int]] = {}
        self.config = ManagerConfig(**config)
        for program in self.cluster.programs:
            program.dispatched = lambda cycle, node, key, source=program.node: self.dispatched.setdefault(
                (source, key.source_port), []
            ).append(cycle)

    def run(self, main) -> None:
        async def everything() -> None:
            self.managers = await start_managers(self.cluster.gms, NETWORK, self.config)
            await main()

        self.cluster.run(everything(), limit=200_000_000)

    async def flow(self, source: int, port: int, target: int) -> tuple[BandwidthClient, Sender]:
        """A flow that is not started yet, from and to the same port number."""
        out = await self.cluster.gms[source].open_port(port)
        into = await self.cluster.gms[target].open_port(port)
        buffer = await out.dma_malloc(MESSAGE_BYTES)
        for _ in range(8):
            await into.provide_receive_buffer(await into.dma_malloc(MESSAGE_BYTES))

        async def receive() -> None:
            while True:
                message = await into.receive()
                await into.provide_receive_buffer(message.buffer)

        self.cluster.world.spawn(receive(), f"receive {target}.{port}")
        return BandwidthClient(self.managers[source], out), Sender(self.cluster, out, buffer, target)

    def rate(self, source: int, port: int, start: int, end: int) -> float:
        """MB/s from the first packet in a window to its last."""
        cycles = [cycle for cycle in self.dispatched[source, port] if start <= cycle < end]
        return MTU * (len(cycles) - 1) * CLOCK_HZ / (cycles[-1] - cycles[0]) / 1e6


class Sender:
    """A sender that always has the next message ready."""

    def __init__(self, cluster, port, buffer, target) -> None:
        self.port, self._cluster, self._buffer, self._target = port, cluster, buffer, target
        self._stopping, self._ended = False, cluster.world.flag()

    def start(self) -> None:
        self._stopping = False
        self._ended.clear()
        self._cluster.world.spawn(self._run(), "sender")

    async def stop(self) -> None:
        self._stopping = True
        await self._ended.wait()

    async def _run(self) -> None:
        under_way: deque = deque()
        while not self._stopping:
            send = await self.port.send(self._buffer, node=self._target, port=self.port.number)
            under_way.append(send)
            if len(under_way) == 4:
                await under_way.popleft().wait()
        for handle in under_way:
            await handle.wait()
        self._ended.set()


def test_premium_flows_keep_their_bandwidth_whoever_floods_comes_and_goes():
    """40 MB/s go from node 0, and 30 into the same node from 1, while a best-effort flow of either node floods.

    Other premium flows of both are admitted, refused and released.
    """
    programs = Programs(master=3, receive_mb_per_s=MTU / 48)
    world = programs.cluster.world

    async def main() -> None:
        premium, steady = await programs.flow(0, 0, 2)
        other_premium, other_steady = await programs.flow(1, 1, 2)
        floods = [await programs.flow(0, 2, 1), await programs.flow(1, 3, 3), await programs.flow(3, 4, 2)]
        coming = await programs.flow(0, 5, 3)
        for client, sender in floods:
            await client.join(sender._target, sender.port.number)
            sender.start()
        held = [await premium.request(2, 0, 40.0), await other_premium.request(2, 1, 30.0)]
        steady.start()
        other_steady.start()
        await world.sleep(20_000)
        start = world.cycle
        client, sender = coming
        for mb_per_s in (20.0, 10.0):
            with pytest.raises(RefusedError):
                await client.request(3, 5, 60.0)
            grant = await client.request(3, 5, mb_per_s)
            sender.start()
            begun = world.cycle
            await world.sleep(150_000)
            assert programs.rate(0, 5, begun, world.cycle) == pytest.approx(mb_per_s, rel=0.04)  # few packets
            await sender.stop()
            await client.release(grant)
        end = world.cycle
        assert programs.rate(0, 0, start, end) == pytest.approx(40.0, rel=0.02)
        assert programs.rate(1, 1, start, end) == pytest.approx(30.0, rel=0.02)
        # The floods are alive, in what is left: of node 0's 78 (of which 20, then 10, were promised meanwhile), of node
        # 2's 85.3.
        assert 20 < programs.rate(0, 2, start, end) < 38.5
        assert programs.rate(3, 4, start, end) == pytest.approx(15.3, rel=0.04)
        await steady.stop()
        await other_steady.stop()
        await premium.release(held[0])
        await other_premium.release(held[1])
        for _, sender in floods:
            await sender.stop()
            await sender.port.close()
        await world.sleep(200_000)
        ledger = programs.managers[3].master.ledger
        assert ledger.counters() == {} and not ledger.best_effort

    programs.run(main)


def test_a_program_that_dies_gives_back_what_it_held():
    """The driver closes its port when its last message has ended. A request of its neighbour is granted then."""
    programs = Programs(master=1)

    async def main() -> None:
        client, sender = await programs.flow(0, 0, 2)
        await client.request(2, 0, 60.0)
        sender.start()
        other, _ = await programs.flow(0, 1, 2)
        await programs.cluster.world.sleep(50_000)
        with pytest.raises(RefusedError):
            await other.request(2, 1, 50.0)
        await sender.stop()
        await sender.port.close()
        await programs.cluster.world.sleep(100_000)
        await other.request(2, 1, 50.0)
        assert len(programs.managers[1].master.ledger.premium) == 1

    programs.run(main)


def test_a_manager_that_has_ended_is_found_out_through_gm():
    """Messages to its closed port fail; another one is master within four silences of 20 ms."""
    programs = Programs(master=1)

    async def main() -> None:
        client, _ = await programs.flow(0, 0, 2)
        await client.request(2, 0, 10.0)
        await programs.managers[1].stop()
        started = programs.cluster.world.cycle
        await client.request(2, 1, 10.0)
        assert programs.cluster.world.cycle - started < 4 * 4 * 165_000
        assert programs.managers[2].master is not None  # the next node

    programs.run(main)


def test_lost_packets_delay_answers_and_lose_none():
    """A fifth of the packets between managers is lost: GM sends them again, after 2 to 4 ms each."""
    programs = Programs(master=3)
    chance, lost = random.Random(5), []

    def drop(header) -> bool:
        if chance.randrange(5) == 0:
            lost.append(header)
            return True
        return False

    async def main() -> None:
        client, _ = await programs.flow(0, 0, 2)
        member = await client.join(2, 1)
        programs.cluster.network.drop = drop
        grant = await client.request(2, 0, 40.0)
        await client.release(grant)
        await client.leave(member)
        assert len(lost) > 2 and programs.managers[3].master.ledger.counters() == {}

    programs.run(main)
