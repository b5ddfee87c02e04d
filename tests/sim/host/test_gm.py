"""The GM library: its refusals, before anything moves, and their words; tokens, callbacks, IDT, flows."""

from __future__ import annotations

import numpy as np
import pytest
from lanikai.hdl.config import NicConfig, preset
from lanikai.sim.host.config import HostConfig
from lanikai.sim.host.errors import (
    ArgumentTypeError,
    ClosedPortError,
    GmError,
    IdtRangeError,
    MemoryUseError,
    NoTokensError,
    TooManyFlowsError,
    UnknownNodeError,
    UnknownPortError,
    UnregisteredMemoryError,
)
from lanikai.sim.host.memory import Buffer
from support.firmware.python_cluster import Cluster


async def refused(cluster: Cluster, kind: type[Exception], message: str, call) -> None:
    """Check that the call fails with exactly this, and nothing is written to the NIC."""
    writes = len(cluster.hosts[0].writes)
    with pytest.raises(kind) as caught:
        await call
    assert str(caught.value) == message and "\n" not in message
    assert len(cluster.hosts[0].writes) == writes


def test_what_is_refused_before_anything_moves() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        gm = cluster.gms[0]
        port = await gm.open_port(0)
        other = await gm.open_port(1)
        buffer = await port.dma_malloc(100)
        foreign = await other.dma_malloc(100)
        where = "is not registered with port 0 of node 0: take it from dma_malloc or register it"

        async def check(kind, message, call) -> None:
            await refused(cluster, kind, message, call)

        await check(UnknownPortError, "node 0 has no port 4: 0 to 3", gm.open_port(4))
        await check(ClosedPortError, "port 0 of node 0 is open already: close it first", gm.open_port(0))
        await check(
            UnregisteredMemoryError,
            f"memory at {foreign.start:#x}, 100 bytes, {where}",
            port.send(foreign, node=1, port=0),
        )
        await check(
            UnregisteredMemoryError,
            f"memory at {buffer.start:#x}, 101 bytes, {where}",
            port.send(buffer, 101, node=1, port=0),
        )
        await check(
            UnregisteredMemoryError,
            f"memory at {foreign.start:#x}, 100 bytes, {where}",
            port.provide_receive_buffer(foreign),
        )
        await check(
            UnregisteredMemoryError,
            f"memory at {foreign.start:#x}, 100 bytes, {where}",
            port.deregister(foreign),
        )
        await check(
            MemoryUseError,
            f"memory at {buffer.start + 2:#x}: a DMA address is a multiple of 4",
            port.send(buffer, 10, node=1, port=0, offset=2),
        )
        await check(
            MemoryUseError,
            f"memory at {buffer.start + 1:#x}: a DMA address is a multiple of 4",
            port.provide_receive_buffer(Buffer(buffer.start + 1, 8, buffer.data[1:9])),
        )
        await check(
            MemoryUseError,
            "101 bytes to receive do not fit a buffer of 100 bytes",
            port.provide_receive_buffer(buffer, 101),
        )
        part = Buffer(buffer.start, 40, buffer.data[:40])  # inside a region that would have room
        await check(
            MemoryUseError,
            "41 bytes to receive do not fit a buffer of 40 bytes",
            port.provide_receive_buffer(part, 41),
        )
        await check(MemoryUseError, "a message of -4 bytes: 0 or more", port.send(buffer, -4, node=1, port=0))
        await check(
            MemoryUseError,
            "memory at 0xffff0, 32 bytes: node 0 has 1048576 bytes",
            port.register(Buffer(0xFFFF0, 32, buffer.data)),
        )
        await check(
            UnknownNodeError,
            "node 0 has no route to node 2; it reaches 0, 1",
            port.send(buffer, node=2, port=0),
        )
        await check(
            UnknownPortError,
            "node 1 has no port 32: port numbers are 0 to 31",
            port.send(buffer, node=1, port=32),
        )
        await check(
            ValueError, "priority = 2: 0 (low) or 1 (high)", port.send(buffer, node=1, port=0, priority=2)
        )
        await check(
            ValueError, "priority = 2: 0 (low) or 1 (high)", port.provide_receive_buffer(buffer, priority=2)
        )
        await check(IdtRangeError, "IDT = 16384 ticks: 0 to 16383", port.set_idt(node=1, port=0, ticks=16384))
        await check(IdtRangeError, "IDT = -1 ticks: 0 to 16383", port.set_idt(node=1, port=0, ticks=-1))
        message = "least_bytes = 8: node 0 charges packets, whatever their bytes; it needs GmConfig.charge = 'bytes'"
        await check(IdtRangeError, message, port.set_idt(node=1, port=0, ticks=5, least_bytes=8))
        await other.close()
        gone = "port 1 of node 0 is not open: open it first"
        await check(ClosedPortError, gone, other.send(foreign, node=1, port=0))
        await check(ClosedPortError, gone, other.provide_receive_buffer(foreign))
        await check(ClosedPortError, gone, other.receive())
        await check(ClosedPortError, gone, other.set_idt(node=1, port=0, ticks=1))
        await check(ClosedPortError, gone, other.close())
        assert issubclass(ClosedPortError, GmError)

    cluster.run(main())


