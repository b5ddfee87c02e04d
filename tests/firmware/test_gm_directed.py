"""Sizes of receive tokens, and messages to and from exposed memory, held to its bounds by the card."""

from __future__ import annotations

import random

import pytest
from lanikai.firmware.gm.layout import Operation, ReceiveDescriptor, Status
from lanikai.firmware.gm.state import Port
from lanikai.firmware.gm.wire import FlowKey
from lanikai.hdl.packet import Header
from lanikai.sim.host.errors import (
    AbortedError,
    MemoryUseError,
    MessageTooLongError,
    NodeDeadError,
    SendTimedOutError,
    UnregisteredMemoryError,
)
from lanikai.sim.host.gm.message import RemoteBuffer
from lanikai.sim.host.gm.sizes import length_for_size, size_for_length
from lanikai.sim.host.memory import Buffer
from support.firmware.python_cluster import Cluster


def content(length: int, salt: int = 0) -> bytes:
    return bytes((i * 7 + salt * 13) & 255 for i in range(length))


async def two(cluster: Cluster, length: int = 1000):
    """Port 0 of nodes 0 and 1, with a registered buffer each."""
    a, b = [await cluster.gms[node].open_port(0) for node in range(2)]
    return a, b, await a.dma_malloc(length), await b.dma_malloc(length)


def test_sizes_are_those_of_gm() -> None:
    assert [length_for_size(size) for size in (3, 4, 9, 31)] == [0, 8, 504, (1 << 31) - 8]
    for length in (0, 1, 8, 9, 24, 25, 504, 505, (1 << 31) - 8):
        size = size_for_length(length)
        assert length_for_size(size) >= length and (size == 3 or length_for_size(size - 1) < length)


@pytest.mark.parametrize("rate_controlled", [False, True])
def test_a_message_takes_a_token_of_its_size_and_no_other(rate_controlled) -> None:
    """The order of tokens and messages does not matter. Those without a size are a class of their own."""
    cluster = Cluster(2, rate_controlled=rate_controlled)

    async def main() -> None:
        a, b, source, _ = await two(cluster)
        source.write(content(1000))
        places = {size: await b.dma_malloc(1016) for size in (None, 9, 10)}
        for size in (10, None, 9):
            await b.provide_receive_buffer(places[size], size=size)
        for size, length in ((9, 504), (None, 700), (10, 1)):
            await (await a.send(source, length, node=1, port=0, size=size)).wait()
            message = await b.receive()
            assert message.buffer is places[size] and message.read() == content(1000)[:length]
        # None of size 9 is left: the message waits, though others are there, and is told when one comes.
        await b.provide_receive_buffer(places[None])
        await b.provide_receive_buffer(places[10], size=10)
        waiting = await a.send(source, 500, node=1, port=0, size=9)
        await cluster.world.sleep(30_000)
        assert not waiting.done and b.poll() is None
        given = cluster.world.cycle
        await b.provide_receive_buffer(places[9], size=9)
        assert (await b.receive()).buffer is places[9] and cluster.world.cycle - given < 4_000
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_sizes_that_do_not_fit_are_refused() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, _, source, _ = await two(cluster)

        async def refused(kind, message, call) -> None:
            with pytest.raises(kind) as caught:
                await call
            assert str(caught.value) == message

        sizes = "3 to 31, for messages of up to 2^size - 8 bytes"
        await refused(MemoryUseError, f"size = 2: {sizes}", a.send(source, node=1, port=0, size=2))
        await refused(MemoryUseError, f"size = 32: {sizes}", a.provide_receive_buffer(source, size=32))
        await refused(
            MessageTooLongError,
            "505 bytes: a message of size 9 has at most 504",
            a.send(source, 505, node=1, port=0, size=9),
        )
        await refused(
            MemoryUseError,
            "a receive buffer of size 10 has 1016 bytes or more, not 1000",
            a.provide_receive_buffer(source, size=10),
        )
        assert a.receive_tokens == 8 and a.send_tokens == 4

    cluster.run(main())


