"""Pages of owners through the whole card: the powers of a process by its page, and their limits."""

import pytest
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE
from support.hdl.completion_queue import Consumer
from support.hdl.reordering_memory import ReorderingMemory

from .. import test_nic
from ..test_nic import Card

CONFIG = preset(
    NicConfig,
    "tiny",
    owners=4,
    receive_doorbells="separate",
    doorbell_priorities=2,
    shadow_windows=True,
    completion_queues=2,
    completion_batch=2,
    regions=4,
    translation_entries=4,
)
A, B = 1, 2
SEND, RECEIVE, COMPLETION, SHADOW = (0x400 * part for part in range(4))
OKAY, SLVERR = 0, 2


def page(owner, offset=0):
    """Address of a page of the window."""
    return DOORBELL_BASE + 4096 * owner + offset


def host_register(name):
    """Address of a register of the host's."""
    return REGISTER_BASE + HOST_REGISTERS[name].offset


async def channels(ctx, c, **more):
    """Channels 0 and 2 are A's, 1 is B's."""
    for channel, owner in ((0, A), (1, B), (2, A)):
        await c.write(
            ctx, "DOORBELL_CHANNEL", channel=channel, owner=owner, open=1, priority=channel == 2, **more
        )


def test_doorbells_of_a_page_are_its_owners():
    async def script(ctx, c):
        await channels(ctx, c)
        for owner, offset, channel, answer in (
            (A, SEND, 0, OKAY),
            (A, RECEIVE + 0x3FC, 2, OKAY),
            (B, SEND, 0, SLVERR),
            (A, SEND, 1, SLVERR),
            (B, RECEIVE, 1, OKAY),
            (A, SEND + 8, 2, OKAY),
            (3, SEND, 3, SLVERR),
            (700, SEND, 0, SLVERR),
        ):
            assert await c.host.write(ctx, page(owner, offset), channel | 0x1234 << 10) == answer
        # The highest class first.
        for channel in (2, 0):
            assert await c.read(ctx, "DOORBELL_QUEUE") == {"channel": channel, "value": 0x1234, "valid": 1}
        for channel in (2, 1):
            entry = await c.read(ctx, "DOORBELL_RECEIVE_QUEUE")
            assert entry == {"channel": channel, "value": 0x1234, "valid": 1}
        assert not (await c.read(ctx, "DOORBELL_QUEUE"))["valid"]
        assert not (await c.read(ctx, "DOORBELL_RECEIVE_QUEUE"))["valid"]
        assert await c.host.read(ctx, host_register("DOORBELLS_REFUSED")) == (4, OKAY)

    Card(CONFIG).run(script)


def test_a_shadow_window_cannot_be_left():
    async def script(ctx, c):
        await c.write(ctx, "SHADOW_ADDRESS", address=0x200)
        await c.write(ctx, "SHADOW_WINDOW", owner=A, bytes=16)
        await c.write(ctx, "SHADOW_ADDRESS", address=0x210)
        await c.write(ctx, "SHADOW_WINDOW", owner=B, bytes=1024)
        for owner, offset, answer in (
            (A, 0, OKAY),
            (A, 12, OKAY),
            (A, 16, SLVERR),
            (A, 0x3FC, SLVERR),
            (3, 0, SLVERR),
        ):
            assert await c.host.write(ctx, page(owner, SHADOW + offset), 0xA0000000 + offset) == answer
        assert await c.host.write(ctx, page(B, SHADOW), 0xB) == OKAY
        words = [await c.access(ctx, 0x1FC + 4 * i) for i in range(7)]
        assert words == [0, 0xA0000000, 0, 0, 0xA000000C, 0xB, 0]

    Card(CONFIG).run(script)


@pytest.mark.parametrize(
    ("address", "size"), [(0x200, 5), (0x203, 8), (0x201, 3), (0x202, 15), (0x200, 1024)]
)
def test_a_shadow_window_has_no_byte_more_than_was_said(address, size):
    """Sizes and addresses are no multiples of 4, writes have any address and strobes.

    Only whole words that are in the window change. A window of 5 bytes once let 8 be written, one
    of 8 bytes from 0x203 on 12.
    """

    async def script(ctx, c):
        await c.write(ctx, "SHADOW_ADDRESS", address=address)
        await c.write(ctx, "SHADOW_WINDOW", owner=A, bytes=size)
        whole = size // 4 * 4
        for offset in (*range(24), 1016, 1020, 1021, 1023):
            answer = await c.host.write(ctx, page(A, SHADOW + offset), 0xFFFFFFFF)
            assert answer == (OKAY if offset < whole else SLVERR), offset
        first = address & ~3
        for at in (*range(0x1F8, 0x220, 4), 0x5F8, 0x5FC, 0x600):
            written = first <= at < first + whole and (at < 0x218 or at in (0x5F8, 0x5FC))
            assert await c.access(ctx, at) == (0xFFFFFFFF if written else 0), hex(at)

    Card(CONFIG).run(script)


