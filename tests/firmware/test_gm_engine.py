"""The host DMA engine between SDMA and RDMA: who prepares when, and the cost of a change of direction."""

from __future__ import annotations

from collections import deque

from lanikai.firmware.gm.engine import HostDma
from support.firmware.python_cluster import Cluster
from support.firmware.scheduler import World

MESSAGE = 65536


def mixed(flows: list[tuple[int, int]], cycles: int = 200_000, watch=lambda cluster: None) -> Cluster:
    """Keep flows (source, target) of long messages going for so many cycles. Returns the cluster."""
    cluster = Cluster(3, preset_name="lanai4")
    watch(cluster)

    async def receiver(port, length: int) -> None:
        for _ in range(4):
            await port.provide_receive_buffer(await port.dma_malloc(length))
        while True:
            message = await port.receive()
            await port.provide_receive_buffer(message.buffer)

    async def sender(port, node: int) -> None:
        buffer = await port.dma_malloc(MESSAGE)
        handles: deque = deque()
        while True:
            handles.append(await port.send(buffer, node=node, port=1))
            if len(handles) == 3:
                await handles.popleft().wait()

    async def main() -> None:
        for _, target in flows:
            cluster.world.spawn(receiver(await cluster.gms[target].open_port(1), MESSAGE), "receiver")
        for source, target in flows:
            cluster.world.spawn(sender(await cluster.gms[source].open_port(0), target), "sender")
        await cluster.world.sleep(cycles)

    cluster.run(main())
    return cluster


def test_a_turn_is_a_packet_after_one_that_went_the_other_way() -> None:
    engine = HostDma(World().flag)
    ways = ("out", "out", "in", "in", "out", "in")
    assert [engine.turns(way) for way in ways] == [0, 0, 1, 0, 1, 1]


def test_one_that_only_sends_and_one_that_only_receives_never_turn() -> None:
    """The sender's card writes events all the same, and the receiver's sends acknowledgements."""
    for program in mixed([(0, 1)]).programs:
        assert program.processor.steps_taken["packet_turn"] == 0
        assert sum(program.processor.cycles_spent.values()) > 0 or program.node == 2


def test_one_that_does_both_pays_for_every_change() -> None:
    """Node 1 receives one packet after another and sends as many: it turns before each, not before events."""
    cpu = mixed([(0, 1), (1, 2)]).programs[1].processor
    packets = min(cpu.steps_taken["rdma_data"], cpu.steps_taken["sdma_start"])
    assert packets > 40
    assert 0.9 * 2 * packets < cpu.steps_taken["packet_turn"] <= 2 * packets + 1
    assert cpu.cycles_spent["packet_turn"] == cpu.costs.cycles("packet_turn") * cpu.steps_taken["packet_turn"]


def test_no_packet_is_prepared_while_another_is_transferred() -> None:
    """SDMA chooses, and so prepares, with the engine at rest, also beside a receive."""
    busy: list[bool] = []

    def watch(cluster: Cluster) -> None:
        cluster.programs[1].dispatched = lambda *_: busy.append(cluster.cards[1].busy["host_dma"])

    mixed([(0, 1), (1, 2)], watch=watch)
    assert len(busy) > 40 and not any(busy)