def test_arguments_of_another_type_are_refused_in_one_line() -> None:
    """Such arguments once ended in AttributeError, struct.error or TypeError from deep inside, or were taken."""
    cluster = Cluster(2)

    async def main() -> None:
        gm = cluster.gms[0]
        port = await gm.open_port(0)
        buffer = await port.dma_malloc(100)

        async def check(message: str, call) -> None:
            await refused(cluster, ArgumentTypeError, message, call)

        for value, shown in ((4.0, "float"), ("5", "str"), (True, "bool"), (None, "NoneType")):
            whole = f"{value!r}: a whole number (int), not {shown}"
            send = {"node": 1, "port": 0}
            if value is not None:
                await check(f"length = {whole}", port.send(buffer, value, **send))
                await check(f"length = {whole}", port.provide_receive_buffer(buffer, value))
                await check(f"timeout_ticks = {whole}", port.close(value))
                await check(f"size = {whole}", port.send(buffer, **send, size=value))
                await check(f"size = {whole}", port.provide_receive_buffer(buffer, size=value))
            await check(f"offset = {whole}", port.send(buffer, **send, offset=value))
            await check(f"priority = {whole}", port.send(buffer, **send, priority=value))
            await check(f"priority = {whole}", port.provide_receive_buffer(buffer, priority=value))
            await check(f"node = {whole}", port.send(buffer, node=value, port=0))
            await check(f"port = {whole}", port.send(buffer, node=1, port=value))
            await check(f"ticks = {whole}", port.set_idt(node=1, port=0, ticks=value))
            await check(f"node = {whole}", port.set_idt(node=value, port=0, ticks=1))
            await check(f"port = {whole}", port.set_idt(node=1, port=value, ticks=1))
            await check(f"priority = {whole}", port.set_idt(node=1, port=0, priority=value, ticks=1))
            await check(f"number = {whole}", gm.open_port(value))
            await check(f"node = {whole}", gm.node_died(value))
            await check(f"length = {whole}", port.dma_malloc(value))
        await check(
            "callback: a function of a SendHandle, not int", port.send(buffer, node=1, port=0, callback=3)
        )
        with pytest.raises(ArgumentTypeError, match=r"^number = 0.0: a whole number \(int\), not float$"):
            gm.port(0.0)
        not_one = "buffer: a Buffer of this host, not bytes"
        for call in (
            port.send(b"abc", node=1, port=0),
            port.provide_receive_buffer(b"abc"),
            port.register(b"abc"),
            port.deregister(b"abc"),
            port.expose(b"abc"),
            port.put(b"abc", None),
        ):
            await check(not_one, call)
        await check("remote: a RemoteBuffer, which expose gives, not Buffer", port.put(buffer, buffer))
        await check("remote: a RemoteBuffer, which expose gives, not Buffer", port.hide(buffer))
        await check("handle: a SendHandle of this port, not int", port.abort(3))
        await refused(cluster, ValueError, "timeout_ticks = -1: 0 or more", port.close(-1))
        # A value that stands for a whole number is one.
        await port.set_idt(node=np.uint16(1), port=np.int64(0), ticks=np.int32(7))
        assert cluster.cards[0].flows[0].idt == 7
        assert port.is_open and port.send_tokens == 4 and port.receive_tokens == 8

    cluster.run(main())


