"""Faults: closed ports, missing tokens, lost packets, bus errors, forged descriptors. Others go on."""

from __future__ import annotations

import random

import pytest
from lanikai.firmware.gm.layout import Operation, SendDescriptor
from lanikai.firmware.gm.wire import SEQUENCE_MODULUS, FlowKey
from lanikai.hdl.packet import Header, Kind
from lanikai.sim.host.errors import (
    BusFaultError,
    ClosedPortError,
    MemoryUseError,
    MessageTooLongError,
    UnknownNodeError,
    UnknownPortError,
    UnregisteredMemoryError,
)
from lanikai.sim.host.memory import Buffer
from support.firmware.python_cluster import Cluster


def content(length: int, salt: int = 0) -> bytes:
    return bytes((i * 7 + salt * 13) & 255 for i in range(length))


async def filled(port, data: bytes):
    buffer = await port.dma_malloc(len(data))
    buffer.write(data)
    return buffer


@pytest.mark.parametrize("rate_controlled", [False, True])
@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (
            1,
            ClosedPortError,
            "400 bytes from port 0 of node 0 to port 1 of node 1 failed: port 1 of node 1 is not open",
        ),
        (
            9,
            UnknownPortError,
            "400 bytes from port 0 of node 0 to port 9 of node 1 failed: node 1 has no port 9",
        ),
    ],
)
def test_a_message_to_a_port_that_is_not_open_fails_and_others_go_on(
    rate_controlled, target, error, message
) -> None:
    cluster = Cluster(2, rate_controlled=rate_controlled)

    async def main() -> None:
        a = await cluster.gms[0].open_port(0)
        other = await cluster.gms[0].open_port(1)
        b = await cluster.gms[1].open_port(2)
        good = [content(300, salt) for salt in range(6)]
        for _ in good:
            await b.provide_receive_buffer(await b.dma_malloc(300))
        bad_data = await filled(a, content(400))
        handles, failing = [], []
        for n, data in enumerate(good):
            handles.append(
                await (a, other)[n % 2].send(await filled((a, other)[n % 2], data), node=1, port=2)
            )
            if n < 2:
                failing.append(await a.send(bad_data, node=1, port=target))
        got = [(await b.receive()).read() for _ in good]
        assert sorted(got) == sorted(good)
        for handle in handles:
            await handle.wait()
        for handle in failing:
            with pytest.raises(error) as caught:
                await handle.wait()
            assert str(caught.value) == message
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_message_longer_than_the_buffer_fails_and_the_buffer_serves_the_next() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        first = await b.dma_malloc(300)
        for buffer in (first, await b.dma_malloc(400)):
            await b.provide_receive_buffer(buffer)
        long = await a.send(await filled(a, content(500)), node=1, port=0)
        short = await a.send(await filled(a, content(300, 1)), node=1, port=0)
        with pytest.raises(MessageTooLongError) as caught:
            await long.wait()
        assert str(caught.value) == (
            "500 bytes from port 0 of node 0 to port 0 of node 1 failed: longer than the receive "
            "buffer that waits for it"
        )
        message = await b.receive()
        assert message.read() == content(300, 1) and message.buffer is first
        await short.wait()
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_receiver_short_of_tokens_is_served_later_and_high_priority_passes() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        await b.provide_receive_buffer(await b.dma_malloc(200), priority=1)
        low = await a.send(await filled(a, content(200)), node=1, port=0)
        high = await a.send(await filled(a, content(200, 1)), node=1, port=0, priority=1)
        assert (await b.receive()).read() == content(200, 1)
        await high.wait()
        await cluster.settle()
        assert not low.done
        await b.provide_receive_buffer(await b.dma_malloc(200))
        assert (await b.receive()).read() == content(200)
        await low.wait()
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())
    refused = [h for _, h in cluster.network.log if h.kind is Kind.NACK]
    assert 2 <= len(refused) < 60, "the sender rests between its tries"


