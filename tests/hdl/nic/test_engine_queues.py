"""The whole card with queues before its engines, by registers alone.

Transfers come in order of arrival and of stamps, and in lists. Tested, too, are the reports on them and a full queue.
"""

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.hdl.packet import Header, packet_flits

from .test_nic import Card

ARRIVAL = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=2),
    bus_bits=64,
    host_dma_bursts=4,
    dma_alignment_bytes=1,
    host_dma_queue_entries=3,
    send_queue_entries=3,
    receive_queue_entries=2,
)
STAMPS = ARRIVAL.replace(host_dma_queue_order="timestamp", send_queue_order="timestamp")
NEW = ("HOST_DMA", "SEND", "RECEIVE")


async def enqueue(ctx, c, *, host, sram, size, to_host=0, stamp=None, **tag):
    if tag:
        await c.write(ctx, "HOST_DMA_TAG", **tag)
    if stamp is not None:
        await c.write(ctx, "HOST_DMA_STAMP", ticks=stamp)
    await c.write(ctx, "HOST_DMA_HOST", address=host)
    await c.write(ctx, "HOST_DMA_SRAM", address=sram)
    await c.write(ctx, "HOST_DMA_CONTROL", bytes=size, to_host=to_host)


async def until_idle(ctx, c, name, flag="busy", limit=3000):
    for _ in range(limit):
        if not (await c.read(ctx, name))[flag]:
            return
    raise AssertionError(f"{name}.{flag} stays up")


def test_host_dma_by_a_queue_with_a_list_and_a_refused_start():
    """Four transfers of odd bytes at odd places; two of them are a list. One more finds the queue full."""
    card = Card(ARRIVAL, seed=3, stall=0.2)
    card.memory[:] = card.rng.randbytes(len(card.memory))
    before = bytes(card.memory)
    parts = [(0x1003, 0x105, 200), (0x2001, 0x305, 77), (0x0FF1, 0x352, 61), (0x30F7, 0x406, 130)]

    async def script(ctx, c):
        # Nothing moves yet, so that what is asked for has to wait: no address is taken.
        c.axi.stall = 1.0
        assert await c.read(ctx, "HOST_DMA_QUEUE") == {"entries": 0, "room": 3, "ended": 0, "refused": 0}
        for i, (host, sram, size) in enumerate(parts):
            await enqueue(ctx, c, host=host, sram=sram, size=size, tag=10 + i, notify=1, more=int(i == 1))
        state = await c.read(ctx, "HOST_DMA_QUEUE")
        assert state["entries"] + state["room"] == 3 and state["entries"] >= 2 and state["ended"] == 0
        for i in range(2):
            await enqueue(ctx, c, host=0x3800, sram=0x600 + 64 * i, size=4, tag=20 + i)
        state = await c.read(ctx, "HOST_DMA_QUEUE")
        assert (state["entries"], state["room"]) == (3, 0) and state["refused"] >= 1
        refused = state["refused"]
        assert (await c.read(ctx, "HOST_DMA_CONTROL"))["busy"]
        assert not (await c.read(ctx, "HOST_DMA_FINISHED"))["valid"]
        c.axi.stall = 0.2
        await until_idle(ctx, c, "HOST_DMA_CONTROL")
        assert (await c.read(ctx, "ISR"))["host_dma"]
        state = await c.read(ctx, "HOST_DMA_QUEUE")
        # The list counts once.
        assert state == {"entries": 0, "room": 3, "ended": 3 + 2 - refused, "refused": refused}
        for tag in (10, 12, 13):
            assert await c.read(ctx, "HOST_DMA_FINISHED") == {"tag": tag, "error": 0, "status": 0, "valid": 1}
        assert await c.read(ctx, "HOST_DMA_FINISHED") == {"tag": 0, "error": 0, "status": 0, "valid": 0}
        # And back, in one.
        await enqueue(ctx, c, host=0x2803, sram=0x104, size=0x390, to_host=1, tag=9, notify=1)
        await until_idle(ctx, c, "HOST_DMA_CONTROL")
        assert await c.read(ctx, "HOST_DMA_FINISHED") == {"tag": 9, "error": 0, "status": 0, "valid": 1}
        assert c.axi.quiet()

    card.run(script)
    for host, sram, size in parts:
        back = 0x2803 + sram - 0x104
        assert card.memory[back : back + size] == before[host : host + size]


def test_a_bad_part_shows_in_its_list_and_in_no_other():
    card = Card(ARRIVAL, fails=lambda address: 0x1000 <= address < 0x1008)

    async def script(ctx, c):
        await enqueue(ctx, c, host=0x2000, sram=0x100, size=9, tag=1, notify=1)
        await enqueue(ctx, c, host=0x1002, sram=0x200, size=3, tag=2, notify=1, more=1)
        await enqueue(ctx, c, host=0x2000, sram=0x300, size=8, tag=3, notify=1)
        await enqueue(ctx, c, host=0x2000, sram=0x400, size=8, tag=4, notify=1)
        await until_idle(ctx, c, "HOST_DMA_CONTROL")
        found = [await c.read(ctx, "HOST_DMA_FINISHED") for _ in range(3)]
        assert [(f["tag"], f["error"], f["valid"]) for f in found] == [(1, 0, 1), (3, 1, 1), (4, 0, 1)]

    card.run(script)


