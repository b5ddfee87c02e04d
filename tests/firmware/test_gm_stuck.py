"""A stuck message keeps no other flow from what it was granted."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest
from lanikai.hdl.packet import Kind
from support.firmware.python_card import Delays
from support.firmware.python_cluster import Cluster

MESSAGE = 65536


def share(idt_ticks: int, stuck: int, *, dead: bool = False, cycles: int = 900_000) -> float:
    """Packets a second, as a share of 1 / IDT, of a flow with an IDT beside `stuck` messages of other ports.

    These messages go to another port of the same node, which has no receive token. With `dead` they go to another node
    that answers nothing.
    """
    lost = {2} if dead else set()
    cluster = Cluster(
        3,
        preset_name="lanai4",
        delays=Delays(dma_setup=119),
        drop=lambda header: header.destination in lost or header.source in lost,
    )
    chosen: list[int] = []

    def dispatched(cycle: int, node: int, key) -> None:
        if key.source_port == 1:
            chosen.append(cycle)

    cluster.programs[0].dispatched = dispatched

    async def receive(port) -> None:
        for _ in range(6):
            await port.provide_receive_buffer(await port.dma_malloc(MESSAGE))
        while True:
            await port.provide_receive_buffer((await port.receive()).buffer)

    async def send(port, buffer) -> None:
        handles = deque()
        while True:
            while len(handles) < 4:
                handles.append(await port.send(buffer, node=1, port=1))
            await handles.popleft().wait()

    async def main() -> None:
        gms = cluster.gms
        source, target = await gms[0].open_port(1), await gms[1].open_port(1)
        for gm in gms[1:]:
            await gm.open_port(0)
        buffer = await source.dma_malloc(MESSAGE)
        await source.set_idt(node=1, port=1, ticks=idt_ticks)
        cluster.world.spawn(receive(target), "receive")
        for number in range(stuck):
            port = await gms[0].open_port(2 + number % 4)
            await port.send(await port.dma_malloc(MESSAGE), node=2 if dead else 1, port=0)
        cluster.world.spawn(send(source, buffer), "send")
        await cluster.world.sleep(150_000)
        chosen.clear()
        await cluster.world.sleep(cycles)

    cluster.run(main())
    took = (chosen[-1] - chosen[0]) / float(cluster.nic.tick_cycles)
    assert cycles > chosen[-1] - chosen[0] > 0.95 * cycles
    return (len(chosen) - 1) / took * idt_ticks


@pytest.mark.parametrize(("idt_ticks", "stuck"), [(117, 1), (205, 1), (117, 4)])
def test_a_stuck_message_takes_nothing_of_what_another_flow_was_granted(idt_ticks, stuck) -> None:
    """Flows of 70 and 40 MB/s once had 43.3 and 29.2 beside one message without a receive token. All that had gone out
    behind the refused packet went out again, at each try."""
    assert share(idt_ticks, stuck) >= 0.98


def test_a_node_that_gives_no_answer_takes_nothing_of_it() -> None:
    """A whole window of packets once went out again at each look of the timer."""
    assert share(117, 4, dead=True) >= 0.98


def test_a_flow_without_a_token_asks_with_packets_without_bytes_and_ever_more_rarely() -> None:
    cluster = Cluster(2, resend_ticks=2000)

    async def main() -> None:
        a, b = [await gm.open_port(0) for gm in cluster.gms]
        await a.send(await a.dma_malloc(500), node=1, port=0)
        await cluster.world.sleep(int(30_000 * cluster.nic.tick_cycles))
        sent = [(cycle, header) for cycle, header in cluster.network.log if header.kind is Kind.DATA]
        first = next(place for place, (_, header) in enumerate(sent) if not header.length)
        assert 0 < first <= 4 and not any(header.length for _, header in sent[first:])
        asked = [cycle / float(cluster.nic.tick_cycles) for cycle, _ in sent[first:]]
        waits = [later - earlier for earlier, later in pairwise(asked)]
        pauses = [800, 1600, 3200, *[6400] * (len(waits) - 3)]
        assert len(waits) >= 5 and all(
            0 <= wait - pause < 500 for wait, pause in zip(waits, pauses, strict=True)
        )
        # It is told when a token comes, and does not rest to its end.
        given = cluster.world.cycle
        await b.provide_receive_buffer(await b.dma_malloc(500))
        await b.receive()
        assert cluster.world.cycle - given < 6400 * cluster.nic.tick_cycles / 2

    cluster.run(main())
