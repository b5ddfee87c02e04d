"""A port without receive tokens holds up its own flows only; every message still comes once, in order."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lanikai.hdl.packet import Header, Kind
from support.firmware.python_cluster import Cluster


def content(length: int, salt: int) -> bytes:
    return bytes((i * 7 + salt * 13) & 255 for i in range(length))


@pytest.mark.parametrize(
    ("rate_controlled", "discipline"), [(False, "packet"), (False, "message"), (True, "packet")]
)
def test_a_port_without_tokens_does_not_block_the_others(rate_controlled, discipline) -> None:
    """All messages of the priority to the node once waited behind the first that found no token."""
    cluster = Cluster(2, rate_controlled=rate_controlled, discipline=discipline)

    async def main() -> None:
        a = await cluster.gms[0].open_port(0)
        other = await cluster.gms[0].open_port(1)
        ready, starved = await cluster.gms[1].open_port(0), await cluster.gms[1].open_port(1)

        async def send(port, target: int, length: int, salt: int):
            buffer = await port.dma_malloc(length)
            buffer.write(content(length, salt))
            return await port.send(buffer, node=1, port=target)

        target = await ready.dma_malloc(500)
        blocked = [await send(a, 1, 300, salt) for salt in range(3)]
        for salt in range(12):
            await ready.provide_receive_buffer(target)
            handle = await send(a if salt % 2 else other, 0, 500, salt)
            assert (await ready.receive()).read() == content(500, salt)
            await handle.wait()
        await cluster.settle()
        assert not any(handle.done for handle in blocked) and starved.poll() is None
        for _ in blocked:
            await starved.provide_receive_buffer(await starved.dma_malloc(300))
        assert [(await starved.receive()).read() for _ in blocked] == [content(300, n) for n in range(3)]
        for handle in blocked:
            await handle.wait()
        await cluster.settle()
        cluster.assert_home()
        assert starved.poll() is None and ready.poll() is None

    cluster.run(main())


quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(st.integers(0, 9999), st.sampled_from([0.0, 0.05, 0.2]), st.booleans())
def test_late_receive_buffers_and_lost_packets(seed, lost, rate_controlled) -> None:
    """Buffers come late and at random, any packet may be lost. Each flow's messages come whole, once and in their
    order. Short resend periods let copies cross refusals."""
    rng = random.Random(seed)

    def drop(header: Header) -> bool:
        return rng.random() < lost

    cluster = Cluster(
        2,
        drop=drop,
        rate_controlled=rate_controlled,
        window_packets=8,
        resend_ticks=rng.choice([200, 2000]),
        pause_ticks=rng.choice([20, 400]),
    )
    flows = [(s, t) for s in range(2) for t in range(2)]
    sent = {flow: [rng.randrange(0, 500) for _ in range(3)] for flow in flows}

    async def sender(port, flow) -> None:
        handles = []
        for salt, length in enumerate(sent[flow]):
            buffer = await port.dma_malloc(length)
            buffer.write(content(length, salt))
            while not port.send_tokens:
                await cluster.world.sleep(100)
            handles.append(await port.send(buffer, node=1, port=flow[1]))
        for handle in handles:
            await handle.wait()

    async def receiver(port) -> list[tuple[int, bytes]]:
        got = []
        buffer = await port.dma_malloc(500)
        for _ in range(6):
            await cluster.world.sleep(rng.randrange(1, 4000))
            await port.provide_receive_buffer(buffer)
            message = await port.receive()
            got.append((message.port, message.read()))
        return got

    async def main() -> None:
        sources = [await cluster.gms[0].open_port(n) for n in range(2)]
        targets = [await cluster.gms[1].open_port(n) for n in range(2)]
        jobs = [receiver(port) for port in targets] + [sender(sources[f[0]], f) for f in flows]
        results = await cluster.world.gather(*jobs)
        for s, t in flows:
            got = [data for source, data in results[t] if source == s]
            assert got == [content(length, salt) for salt, length in enumerate(sent[s, t])]
        await cluster.world.sleep(20_000)
        await cluster.settle()
        cluster.assert_home()
        assert all(port.poll() is None for port in targets)

    cluster.run(main())
    assert lost or any(header.kind is Kind.ACK for _, header in cluster.network.log)
