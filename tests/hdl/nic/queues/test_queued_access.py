"""Checked transfers and the firmware's own in one queue.

They end in their order, in lists and by themselves, whatever is forbidden between.
"""

import pytest
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.ports import SRAM_BASE

from ..test_nic import Card

CONFIG = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=2),
    bus_bits=64,
    owners=2,
    regions=2,
    translation_entries=4,
    host_dma_queue_entries=4,
    host_dma_bursts=4,
)
STAMPS = CONFIG.replace(host_dma_queue_order="timestamp")
TABLE, VIRTUAL, FRAMES, KEY = 0x400, 0x70000, (3, 1), 9
"""Region 0: two pages of virtual memory, which lie in host memory the other way round."""


def physical(address):
    """The physical place of a virtual address."""
    page, offset = divmod(address - VIRTUAL, 4096)
    return FRAMES[page] << 12 | offset


async def begin(ctx, c):
    """Give channel 0 and region 0 to owner 1."""
    for number, frame in enumerate(FRAMES):
        c.memory[TABLE + 4 * number : TABLE + 4 * number + 4] = (frame << 12 | 1).to_bytes(4, "little")
    await c.write(ctx, "DOORBELL_CHANNEL", channel=0, owner=1, open=1)
    await c.write(ctx, "REGION_START", address=VIRTUAL)
    await c.write(ctx, "REGION_BYTES", bytes=0x2000)
    await c.write(ctx, "REGION_TABLE", address=TABLE)
    await c.write(ctx, "REGION", region=0, key=KEY, owner=1, writable=1, valid=1)


async def tag(ctx, c, number, *, more=0):
    await c.write(ctx, "HOST_DMA_TAG", tag=number, notify=1, more=more)


async def access(ctx, c, *, address, sram, size, to_host=0, key=KEY):
    await c.write(ctx, "ACCESS_ADDRESS", address=address)
    await c.write(ctx, "ACCESS_TAG", region=0, key=key, channel=0)
    await c.write(ctx, "ACCESS_SRAM", address=sram)
    await c.write(ctx, "ACCESS_CONTROL", bytes=size, to_host=to_host)


async def own(ctx, c, *, host, sram, size, to_host=0):
    await c.write(ctx, "HOST_DMA_HOST", address=host)
    await c.write(ctx, "HOST_DMA_SRAM", address=sram)
    await c.write(ctx, "HOST_DMA_CONTROL", bytes=size, to_host=to_host)


async def finished(ctx, c, limit=3000):
    """Wait for the next result, and return it."""
    for _ in range(limit):
        found = await c.read(ctx, "HOST_DMA_FINISHED")
        if found.pop("valid"):
            return found
    raise AssertionError("a transfer does not end")