def test_memory_of_others_and_beside_the_buffer_is_not_sent() -> None:
    """A negative offset once sent the buffer before it; so did another node's buffer, one's own memory at its
    address."""
    cluster = Cluster(2)

    async def main() -> None:
        port, other = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        first, buffer = await port.dma_malloc(4096), await port.dma_malloc(100)
        assert first.start + 4096 == buffer.start
        foreign = await other.dma_malloc(100)
        inside = Buffer(first.start, 40, first.data[:40])

        async def check(message: str, call) -> None:
            await refused(cluster, MemoryUseError, message, call)

        for call in (port.send, port.put):
            to = {"node": 1, "port": 0} if call == port.send else {"remote": await other.expose(foreign)}
            await check("offset = -4096: 0 to 100, the buffer's bytes", call(buffer, **to, offset=-4096))
            await check("offset = 104: 0 to 100, the buffer's bytes", call(buffer, **to, offset=104))
            await check("60 bytes at 0 are not in a buffer of 40 bytes", call(inside, length=60, **to))
            await check(
                "8 bytes at 36 are not in a buffer of 40 bytes", call(inside, length=8, offset=36, **to)
            )
            theirs = f"memory at {foreign.start:#x}, 100 bytes: a buffer of another host than node 0"
            await check(theirs, call(foreign, **to))
        await check(theirs, port.provide_receive_buffer(foreign))
        await check(theirs, port.register(foreign))

    cluster.run(main())


