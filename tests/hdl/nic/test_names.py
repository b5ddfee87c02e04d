"""Commands that name a thing which the card does not have: refused, counted, and nothing else is touched or held up."""

import pytest
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.blocks import command_names, nic_names, nic_registers
from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.hdl.packet import Header
from support.hdl.counting import Nearly

from .test_nic import Card

LINK = LinkConfig(flit_bits=64, vls=3)
PLAIN = preset(NicConfig, "tiny", link=LINK, sram_bytes=4096, flows=3, channels=3)
OWNED = PLAIN.replace(
    channels=5,
    owners=3,
    doorbell="queue",
    doorbell_priorities=3,
    shadow_windows=True,
    completion_queues=3,
    regions=3,
    host_dma_queue_entries=2,
)
CARDS = {
    "plain": PLAIN,
    "tree": PLAIN.replace(rate_structure="tree", pipelined=True),
    "queue": PLAIN.replace(send_queue_entries=2),
    "buffers": PLAIN.replace(
        send_queue_entries=2,
        vl_packets=2,
        input_buffer_flits=32,
        vl_arbiter="table_fast",
        vl_table_entries=5,
    ),
    "stamps": PLAIN.replace(
        send_queue_entries=2,
        send_queue_order="timestamp",
        host_dma_queue_entries=2,
        host_dma_queue_order="timestamp",
        stamp_flows=3,
        rtc_bits=16,
    ),
    "owned": OWNED,
    "owned, pipelined, two processors": OWNED.replace(pipelined=True, processors=2),
}


def wrong_names(config):
    """Every name of every command, with the first number that names nothing, and the last."""
    for command, names in nic_names(config).items():
        for name, count in names:
            register, _, field = name.field.rpartition(".")
            most = (1 << NIC_REGISTERS[register or command].fields[field].width) - 1
            for wrong in sorted({count, most}):
                yield command, name, wrong


async def packet_goes(ctx, c):
    """A good packet after it goes out, and comes in."""
    await c.write(ctx, "RECEIVE_ADDRESS", address=0x400)
    await c.write(ctx, "RECEIVE_CONTROL", bytes=64)
    header = Header(length=16, sequence=5).pack()
    for word in range(4):
        await c.access(ctx, SRAM_BASE + 0x100 + 4 * word, header >> 32 * word & 0xFFFFFFFF)
    await c.write(ctx, "SEND_ADDRESS", address=0x100)
    await c.write(ctx, "SEND_CONTROL", bytes=16, vl=2)
    await c.event(ctx, "receive", limit=300)
    assert await c.read(ctx, "RECEIVE_STATUS") == {"bytes": 16, "vl": 2}
    assert not (await c.read(ctx, "SEND_CONTROL"))["busy"]


@pytest.mark.parametrize("config", CARDS.values(), ids=CARDS)
def test_a_name_of_nothing_is_refused_and_counted(config):
    card = Card(config)
    shown = [
        name
        for name in nic_registers(config)
        if name not in ("RTC", "REFUSED") and not name.endswith("FINISHED")
    ]
    names = list(wrong_names(config))
    assert len(names) >= 6

    async def script(ctx, c):
        for _ in range(200):  # the card gets ready: tables are wiped
            await ctx.tick()
        before = {n: await c.read(ctx, n) for n in shown}
        counted = Nearly(ctx, c.nic.registers.refusals)
        for refused, (command, name, wrong) in enumerate(names):
            what = f"{command}, {name.field} = {wrong}"
            fields = {}
            register, _, field = name.field.rpartition(".")
            if register:
                chosen = {field: wrong}
                if name.only is not None:
                    chosen[name.only[0].rpartition(".")[2]] = name.only[1][0]
                await c.write(ctx, register, **chosen)
            else:
                fields[field] = wrong
                if name.only is not None:
                    fields[name.only[0]] = name.only[1][0]
            for more in ("enqueue", "bytes"):
                if more in NIC_REGISTERS[command].fields:
                    fields.setdefault(more, 1)
            await c.write(ctx, command, **fields)
            told = {"commands": counted(refused + 1), "offset": NIC_REGISTERS[command].offset}
            assert await c.read(ctx, "REFUSED") == told, what
            if register:
                await c.write(ctx, register)
        for _ in range(30):
            await ctx.tick()
        assert {n: await c.read(ctx, n) for n in shown} == before
        await packet_goes(ctx, c)
        assert (await c.read(ctx, "REFUSED"))["commands"] == counted(len(names))

    card.run(script)


@pytest.mark.parametrize(("vls", "vl"), [(1, 1), (2, 3), (5, 7)])
def test_a_vl_that_the_link_has_not_neither_hangs_the_engine_nor_is_another_one(vls, vl):
    """Such a command once kept the send engine busy for ever, or went to another VL."""
    card = Card(PLAIN.replace(link=LinkConfig(flit_bits=64, vls=vls)))

    async def script(ctx, c):
        await c.write(ctx, "SEND_CONTROL", bytes=16, vl=vl)
        for _ in range(100):
            await ctx.tick()
        assert not (await c.read(ctx, "SEND_CONTROL"))["busy"]
        assert (await c.read(ctx, "REFUSED"))["commands"] == 1
        assert c.flits == 0

    card.run(script)


def test_every_field_that_names_a_thing_is_looked_at():
    """A register with a field that names a thing is either here, or its block answers for it."""
    things = {"flow", "vl", "channel", "owner", "priority", "queue", "region", "entry", "work_queue"}
    elsewhere = {
        "RATE_SELECT.flow",  # with the commands that act on it
        "HOST_DMA_FLOW.flow",
        "SEND_FLOW.flow",
        "DOORBELL_SELECT.channel",  # shows nothing
        "ACCESS_TAG.region",  # status of its own
        "ACCESS_TAG.channel",
        "COMPLETION_POST.queue",  # counted as a lost entry
        "COMPLETION_POST.entry",  # a flag
        "COMPLETION_OF.work_queue",  # passed on to the host
    }
    found = {
        f"{register.name}.{field.name}"
        for register in NIC_REGISTERS.values()
        for field in register.fields.values()
        if field.sw_writable and field.name in things
    }
    own = {
        f"{command}.{name.field}"
        for command, names in command_names().items()
        for name in names
        if "." not in name.field
    }
    assert found == own | elsewhere


def test_cards_whose_numbers_all_name_something_have_nothing_to_look_at():
    config = preset(NicConfig, "tiny", link=LinkConfig(vls=16), flows=1024, channels=1024, rtc_bits=32)
    assert nic_names(config) == {}