async def sram_bytes(ctx, c, at, size):
    words = [await c.access(ctx, SRAM_BASE + at + 4 * i) for i in range(-(-size // 4))]
    return b"".join(word.to_bytes(4, "little") for word in words)[:size]


@pytest.mark.parametrize(
    "config", [CONFIG, STAMPS, CONFIG.replace(pipelined=True)], ids=["arrival", "timestamp", "pipelined"]
)
def test_data_and_the_next_descriptor_are_one_list(config):
    """Tailgating (nagar-thesis-2001 4.3.9): both are there at one event."""
    card = Card(config, stall=0.2)
    card.memory[0x800:] = card.rng.randbytes(len(card.memory) - 0x800)
    before = bytes(card.memory)

    async def script(ctx, c):
        await begin(ctx, c)
        address = VIRTUAL + 4096 - 32
        await tag(ctx, c, 5, more=1)
        await access(ctx, c, address=address, sram=0x100, size=96)
        await tag(ctx, c, 6)
        await own(ctx, c, host=0x2000, sram=0x300, size=16)
        assert (await c.read(ctx, "ACCESS_CONTROL"))["busy"]
        await c.event(ctx, "host_dma")
        assert await finished(ctx, c) == {"tag": 6, "error": 0, "status": 0}
        data = before[physical(address) :][:32] + before[physical(address + 32) :][:64]
        assert await sram_bytes(ctx, c, 0x100, 96) == data
        assert await sram_bytes(ctx, c, 0x300, 16) == before[0x2000:0x2010]
        assert (await c.read(ctx, "HOST_DMA_QUEUE"))["ended"] == 1
        assert not (await c.read(ctx, "ACCESS_CONTROL"))["busy"]
        assert (await c.read(ctx, "ISR"))["access"]
        # A list of which the first part is forbidden: the other is done all the same, and the list says why.
        await tag(ctx, c, 7, more=1)
        await access(ctx, c, address=address, sram=0x100, size=96, key=KEY + 1)
        await tag(ctx, c, 8)
        await own(ctx, c, host=0x2100, sram=0x300, size=16)
        assert await finished(ctx, c) == {"tag": 8, "error": 1, "status": CompletionStatus.NO_REGION}
        assert await sram_bytes(ctx, c, 0x300, 16) == before[0x2100:0x2110]
        assert await c.read(ctx, "VIOLATIONS") == {"accesses": 1}
        assert (await c.read(ctx, "HOST_DMA_QUEUE"))["entries"] == 0 and c.axi.quiet()

    card.run(script)


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]
)
def test_transfers_of_both_kinds_end_in_their_order(seed, pipelined):
    """Transfers are random: checked or not, forbidden or not, over a page, of no bytes, into a bus error; singly and in
    lists."""
    config = CONFIG.replace(pipelined=pipelined)
    card = Card(config, seed=seed, stall=0.3, fails=lambda address: 0x3F00 <= address < 0x3F40)
    rng = card.rng
    content = rng.randbytes(0x3800)
    card.memory[0x800 : 0x800 + len(content)] = content
    expected = []

    async def script(ctx, c):
        await begin(ctx, c)
        first, i = CompletionStatus.OK, 0
        while i < 40:
            while not (await c.read(ctx, "HOST_DMA_QUEUE"))["room"]:
                pass
            more = int(rng.random() < 0.3 and i < 38)
            await tag(ctx, c, i, more=more)
            sram, size = 0x400 + 64 * (i % 40), rng.choice([0, 4, 8, 40, 64])
            kind = rng.choice(
                ["own", "own", "bad own", "checked", "checked", "no key", "outside", "bad checked"]
            )
            status = CompletionStatus.OK
            if kind == "own":
                at = rng.randrange(0x800, 0x3800) & ~3
                await own(ctx, c, host=at, sram=sram, size=size)
                data = c.memory[at : at + size]
            elif kind == "bad own":
                await own(ctx, c, host=0x3F00, sram=sram, size=8)
                status = CompletionStatus.BUS_ERROR
            elif kind == "bad checked":
                # Physical 0x3f00 is in the region's first page.
                await access(ctx, c, address=VIRTUAL + 0xF00, sram=sram, size=8)
                status = CompletionStatus.BUS_ERROR
            else:
                address = VIRTUAL + (4096 - size // 8 * 4 if rng.randrange(2) else rng.randrange(0x800) & ~3)
                if 0xEC0 <= address - VIRTUAL < 0xF40:
                    address = VIRTUAL
                if kind == "outside":
                    address = VIRTUAL + 0x2000 - size + 4
                    status = CompletionStatus.OUTSIDE
                if kind == "no key":
                    status = CompletionStatus.NO_REGION
                await access(ctx, c, address=address, sram=sram, size=size, key=KEY + (kind == "no key"))
                data = bytes(c.memory[physical(address + n)] for n in range(size)) if not status else b""
            if status == CompletionStatus.OK:
                placed.append((sram, bytes(data)))
            first = first or status
            if not more:
                expected.append({"tag": i, "error": int(first != 0), "status": first})
                first = CompletionStatus.OK
            i += 1
            while found := await c.read(ctx, "HOST_DMA_FINISHED"):
                if not found.pop("valid"):
                    break
                results.append(found)
        while len(results) < len(expected):
            results.append(await finished(ctx, c))
        for sram, data in placed:
            assert await sram_bytes(ctx, c, sram, len(data)) == data
        assert c.axi.quiet()

    placed, results = [], []
    card.run(script)
    assert results == expected and len({entry["status"] for entry in expected}) == 4


def test_an_access_that_finds_no_room_is_counted_and_does_nothing():
    card = Card(CONFIG)

    async def script(ctx, c):
        await begin(ctx, c)
        c.axi.stall = 1.0
        for i in range(8):
            await access(ctx, c, address=VIRTUAL, sram=0x100 + 16 * i, size=16, to_host=1)
        state = await c.read(ctx, "HOST_DMA_QUEUE")
        assert state["room"] == 0 and state["refused"] == 8 - 4 - 1
        c.axi.stall = 0.0
        while (await c.read(ctx, "ACCESS_CONTROL"))["busy"]:
            pass
        assert (await c.read(ctx, "HOST_DMA_QUEUE"))["ended"] == 5

    card.run(script)


def test_only_cards_with_both_tell_a_status():
    def fields(config):
        return nic_registers(config)["HOST_DMA_FINISHED"].fields

    assert "status" in fields(CONFIG) and "status" not in fields(CONFIG.replace(regions=0))