def test_completions_reach_their_consumer_by_interrupt():
    card = Card(CONFIG, stall=0.2)

    async def script(ctx, c):
        assert await c.host.write(ctx, host_register("HOST_IMR"), 2) == OKAY
        for queue, owner in ((0, A), (1, B)):
            await c.write(ctx, "COMPLETION_RING", address=0x1000 + 0x100 * queue)
            await c.write(ctx, "COMPLETION_SETUP", queue=queue, entries_log2=2, batch=1, owner=owner)
            while (await c.read(ctx, "COMPLETION_SETUP"))["busy"]:
                pass
        consumers = [Consumer(c.memory, 0x1000 + 0x100 * queue, 2) for queue in (0, 1)]
        arm = 1 << 15
        assert await c.host.write(ctx, page(B, COMPLETION), 1 | arm) == OKAY
        assert await c.host.write(ctx, page(A, COMPLETION), 1 | arm) == SLVERR
        assert await c.host.write(ctx, page(A, COMPLETION), 0 | 1 << 16) == SLVERR
        for number, queue in enumerate((0, 1, 1)):
            await c.write(ctx, "COMPLETION_OF", work_queue=5, descriptor=number)
            await c.write(ctx, "COMPLETION_STATUS", address=0x1800 + 4 * number)
            await c.write(ctx, "COMPLETION_POST", queue=queue, bytes=77, write_back=number > 0, entry=1)
            while (await c.read(ctx, "COMPLETION_POST"))["busy"]:
                pass
        while not ctx.get(c.nic.interrupt):
            await ctx.tick()
        assert await c.host.read(ctx, host_register("HOST_ISR")) == (2, OKAY)
        assert await c.host.read(ctx, host_register("HOST_COMPLETION")) == (1 << 31 | 1, OKAY)
        assert await c.host.read(ctx, host_register("HOST_COMPLETION")) == (0, OKAY)
        assert not ctx.get(c.nic.interrupt)
        await ctx.tick().repeat(200)
        wanted = {"bytes": 77, "status": 0, "work_queue": 5}
        assert consumers[0].look() == {**wanted, "descriptor": 0}
        for number in (1, 2):
            assert consumers[1].look() == {**wanted, "descriptor": number}
            consumers[1].take()
            assert c.memory[0x1800 + 4 * number :][:4] == (1 << 31 | 77).to_bytes(4, "little")
        assert c.memory[0x1800:0x1804] == bytes(4)
        # Armed when an entry is there already: at once.
        assert await c.host.write(ctx, page(A, COMPLETION), 0 | arm) == OKAY
        assert await c.host.read(ctx, host_register("HOST_COMPLETION")) == (1 << 31, OKAY)

    card.run(script)


def test_an_access_is_done_for_its_owner_and_for_nobody_else():
    card = Card(CONFIG, stall=0.2)
    content = bytes(range(1, 129))
    # Virtual 0x7000..0x8fff of A is at 0x2000 and 0x1000.
    for table, frames in ((0x400, (2, 1)), (0x480, (3, 3))):
        for number, frame in enumerate(frames):
            card.memory[table + 4 * number : table + 4 * number + 4] = (frame << 12 | 1).to_bytes(4, "little")
    card.memory[0x2FC0:0x3000], card.memory[0x1000:0x1040] = content[:64], content[64:]

    async def script(ctx, c):
        await channels(ctx, c)
        for region, owner, table, writable in ((0, A, 0x400, 1), (1, B, 0x480, 1), (2, A, 0x400, 0)):
            await c.write(ctx, "REGION_START", address=0x7000)
            await c.write(ctx, "REGION_BYTES", bytes=0x2000)
            await c.write(ctx, "REGION_TABLE", address=table)
            await c.write(ctx, "REGION", region=region, key=9, owner=owner, writable=writable, valid=1)

        async def access(region, *, address=0x7FC0, size=128, sram=0x300, to_host=0, channel=0, key=9):
            await c.write(ctx, "ACCESS_ADDRESS", address=address)
            await c.write(ctx, "ACCESS_TAG", region=region, key=key, channel=channel)
            await c.write(ctx, "ACCESS_SRAM", address=sram)
            await c.write(ctx, "ACCESS_CONTROL", bytes=size, to_host=to_host)
            assert (await c.read(ctx, "ACCESS_CONTROL"))["busy"]
            # The firmware's own transfers wait their turn: this one does nothing.
            await c.write(ctx, "HOST_DMA_CONTROL", bytes=4, to_host=1)
            await c.event(ctx, "access")
            assert not (await c.read(ctx, "ISR"))["host_dma"]
            return CompletionStatus((await c.read(ctx, "ACCESS_STATUS"))["status"])

        assert await access(0) == CompletionStatus.OK
        words = [await c.access(ctx, 0x300 + 4 * i) for i in range(32)]
        assert b"".join(word.to_bytes(4, "little") for word in words) == content
        before, bursts = bytes(c.memory), len(c.axi.bursts)
        wrong = {
            CompletionStatus.NOT_OWNER: {"region": 1, "to_host": 1},
            CompletionStatus.NO_REGION: {"region": 0, "key": 8, "to_host": 1},
            CompletionStatus.OUTSIDE: {"region": 0, "size": 4164, "to_host": 1},
            CompletionStatus.READ_ONLY: {"region": 2, "to_host": 1},
        }
        for status, request in wrong.items():
            assert await access(**request) == status
            await c.event(ctx, "violation")
        assert await access(0, channel=3, to_host=1) == CompletionStatus.NO_REGION
        assert c.memory == before and len(c.axi.bursts) == bursts
        assert await c.read(ctx, "VIOLATIONS") == {"accesses": 5}
        # To the host, by other pages; the cache has them.
        assert await access(0, address=0x7FF0, size=32, sram=0x310, to_host=1) == CompletionStatus.OK
        assert c.memory[0x2FF0:0x3000] == content[16:32] and c.memory[0x1000:0x1010] == content[32:48]
        assert (await c.read(ctx, "TRANSLATION_HITS"))["pages"] == 2
        c.memory[0x400:0x404] = bytes(4)
        await c.write(ctx, "TRANSLATION_INVALIDATE", page=0, region=0, scope=0)
        while (await c.read(ctx, "TRANSLATION_INVALIDATE"))["busy"]:
            pass
        assert await access(0, to_host=1) == CompletionStatus.NO_PAGE
        # And the engine is the firmware's again.
        await c.dma(ctx, host=0x1800, sram=0x300, size=8, to_host=1)
        assert c.memory[0x1800:0x1808] == content[:8]

    card.run(script)