@pytest.mark.parametrize("rate_controlled", [False, True])
@pytest.mark.parametrize("most_copies", [0, 1, 3])
def test_puts_and_gets_move_the_bytes_that_they_name(rate_controlled, most_copies) -> None:
    """Puts and gets of any length and place go beside messages, with packets that get lost, come again and come late. A
    message behind a put comes after it."""
    rng = random.Random(5)

    def fate(header: Header) -> list[int]:
        copies = 0 if rng.random() < 0.1 else rng.randint(1, most_copies)
        return [rng.randrange(1, 3_000) for _ in range(copies)]

    cluster = Cluster(
        2, rate_controlled=rate_controlled, fate=fate if most_copies else None, send_timeout_ticks=1 << 30
    )

    async def main() -> None:
        a, b, source, target = await two(cluster)
        note = await b.dma_malloc(8)
        remote = await b.expose(target)
        for salt, length in enumerate([0, 1, 127, 128, 129, 500, 1000]):
            data, before = content(length, salt), rng.randbytes(1000)
            offset = rng.randrange(0, 1001 - length) & ~3
            target.write(before)
            source.write(data)
            put = await a.put(source, remote, length, remote_offset=offset)
            await b.provide_receive_buffer(note)
            await a.send(source, 0, node=1, port=0)
            assert (await b.receive()).buffer is note
            assert target.read() == before[:offset] + data + before[offset + length :]
            await put.wait()
            source.write(bytes(1000))
            got = await a.get(source, remote, length, remote_offset=offset)
            await got.wait()
            assert source.read(length) == data and got.status is Status.OK
            assert not any(source.read(1000 - length, length))
        assert a.send_tokens == 4
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_the_library_holds_puts_and_gets_to_what_was_exposed() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await two(cluster)
        remote = await b.expose(target)
        where = "RemoteBuffer(node=1, port=0, start=4096, length=1000)"
        assert str(remote).replace(str(remote.start), "4096") == where
        for call in (a.put, a.get):
            for length, offset in ((1000, 4), (4, 1000), (4, -4)):
                with pytest.raises(
                    MemoryUseError, match=rf"^{length} bytes at {offset} do not fit the 1000 bytes of "
                ):
                    await call(source, remote, length, remote_offset=offset)
            with pytest.raises(MemoryUseError, match=r": a DMA address is a multiple of 4$"):
                await call(source, remote, 4, remote_offset=2)
        with pytest.raises(MemoryUseError, match=r", 1000 bytes: exposed already$"):
            await b.expose(target)
        with pytest.raises(MemoryUseError, match=r": a buffer of another host than node 1$"):
            await b.expose(source)
        with pytest.raises(UnregisteredMemoryError):
            await b.expose(cluster.gms[1].memory.allocate(8))
        with pytest.raises(MemoryUseError, match=r"exposed to other ports; hide it first$"):
            await b.deregister(target)
        with pytest.raises(MemoryUseError, match=r" is not exposed by port 0 of node 0$"):
            await a.hide(remote)

    cluster.run(main())


def test_memory_of_which_a_part_is_exposed_stays_registered() -> None:
    """Library and card refuse to give it up, so that nobody reaches what another buffer has there later."""
    cluster = Cluster(2)

    async def main() -> None:
        _, b, _, target = await two(cluster)
        remote = await b.expose(Buffer(target.start + 8, 100, target.data[8:108]))
        with pytest.raises(MemoryUseError, match=r"exposed to other ports; hide it first$"):
            await b.dma_free(target)
        with pytest.raises(MemoryUseError, match=r"deregister on port 0 of node 1"):
            await b._command(Operation.DEREGISTER, target.start, target.length)
        await b.hide(remote)
        await b.dma_free(target)
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_a_flow_is_told_of_a_token_of_the_size_that_it_wants_now() -> None:
    """A message of one size was refused and has been given up. The flow's next one has another size."""
    port, key = Port(0), FlowKey(1, 0, 0)
    token = ReceiveDescriptor(address=0, length=504, priority=0, token=3, size=9)
    assert port.take_token(1, key, 10) is None and port.take_token(1, key, 9) is None
    assert port.waiting_for(token) == (1, key)