def test_the_smallest_stamp_is_served_first_but_for_what_is_protected():
    card = Card(STAMPS)
    order = []

    async def script(ctx, c):
        for protect in (0, 1):
            c.axi.stall = 1.0
            await c.write(ctx, "HOST_DMA_PROTECT", entries=protect)
            # The first is taken by the engine, the second has nothing closer to wait for than its data.
            stamps = [500, 400, 300, 200, 0xFFF0]
            for i, stamp in enumerate(stamps):
                await enqueue(ctx, c, host=0, sram=16 * i, size=16, stamp=stamp, tag=i, notify=1)
            c.axi.stall = 0.0
            await until_idle(ctx, c, "HOST_DMA_CONTROL")
            found = []
            while (entry := await c.read(ctx, "HOST_DMA_FINISHED"))["valid"]:
                found.append(entry["tag"])
            order.append(found)

    card.run(script)
    # 0xFFF0 is before 200 on a clock of 16 bits. The engine has the first two, or the first alone.
    served, protected = order
    head = served.index(4)
    assert sorted(served) == [0, 1, 2, 3, 4] and served[head:] == [
        4,
        *sorted(served[head + 1 :], reverse=True),
    ]
    assert protected[: head + 1] == list(range(head + 1)) and protected[head + 1 :] == [4, 3]


@pytest.mark.parametrize("config", [ARRIVAL, STAMPS], ids=["arrival", "timestamp"])
def test_packets_by_a_queue_into_queued_buffers(config):
    """Four packets are put into the send queue in one go. Of four buffers for them three are there from the beginning:
    one in the engine and two queued."""
    card = Card(config, seed=8)
    sizes = [40, 0, 128, 75]
    vls = [0, 1, 1, 0]
    payloads = [card.rng.randbytes(size) for size in sizes]
    stamped = config.send_queue_order == "timestamp"
    sequence = []

    async def script(ctx, c):
        for i in range(3):
            await c.write(ctx, "RECEIVE_TAG", tag=i, notify=1)
            await c.write(ctx, "RECEIVE_ADDRESS", address=0x1000 + 0x100 * i)
            await c.write(ctx, "RECEIVE_CONTROL", bytes=128)
        assert await c.read(ctx, "RECEIVE_QUEUE") == {"entries": 2, "room": 0, "ended": 0, "refused": 0}
        # No room for a fourth.
        await c.write(ctx, "RECEIVE_CONTROL", bytes=128)
        assert (await c.read(ctx, "RECEIVE_QUEUE"))["refused"] == 1
        for i, payload in enumerate(payloads):
            header = Header(length=sizes[i], sequence=i).pack().to_bytes(16, "little")
            image = header + payload + bytes(-len(payload) % 4)
            for word in range(len(image) // 4):
                value = int.from_bytes(image[4 * word : 4 * word + 4], "little")
                await c.access(ctx, SRAM_BASE + 0x100 * i + 4 * word, value)
        for i, size in enumerate(sizes):
            if stamped:
                await c.write(ctx, "SEND_STAMP", ticks=100 - i)
            await c.write(ctx, "SEND_TAG", tag=i, notify=1)
            await c.write(ctx, "SEND_ADDRESS", address=0x100 * i)
            await c.write(ctx, "SEND_CONTROL", bytes=size, vl=vls[i])
        while (await c.read(ctx, "RECEIVE_QUEUE"))["ended"] < 3:
            pass
        await c.write(ctx, "RECEIVE_TAG", tag=3, notify=1)
        await c.write(ctx, "RECEIVE_ADDRESS", address=0x1300)
        await c.write(ctx, "RECEIVE_CONTROL", bytes=128)
        await until_idle(ctx, c, "SEND_CONTROL")
        await until_idle(ctx, c, "RECEIVE_CONTROL", "armed")
        sequence.extend([(await c.read(ctx, "SEND_FINISHED"))["tag"] for _ in sizes])
        assert not (await c.read(ctx, "SEND_FINISHED"))["valid"]
        # Lanes share the link's far end: within one the order is that of sending.
        came = []
        for buffer in range(4):
            found = await c.read(ctx, "RECEIVE_FINISHED")
            assert (found["tag"], found["valid"]) == (buffer, 1)
            words = [
                await c.access(ctx, SRAM_BASE + 0x1000 + 0x100 * buffer + 4 * word)
                for word in range(4 + (found["bytes"] + 3) // 4)
            ]
            image = b"".join(word.to_bytes(4, "little") for word in words)
            header = Header.unpack(int.from_bytes(image[:16], "little"))
            which = header.sequence
            assert (found["bytes"], found["vl"]) == (sizes[which], vls[which])
            assert image[16 : 16 + found["bytes"]] == payloads[which]
            came.append(which)
        for vl in (0, 1):
            assert [i for i in came if vls[i] == vl] == [i for i in sequence if vls[i] == vl]
        assert not (await c.read(ctx, "RECEIVE_FINISHED"))["valid"]
        assert c.credits_out == 0 and c.flits == sum(packet_flits(size, config.link) for size in sizes)

    card.run(script)
    assert sorted(sequence) == [0, 1, 2, 3]
    if not stamped:
        assert sequence == [0, 1, 2, 3]


def test_a_card_without_queues_has_none_of_their_registers():
    names = set(nic_registers(preset(NicConfig, "tiny")))
    assert (
        not {f"{name}_{part}" for name in NEW for part in ("TAG", "QUEUE", "FINISHED", "STAMP", "PROTECT")}
        & names
    )
    names = set(nic_registers(ARRIVAL))
    assert {f"{name}_{part}" for name in NEW for part in ("TAG", "QUEUE", "FINISHED")} <= names
    assert not {"HOST_DMA_STAMP", "SEND_PROTECT"} & names
    names = set(nic_registers(STAMPS))
    assert {"HOST_DMA_STAMP", "HOST_DMA_PROTECT", "SEND_STAMP", "SEND_PROTECT"} <= names


def test_the_receive_engine_holds_at_most_two_queued_buffers():
    with pytest.raises(ConfigError) as error:
        preset(NicConfig, "tiny", receive_queue_entries=3)
    assert str(error.value).startswith("NicConfig.receive_queue_entries = 3: ")