def test_a_receive_buffer_is_not_given_twice() -> None:
    """The second message once overwrote the first. Parts of the buffer are not given either, nor is it by another port.
    Once its message has come it may be given again."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[1].open_port(0), await cluster.gms[0].open_port(0)
        other = await cluster.gms[0].open_port(1)
        buffer = await b.dma_malloc(100)
        await other.register(buffer)
        await b.provide_receive_buffer(buffer, 60)
        inside = Buffer(buffer.start + 40, 8, buffer.data[40:48])
        behind = Buffer(buffer.start + 60, 40, buffer.data[60:100])
        for port, again in ((b, buffer), (b, inside), (other, buffer)):
            await refused(
                cluster,
                MemoryUseError,
                f"memory at {again.start:#x}, {again.length} bytes: given to receive in already; its message must "
                "come first",
                port.provide_receive_buffer(again),
            )
        await b.provide_receive_buffer(behind)
        await a.send(await a.dma_malloc(8), node=0, port=0)
        assert (await b.receive()).buffer is buffer
        await b.provide_receive_buffer(inside)

    cluster.run(main())


def test_tokens_are_counted_and_come_back() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        buffer = await a.dma_malloc(64)
        targets = [await b.dma_malloc(64) for _ in range(9)]
        called = []
        handles = [await a.send(buffer, node=1, port=0, callback=called.append) for _ in range(4)]
        assert a.send_tokens == 0
        message = "port 0 of node 0: all 4 send tokens are in use; wait for a send to end"
        await refused(cluster, NoTokensError, message, a.send(buffer, node=1, port=0))
        with pytest.raises(MemoryUseError, match=r"64 bytes: a message still uses it; wait for its end$"):
            await a.deregister(buffer)
        for n in range(8):
            assert b.receive_tokens == 8 - n
            await b.provide_receive_buffer(targets[n])
        with pytest.raises(NoTokensError) as caught:
            await b.provide_receive_buffer(targets[8])
        assert (
            str(caught.value) == "port 0 of node 1: all 8 receive tokens are in use; receive a message first"
        )
        for handle in handles:
            await handle.wait()
            assert handle.done and handle.error is None and handle.done_cycle > handle.sent_cycle
        assert called == handles and a.send_tokens == 4 and b.receive_tokens == 4
        for _ in range(4):
            assert (await b.receive()).length == 64
        assert b.poll() is None
        await a.dma_free(buffer)
        with pytest.raises(UnregisteredMemoryError):
            await a.send(buffer, node=1, port=0)

    cluster.run(main())


def test_no_more_flows_than_the_unit_holds() -> None:
    cluster = Cluster(3, nic={"flows": 2})

    async def main() -> None:
        a = await cluster.gms[0].open_port(0)
        buffer = await a.dma_malloc(8)
        await a.set_idt(node=1, port=0, ticks=100)
        await a.set_idt(node=2, port=3, priority=1, ticks=16383)
        await a.set_idt(node=1, port=0, ticks=0)
        message = (
            "node 0: the flow from port 0 to port 3 of node 2, priority 0, would be number 3; its rate "
            "control unit holds 2 flows"
        )
        await refused(cluster, TooManyFlowsError, message, a.send(buffer, node=2, port=3))
        await refused(cluster, TooManyFlowsError, message, a.set_idt(node=2, port=3, ticks=5))
        assert [flow.idt for flow in cluster.cards[0].flows] == [0, 16383]
        await a.close()
        assert [flow.idt for flow in cluster.cards[0].flows] == [0, 0]
        a = await cluster.gms[0].open_port(1)
        await a.set_idt(node=2, port=3, ticks=5)
        assert [flow.idt for flow in cluster.cards[0].flows] == [5, 0]

    cluster.run(main())


def test_a_send_without_a_token_takes_no_place_of_a_flow() -> None:
    """The refused flow was once remembered, and a later one had no room."""
    cluster = Cluster(3, nic={"flows": 2})

    async def main() -> None:
        a = await cluster.gms[0].open_port(0)
        buffer = await a.dma_malloc(8)
        for _ in range(a.send_tokens):
            await a.send(buffer, node=1, port=0)
        with pytest.raises(NoTokensError):
            await a.send(buffer, node=1, port=1)
        await a.set_idt(node=2, port=0, ticks=5)

    cluster.run(main())


def test_the_unmodified_program_has_no_idt_and_any_number_of_flows() -> None:
    cluster = Cluster(2, nic={"flows": 1}, rate_controlled=False)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        message = "node 0 runs the unmodified control program: it has no IDT to set"
        await refused(cluster, IdtRangeError, message, a.set_idt(node=1, port=0, ticks=5))
        for priority in (0, 1):
            await b.provide_receive_buffer(await b.dma_malloc(8), priority=priority)
            await (await a.send(await a.dma_malloc(8), node=1, port=0, priority=priority)).wait()

    cluster.run(main())


def test_calls_of_one_port_made_at_once_keep_their_order() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        for _ in range(4):
            await b.provide_receive_buffer(await b.dma_malloc(8))
        buffers = [await a.dma_malloc(8) for _ in range(4)]
        for n, buffer in enumerate(buffers):
            buffer.write(bytes([n] * 8))
        await cluster.world.gather(*(a.send(buffer, node=1, port=0) for buffer in buffers))
        assert [(await b.receive()).read()[0] for _ in range(4)] == [0, 1, 2, 3]

    cluster.run(main())


def test_a_port_closed_while_a_call_waits_answers_both() -> None:
    """The answer to the other call was once taken for that to the close, which then waited for ever."""
    cluster = Cluster(2)

    async def main() -> None:
        gm = cluster.gms[0]
        port = await gm.open_port(0)
        await cluster.world.gather(port.register(gm.memory.allocate(8)), port.close())
        await (await gm.open_port(0)).close()

    cluster.run(main())


def test_a_port_whose_opening_was_refused_can_be_opened_later() -> None:
    """It once stayed taken for good. The process that has the port on the card is not disturbed."""
    cluster = Cluster(2)

    async def main() -> None:
        gm, other = cluster.gms[0], cluster.programs[0].ports[0]
        free = gm.memory.free_bytes
        other.open, other.ring_address = True, len(cluster.cards[0].memory) - 4096
        before = cluster.cards[0].memory[other.ring_address :].copy()
        with pytest.raises(GmError) as caught:
            await gm.open_port(0)
        assert str(caught.value) == "open on port 0 of node 0 failed: the NIC refused it"
        assert gm.memory.free_bytes == free and other.events == 0
        assert (cluster.cards[0].memory[other.ring_address :] == before).all()
        other.open = False
        port = await gm.open_port(0)
        await (await gm.open_port(1)).close()
        await port.close()
        assert gm.memory.free_bytes == free

    cluster.run(main())


def test_a_port_without_room_for_its_ring_can_be_opened_later() -> None:
    cluster = Cluster(2)

    async def main() -> None:
        gm = cluster.gms[0]
        everything = gm.memory.allocate(gm.memory.free_bytes)
        with pytest.raises(MemoryUseError):
            await gm.open_port(0)
        gm.memory.release(everything)
        await gm.open_port(0)

    cluster.run(main())


def test_an_event_is_never_seen_before_its_data() -> None:
    """The last byte is there when the message is announced, whatever the sizes."""
    cluster = Cluster(2)

    async def main() -> None:
        a, b = await cluster.gms[0].open_port(0), await cluster.gms[1].open_port(0)
        source, target = await a.dma_malloc(400), await b.dma_malloc(400)
        for length in (0, 1, 3, 4, 127, 128, 129, 400):
            target.data[:] = 0
            source.write(bytes([length & 255 | 1] * 400))
            await b.provide_receive_buffer(target)
            await a.send(source, length, node=1, port=0)
            message = await b.receive()
            assert message.length == length and message.read() == source.read(length)
            assert not target.data[length:].any()

    cluster.run(main())


def test_host_time_is_counted_in_nic_cycles() -> None:
    nic = preset(NicConfig, "lanai4")
    host = HostConfig()
    assert [host.cycles(ns, nic) for ns in (0, 30, 31, 1000)] == [0, 1, 2, 33]