@pytest.mark.parametrize("seed", [1, 2])
def test_who_sees_a_completion_sees_its_data_and_may_use_its_buffer(seed, monkeypatch):
    """Data goes both ways through the card to a memory that reorders; a host looks at its ring in every cycle."""

    def memory(bus, content, *, data_bits, rng, **_):
        return ReorderingMemory(bus, content, data_bits=data_bits, rng=rng, delay=30)

    monkeypatch.setattr(test_nic, "AxiMemory", memory)
    card = Card(CONFIG, seed=seed)
    rounds, seen = 10, []
    contents = [card.rng.randbytes(60) for _ in range(rounds)]

    def buffer(number):
        return 0x2000 + 0x80 * number

    async def words(ctx, c, at, content=None):
        """Bytes of the SRAM, read, or written by the processor."""
        if content is None:
            found = [await c.access(ctx, at + 4 * i) for i in range(15)]
            return b"".join(word.to_bytes(4, "little") for word in found)
        for i in range(15):
            await c.access(ctx, at + 4 * i, int.from_bytes(content[4 * i : 4 * i + 4], "little"))

    async def firmware(ctx, c):
        await c.write(ctx, "COMPLETION_RING", address=0x1000)
        await c.write(ctx, "COMPLETION_SETUP", queue=0, entries_log2=4, batch=2, owner=A)
        for number, content in enumerate(contents):
            sends = number % 2
            if sends:
                c.memory[buffer(number) : buffer(number) + 60] = content
            else:
                await words(ctx, c, 0x300, content)
            await c.dma(ctx, host=buffer(number), sram=0x300, size=60, to_host=1 - sends)
            await c.write(ctx, "COMPLETION_OF", work_queue=0, descriptor=number)
            await c.write(ctx, "COMPLETION_POST", queue=0, entry=1)
            while (await c.read(ctx, "COMPLETION_POST"))["busy"]:
                pass
            if sends:
                while number not in seen:
                    await ctx.tick()
                assert await words(ctx, c, 0x300) == content, "poison would have been sent"

    async def host(ctx, c):
        consumer = Consumer(c.memory, 0x1000, 4)
        while len(seen) < rounds:
            if (entry := consumer.look()) is not None:
                number = entry["descriptor"]
                place = slice(buffer(number), buffer(number) + 60)
                assert c.memory[place] == contents[number], "a completion before its data"
                c.memory[place] = bytes(60)
                seen.append(number)
                consumer.take()
            await ctx.tick()

    card.run(firmware, host)
    assert seen == list(range(rounds))


def test_cards_that_do_not_ask_have_none_of_it():
    plain = preset(NicConfig, "lanai4")
    names = nic_registers(plain)
    assert not [name for name in names if name.startswith(("COMPLETION", "REGION", "ACCESS", "SHADOW"))]
    assert names["IMR"].fields["mask"].width == 6
    full = nic_registers(CONFIG)
    assert full["IMR"].fields["mask"].width == 20 and "REGION_TABLE" in full


@pytest.mark.parametrize("name", ["shadow_windows", "completion_queues"])
def test_pages_of_owners_are_needed(name):
    with pytest.raises(ConfigError) as error:
        preset(NicConfig, "tiny", **{name: 1})
    value = True if name == "shadow_windows" else 1
    assert str(error.value) == f"NicConfig: {name} = {value}: needs owners, 1 at least"