def test_the_card_holds_puts_and_gets_to_what_was_exposed() -> None:
    """A process that makes up an address reaches nothing beside what was exposed, and changes not a byte."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, _ = await two(cluster)
        beside = await b.dma_malloc(1000)
        part = await b.dma_malloc(4096)
        remote = await b.expose(part)
        start = part.start
        memory = cluster.cards[1].memory.copy()
        for forged in (
            RemoteBuffer(1, 0, beside.start, 1000),  # registered, and not exposed
            RemoteBuffer(1, 0, start - 4, 100),
            RemoteBuffer(1, 0, start + 4000, 100),
            RemoteBuffer(1, 0, (1 << 32) - 8, 100),
            RemoteBuffer(1, 0, 0, 100),
        ):
            for call in (a.put, a.get):
                handle = await call(source, forged, 100)
                with pytest.raises(
                    MemoryUseError, match=r"failed: port 0 of node 1 has not exposed that memory, or"
                ):
                    await handle.wait()
                assert handle.status is Status.NOT_EXPOSED
        changed = (memory != cluster.cards[1].memory).nonzero()[0]
        assert not any(beside.start <= place < part.start + 4096 for place in changed)
        await b.hide(remote)
        for call in (a.put, a.get):
            with pytest.raises(MemoryUseError):
                await (await call(source, remote, 100)).wait()
        await b.deregister(part)
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


def test_memory_that_is_hidden_amid_a_put_is_not_written_any_more() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await two(cluster)
        source.write(bytes([255] * 1000))
        remote = await b.expose(target)
        await a.set_idt(node=1, port=0, ticks=1_500)
        put = await a.put(source, remote)
        await cluster.world.sleep(6_000)
        await b.hide(remote)
        await b.deregister(target)
        written = target.read()
        assert 0 < sum(map(bool, written)) < 1000
        with pytest.raises(Exception, match=r"failed: port 0 of node 1 is not open$"):
            await put.wait()
        assert target.read() == written
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())


@pytest.mark.parametrize("how", ["abort", "timeout", "dead", "close"])
def test_a_get_whose_bytes_do_not_come_ends(how) -> None:
    """The request has been taken, and the answer is lost for ever. Bytes that come later are not written."""
    muted = [True]
    cluster = Cluster(
        2,
        drop=lambda header: muted[0] and header.source == 1 and header.length > 0,
        send_timeout_ticks=40_000,
    )

    async def main() -> None:
        a, b, source, target = await two(cluster)
        target.write(bytes([255] * 1000))
        remote = await b.expose(target)
        asked = cluster.world.cycle
        got = await a.get(source, remote)
        await cluster.world.sleep(8_000)
        assert not got.done and cluster.programs[0].ports[0].gets
        if how == "abort":
            await a.abort(got)
        elif how == "dead":
            await cluster.gms[0].node_died(1)
        elif how == "close":
            await a.close(timeout_ticks=100)
        error = {"timeout": SendTimedOutError, "dead": NodeDeadError}.get(how, AbortedError)
        with pytest.raises(error):
            await got.wait()
        assert (cluster.world.cycle - asked) / float(cluster.nic.tick_cycles) < 60_000
        muted[0] = False
        await cluster.world.sleep(300_000)
        assert not any(source.read())
        await cluster.settle()
        cluster.assert_home()
        assert not cluster.programs[0].ports[0].gets

    cluster.run(main())


def test_a_port_is_closed_amid_a_get_of_its_memory() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b, source, target = await two(cluster)
        remote = await b.expose(target)
        await b.set_idt(node=0, port=0, ticks=4_000)
        got = await a.get(source, remote)
        await cluster.world.sleep(10_000)
        await b.close(timeout_ticks=0)
        await a.abort(got)
        assert got.done
        await cluster.settle()
        cluster.assert_home()

    cluster.run(main())