@pytest.mark.parametrize("kind", [Kind.DATA, Kind.ACK])
@pytest.mark.parametrize("which", [0, 1, 3])
def test_a_lost_packet_is_sent_again(kind, which) -> None:
    seen = []

    def drop(header: Header) -> bool:
        if header.kind is kind:
            seen.append(header)
        return header.kind is kind and len(seen) == which + 1

    cluster = Cluster(2, drop=drop)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        await b.provide_receive_buffer(await b.dma_malloc(500))
        handle = await a.send(await filled(a, content(500)), node=1, port=0)
        assert (await b.receive()).read() == content(500)
        await handle.wait()
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())
    assert len(seen) > which + 1 or which == 3 or kind is Kind.ACK
    assert len([h for _, h in cluster.network.log if h.kind is Kind.NACK]) <= 1, (
        "one for a gap, not one a packet"
    )
    sent = [h.sequence for _, h in cluster.network.log if h.kind is Kind.DATA]
    assert len(sent) >= 4 and set(sent) == {0, 1, 2, 3}


def test_a_bus_error_fails_the_message_at_the_sender() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        for _ in range(2):
            await b.provide_receive_buffer(await b.dma_malloc(500))
        bad = await filled(a, content(500))
        cluster.cards[0].bad_addresses = {bad.start + 300}
        broken = await a.send(bad, node=1, port=0)
        whole = await a.send(await filled(a, content(450)), node=1, port=0)
        with pytest.raises(BusFaultError, match=r"failed: the host's bus answered the DMA with an error$"):
            await broken.wait()
        assert (await b.receive()).read() == content(450)
        await whole.wait()
        await cluster.settle()
        cluster.assert_home()
        assert b.poll() is None and b.receive_tokens == cluster.gm_config.receive_tokens - 1

    cluster.run(main())


