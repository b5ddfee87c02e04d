"""Firmware and host library end to end: every message arrives whole, in order, and everything goes home."""

from __future__ import annotations

import random
from collections import defaultdict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lanikai.hdl.packet import Header
from support.firmware.python_cluster import Cluster

NODES = 3
SIZE = st.one_of(st.integers(0, 20), st.sampled_from([127, 128, 129, 256, 257]), st.integers(0, 700))


@st.composite
def messages(draw: st.DrawFn) -> list[tuple[int, int, int, int, int, int]]:
    """(source node, source port, target node, target port, priority, length)."""
    one = st.tuples(
        st.integers(0, NODES - 1),
        st.integers(0, 1),
        st.integers(0, NODES - 1),
        st.integers(0, 1),
        st.integers(0, 1),
        SIZE,
    ).filter(lambda m: m[0] != m[2])
    return draw(st.lists(one, max_size=14))


def exchange(cluster: Cluster, wanted: list[tuple[int, int, int, int, int, int]], seed: int) -> None:
    """Send the messages, ports side by side, and check what arrives."""
    rng = random.Random(seed)
    content = [rng.randbytes(length) for *_, length in wanted]

    async def sender(port, indices):
        handles = []
        for i in indices:
            _, _, node, target, priority, length = wanted[i]
            buffer = await port.dma_malloc(length)
            buffer.write(content[i])
            while not port.send_tokens:
                await cluster.world.sleep(50)
            handles.append(await port.send(buffer, node=node, port=target, priority=priority))
            if rng.random() < 0.3:
                await cluster.world.sleep(rng.randrange(1, 3000))
        for handle in handles:
            await handle.wait()

    async def receiver(port, count, priorities):
        buffers = [await port.dma_malloc(700) for _ in range(6)]
        # A priority gets tokens only for what will come, so that none is left over.
        left = list(priorities)
        for buffer in buffers:
            if left:
                await port.provide_receive_buffer(buffer, priority=left.pop(0))
        got = []
        for _ in range(count):
            message = await port.receive()
            got.append((message.node, message.port, message.priority, message.read()))
            if rng.random() < 0.3:
                await cluster.world.sleep(rng.randrange(1, 3000))
            if left:
                await port.provide_receive_buffer(message.buffer, priority=left.pop(0))
        return got

    async def main():
        ports = {(n, p): await cluster.gms[n].open_port(p) for n in range(NODES) for p in range(2)}
        jobs, receivers = [], []
        for (node, number), port in ports.items():
            mine = [i for i, m in enumerate(wanted) if m[:2] == (node, number)]
            coming = [m[4] for m in wanted if m[2:4] == (node, number)]
            rng.shuffle(coming)
            jobs.append(sender(port, mine))
            receivers.append((node, number))
            jobs.append(receiver(port, len(coming), coming))
        results = (await cluster.world.gather(*jobs))[1::2]
        await cluster.settle()
        cluster.assert_home()
        for port in ports.values():
            assert port.receive_tokens == cluster.gm_config.receive_tokens
            await port.close()
        return dict(zip(receivers, results, strict=True))

    arrived = cluster.run(main())
    expected, got = defaultdict(list), defaultdict(list)
    for i, (node, port, target, number, priority, _) in enumerate(wanted):
        expected[node, port, target, number, priority].append(content[i])
    for (target, number), received in arrived.items():
        for node, port, priority, data in received:
            got[node, port, target, number, priority].append(data)
    assert got == expected
    assert all(not program.flows for program in cluster.programs)


quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(messages(), st.integers(0, 9), st.sampled_from(["polled", "queue"]), st.booleans())
def test_every_message_arrives_whole_and_in_order(wanted, seed, doorbell, rate_controlled) -> None:
    cluster = Cluster(NODES, nic={"doorbell": doorbell, "flows": 16}, rate_controlled=rate_controlled)
    exchange(cluster, wanted, seed)


@quick
@given(messages(), st.integers(0, 9))
def test_different_programs_side_by_side_understand_each_other(wanted, seed) -> None:
    """An unmodified node, a rate-controlled one, and one that serves messages in turn."""
    each = [
        {"rate_controlled": False, "segmentation": "equal"},
        {"rate_controlled": True},
        {"rate_controlled": False, "discipline": "message"},
    ]
    exchange(Cluster(NODES, nic={"flows": 16}, each=each), wanted, seed)


@quick
@given(
    messages(),
    st.integers(0, 999),
    st.sampled_from(["mtu", "equal"]),
    st.sampled_from([(True, "packet"), (False, "packet"), (False, "message")]),
)
def test_lost_packets_are_sent_again(wanted, seed, segmentation, program) -> None:
    """Data, acknowledgements of either kind: any packet may be lost."""
    rng = random.Random(seed)

    def drop(header: Header) -> bool:
        return rng.random() < 0.08

    cluster = Cluster(
        NODES,
        drop=drop,
        nic={"flows": 16},
        segmentation=segmentation,
        rate_controlled=program[0],
        discipline=program[1],
        window_packets=4,
    )
    exchange(cluster, wanted, seed)


def test_both_ways_at_once_with_all_queues_full() -> None:
    """Every node sends to every other as fast as it can, with links that hold while no buffer is armed."""
    wanted = [
        (s, p, t, p, s & 1, 650)
        for _ in range(6)
        for s in range(3)
        for t in range(3)
        for p in (0, 1)
        if s != t
    ]
    cluster = Cluster(NODES, nic={"flows": 16}, receive_buffers=2)
    exchange(cluster, wanted, 1)
