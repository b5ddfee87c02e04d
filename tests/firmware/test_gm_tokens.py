"""Tokens, sub-ports and packets of the GM control program (gulati-thesis-2001 4.1, 4.2, 5.2), one rule a test."""

from __future__ import annotations

from collections import Counter

import pytest
from lanikai.hdl.packet import Header, Kind
from support.firmware.python_cluster import Cluster


def test_sub_ports_of_a_connection_take_turns_and_connections_do() -> None:
    """Figure 4.2: the connection queue is rotated after a packet, and the sub-port queue of its head.

    The three sub-ports to node 1, two ports and two priorities, share half of the packets that go out. The one to node
    2 has the other half.
    """
    cluster = Cluster(3, rate_controlled=False)
    log: list[tuple[int, tuple[int, int]]] = []
    cluster.programs[0].dispatched = lambda _, node, key: log.append((node, (key.source_port, key.priority)))
    sub_ports = [(1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 2, 0)]

    async def main() -> None:
        ports = [await cluster.gms[0].open_port(number) for number in range(3)]
        targets = {}
        for node, number, priority in sub_ports:
            if (node, number) not in targets:
                targets[node, number] = await cluster.gms[node].open_port(number)
            target = targets[node, number]
            await target.provide_receive_buffer(await target.dma_malloc(4000), priority=priority)
        handles = []
        for node, number, priority in sub_ports:
            buffer = await ports[number].dma_malloc(4000)
            handles.append(await ports[number].send(buffer, node=node, port=number, priority=priority))
        for handle in handles:
            await handle.wait()

    cluster.run(main())
    # While all four have packets: the message to node 2, of 32 packets, is through first.
    busy = log[8 : 8 + 48]
    assert [node for node, _ in busy] == [busy[0][0], 3 - busy[0][0]] * 24
    assert sorted(Counter(sub_port for node, sub_port in busy if node == 1).values()) == [8, 8, 8]


def test_a_token_that_is_served_completely_awaits_its_acknowledgement() -> None:
    """The token is sendable no longer and has no packet left to be made. It comes home with the acknowledgement, not
    with the delivery."""
    lost = True

    def drop(header: Header) -> bool:
        return lost and header.kind is Kind.ACK

    cluster = Cluster(2, drop=drop)

    async def main() -> None:
        nonlocal lost
        a, b = [await gm.open_port(0) for gm in cluster.gms]
        await b.provide_receive_buffer(await b.dma_malloc(300))
        tokens = a.send_tokens
        handle = await a.send(await a.dma_malloc(300), node=1, port=0)
        await b.receive()
        (flow,) = cluster.programs[0].flows.values()
        assert not flow.sendable and len(flow.awaiting) == 1 and flow.awaiting[0].sent == 300
        assert not handle.done and a.send_tokens == tokens - 1
        lost = False
        await handle.wait()
        assert not flow.awaiting and a.send_tokens == tokens
        await cluster.settle()
        assert b.poll() is None, "the copy that asked for another acknowledgement is no second message"

    cluster.run(main())


@pytest.mark.parametrize(
    ("segmentation", "length", "packets"),
    [
        ("mtu", 300, [128, 128, 44]),
        ("equal", 300, [100, 100, 100]),
        ("mtu", 129, [128, 1]),
        ("equal", 129, [68, 61]),  # whole words of 4 bytes
        ("mtu", 256, [128, 128]),
        ("equal", 256, [128, 128]),
        ("equal", 0, [0]),
    ],
)
def test_a_message_is_cut_into_packets_of_an_mtu_or_equal_ones(segmentation, length, packets) -> None:
    """Thesis 5.2; the tiny card's MTU is 128 bytes."""
    cluster = Cluster(2, segmentation=segmentation)
    assert cluster.nic.mtu_bytes == 128 and cluster.nic.word_bytes == 4

    async def main() -> None:
        a, b = [await gm.open_port(0) for gm in cluster.gms]
        await b.provide_receive_buffer(await b.dma_malloc(max(length, 4)))
        buffer = await a.dma_malloc(max(length, 4))
        await (await a.send(buffer, length, node=1, port=0)).wait()

    cluster.run(main())
    sent = [header.length for _, header in cluster.network.log if header.kind is Kind.DATA]
    assert sent == packets