def test_a_bus_error_at_the_receiver_is_told_to_the_receiver() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        for _ in range(2):
            target = await b.dma_malloc(500)
            await b.provide_receive_buffer(target)
            cluster.cards[1].bad_addresses = cluster.cards[1].bad_addresses or {target.start + 130}
        for salt in range(2):
            await (await a.send(await filled(a, content(500, salt)), node=1, port=0)).wait()
        with pytest.raises(BusFaultError) as caught:
            await b.receive()
        assert str(caught.value) == (
            "a receive on port 0 of node 1 failed: the host's bus answered the DMA with an error"
        )
        assert (await b.receive()).read() == content(500, 1)
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_message_that_began_before_its_port_was_opened_again_fails() -> None:
    """Rate control spreads the packets, so that closing and opening fall between two of them."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        await a.set_idt(node=1, port=0, ticks=4000)
        await b.provide_receive_buffer(await b.dma_malloc(500))
        handle = await a.send(await filled(a, content(500)), node=1, port=0)
        await cluster.world.sleep(1500)
        await b.close()
        b = await cluster.gms[1].open_port(0)
        await b.provide_receive_buffer(await b.dma_malloc(500))
        assert not handle.done
        with pytest.raises(ClosedPortError):
            await handle.wait()
        await (await a.send(await filled(a, content(500, 1)), node=1, port=0)).wait()
        assert (await b.receive()).read() == content(500, 1)
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_the_firmware_itself_refuses_what_the_library_would_have() -> None:
    """A process that writes its descriptors itself reaches neither foreign memory nor unknown nodes."""
    cluster = Cluster(2)

    async def main() -> None:
        gm = cluster.gms[0]
        a = await gm.open_port(0)
        buffer = await filled(a, content(100))
        secret = gm.memory.allocate(100)

        async def forged(**changes):
            handle = await a.send(buffer, node=1, port=3)
            slot = gm.layout.send_descriptor(0, a._counts.sends - 1)
            fields = {"address": buffer.start, "length": 100, "node": 1, "port": 3, "priority": 0} | changes
            # Overwritten on its way: before the doorbell's processing has begun.
            token = next(n for n, send in a._sends.items() if send.handle is handle)
            for place, word in enumerate(SendDescriptor(token=token, **fields).words()):
                cluster.cards[0]._sram_put(slot + 4 * place, word.to_bytes(4, "little"))
            await handle.wait()

        with pytest.raises(
            UnregisteredMemoryError, match=r"failed: the NIC finds the memory not registered$"
        ):
            await forged(address=secret.start)
        with pytest.raises(UnregisteredMemoryError):
            await forged(length=101)
        for offset in (1, 2, 3):
            with pytest.raises(MemoryUseError, match=r"failed: a DMA address is a multiple of 4$"):
                await forged(address=buffer.start + offset, length=50)
        with pytest.raises(UnknownNodeError, match=r"failed: the NIC has no route to node 1$"):
            await forged(node=77)
        await cluster.settle()
        cluster.assert_home()
        assert not [h for _, h in cluster.network.log if h.kind is Kind.DATA]

    cluster.run(main())


def test_the_firmware_refuses_a_receive_buffer_that_is_not_aligned() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        gm = cluster.gms[1]
        b = await gm.open_port(0)
        buffer = await b.dma_malloc(100)
        # The library's own check is left out, as by a process that writes its descriptors itself.
        b._check_aligned = lambda address: None
        await b.provide_receive_buffer(Buffer(buffer.start + 2, 50, buffer.data[2:52]))
        with pytest.raises(MemoryUseError) as caught:
            await b.receive()
        assert str(caught.value) == "a receive on port 0 of node 1 failed: a DMA address is a multiple of 4"
        with pytest.raises(MemoryUseError, match=r"^register on port 0 of node 1 failed: a DMA address"):
            await b.register(Buffer(buffer.start + 2, 50, buffer.data[2:52]))
        assert not cluster.programs[1].ports[0].receive_tokens[0]
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_memory_in_use_cannot_be_deregistered() -> None:
    """A process asks the firmware itself. Neither a message on its way out or in, nor a receive token, loses its
    memory. Afterwards the memory can go."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        source, target = await filled(a, content(500)), await b.dma_malloc(500)

        async def refused(port, buffer) -> None:
            with pytest.raises(MemoryUseError, match=r"failed: a message or a receive token still uses it$"):
                await port._command(Operation.DEREGISTER, buffer.start, buffer.length)

        await a.set_idt(node=1, port=0, ticks=4000)
        await b.provide_receive_buffer(target)
        await refused(b, target)
        handle = await a.send(source, node=1, port=0)
        await cluster.world.sleep(1500)
        assert cluster.programs[1].ports[0].assemblies and not handle.done
        await refused(b, target)
        await refused(a, source)
        # Another region that covers the message lets this one go.
        await b.register(target)
        await b._command(Operation.DEREGISTER, target.start, target.length)
        assert (await b.receive()).read() == content(500)
        await handle.wait()
        await a.dma_free(source)
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_port_can_be_closed_amid_traffic_and_opened_again() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        await b.provide_receive_buffer(await b.dma_malloc(1000))
        handle = await a.send(await filled(a, content(1000)), node=1, port=0)
        await cluster.world.sleep(1500)
        assert not handle.done
        await b.close()
        with pytest.raises(ClosedPortError):
            await handle.wait()
        with pytest.raises(ClosedPortError, match=r"^port 0 of node 1 is not open: open it first$"):
            await b.receive()
        b = await cluster.gms[1].open_port(0)
        await b.provide_receive_buffer(await b.dma_malloc(1000))
        again = await a.send(await filled(a, content(900)), node=1, port=0)
        assert (await b.receive()).read() == content(900)
        await again.wait()
        for _ in range(3):
            await a.close()
            a = await cluster.gms[0].open_port(0)
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_sequence_numbers_wrap(lost) -> None:
    """A stream goes over its 65536th packet, also while packets are being sent again."""
    rng = random.Random(7)
    cluster = Cluster(2, drop=lambda header: rng.random() < lost)
    start = SEQUENCE_MODULUS - 10
    key = FlowKey(0, 0, 0)
    cluster.programs[0].connection(1).sending(key).next_sequence = start

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        target, source = await b.dma_malloc(600), await a.dma_malloc(600)
        for salt in range(6):
            await b.provide_receive_buffer(target)
            source.write(content(600, salt))
            handle = await a.send(source, node=1, port=0)
            assert (await b.receive()).read() == content(600, salt)
            await handle.wait()
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())
    assert cluster.programs[1].connection(0).receive[key].expected == 20


def test_packets_of_strangers_are_dropped() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        card = cluster.cards[1]
        await cluster.world.sleep(100)
        misrouted = Header(source=0, destination=0)  # by a good CRC, which leaves out the route
        for header in (Header(kind=Kind.PROBE), Header(source=5, destination=1), misrouted):
            card.inbox.append((header.pack().to_bytes(16, "little"), lambda: None))
            card.take()
        await cluster.world.sleep(1000)
        assert cluster.programs[1].recv.dropped == 3
        cluster.assert_home()

    cluster.run(main())
