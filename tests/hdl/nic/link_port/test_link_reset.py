"""Two cards on a link, of which one is reset under traffic: the other one's packets go on."""

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.nic import NIC_REGISTERS, Nic
from lanikai.hdl.nic.optional.link_blocks import LinkRestart
from lanikai.hdl.nic.ports import REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from support.hdl.counting import Nearly

SENDER, RECEIVER = 0, 1
SIZE = 100


class Pair:
    """Two cards, their processors, a reset of each."""

    def __init__(self, config):
        m = Module()
        self.resets = [Signal(name=f"reset_{i}") for i in range(2)]
        self.cards = [Nic(config) for _ in range(2)]
        for i, card in enumerate(self.cards):
            m.submodules[f"card_{i}"] = ResetInserter(self.resets[i])(card)
        connect(m, self.cards[0].tx, self.cards[1].rx)
        connect(m, self.cards[1].tx, self.cards[0].rx)
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)

    async def access(self, ctx, card, address, data=None):
        port = self.cards[card].processor
        ctx.set(port.request, {"valid": 1, "write": data is not None, "address": address, "data": data or 0})
        while not ctx.get(port.response.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(port.request.valid, 0)
        return ctx.get(port.response.data)

    async def write(self, ctx, card, name, **fields):
        register = NIC_REGISTERS[name]
        await self.access(ctx, card, REGISTER_BASE + register.offset, register.pack(**fields))

    async def read(self, ctx, card, name):
        register = NIC_REGISTERS[name]
        return register.unpack(await self.access(ctx, card, REGISTER_BASE + register.offset))

    async def arm(self, ctx):
        if not (await self.read(ctx, RECEIVER, "RECEIVE_CONTROL"))["armed"]:
            await self.write(ctx, RECEIVER, "RECEIVE_ADDRESS", address=0x400)
            await self.write(ctx, RECEIVER, "RECEIVE_CONTROL", bytes=128)

    async def send(self, ctx, sequence):
        header = Header(length=SIZE, sequence=sequence).pack()
        for word in range(4):
            await self.access(ctx, SENDER, SRAM_BASE + 0x100 + 4 * word, header >> 32 * word & 0xFFFFFFFF)
        await self.write(ctx, SENDER, "SEND_ADDRESS", address=0x100)
        await self.write(ctx, SENDER, "SEND_CONTROL", bytes=SIZE)

    async def idle(self, ctx, card, name, flag):
        """Wait until the card is idle, for at most 400 looks."""
        for _ in range(400):
            if not (await self.read(ctx, card, name))[flag]:
                return True
        return False


SHORT = preset(NicConfig, "tiny", link=LinkConfig(flit_bits=32, vls=2, restart=True))
LONG = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=1, rate_num=1, rate_den=2, delay_cycles=2, restart=True),
    input_buffer_flits=8,
)
BUFFERED = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=32, vls=2, rate_num=1, rate_den=5, delay_cycles=1, restart=True),
    pipelined=True,
    send_queue_entries=2,
    vl_packets=2,
    vl_arbiter="table_fast",
    input_buffer_flits=64,
)
"""The port has registers between its steps."""


@pytest.mark.parametrize(
    "config",
    [SHORT, LONG, BUFFERED],
    ids=["buffers of 2 flits", "buffers of 8, a long slow wire", "packet buffers and registers"],
)
@pytest.mark.parametrize("who", [SENDER, RECEIVER], ids=["sender", "receiver"])
def test_packets_go_on_when_one_of_two_cards_is_reset_under_traffic(config, who):
    """The sender's credits were once lost until its link was dead; or two packets became one."""
    cuts = []
    for after in (60, 120) if config.vl_packets else (8, 25):
        pair = Pair(config)

        async def script(ctx, pair=pair, after=after):
            await pair.arm(ctx)
            await pair.send(ctx, 1)
            lost = Nearly(ctx, pair.cards[SENDER].block(LinkRestart).lost_out)
            for _ in range(after):
                await ctx.tick()
            ctx.set(pair.resets[who], 1)
            await ctx.tick()
            ctx.set(pair.resets[who], 0)
            for _ in range(100):
                await ctx.tick()
            await pair.arm(ctx)
            assert await pair.idle(ctx, SENDER, "SEND_CONTROL", "busy"), "the cut packet holds the engine"
            for card in range(2):
                assert await pair.idle(ctx, card, "LINK", "down")
            link = await pair.read(ctx, 1 - who, "LINK")
            wrong = await pair.read(ctx, RECEIVER, "LENGTH_ERRORS")
            assert wrong["packets"] == link["cut_in"]
            cuts.append(link["cut_in"] + link["cut_out"])
            if who == RECEIVER:
                assert link["cut_out"] == 1
                out = (await pair.read(ctx, SENDER, "LINK_LOST"))["out_flits"]
                assert out in [lost(count) for count in range(1, pair.cards[SENDER].downstream_flits * 2 + 2)]
            for sequence in range(2, 6):
                await pair.arm(ctx)
                await pair.send(ctx, sequence)
                assert await pair.idle(ctx, SENDER, "SEND_CONTROL", "busy")
                assert await pair.idle(ctx, RECEIVER, "RECEIVE_CONTROL", "armed")
                words = [await pair.access(ctx, RECEIVER, SRAM_BASE + 0x400 + 4 * i) for i in range(4)]
                assert Header.unpack(sum(word << 32 * i for i, word in enumerate(words))).sequence == sequence
            assert await pair.read(ctx, RECEIVER, "LENGTH_ERRORS") == wrong
            assert await pair.read(ctx, RECEIVER, "CRC_ERRORS") == {"packets": 0}

        pair.simulator.add_testbench(script)
        pair.simulator.run()
    assert sum(cuts) >= 1
