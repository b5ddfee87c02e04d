"""The whole card: a payload from host memory over the link and back, byte for byte, by registers alone."""

import random

import pytest
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.nic.nic import HOST_REGISTERS, NIC_REGISTERS, WATCHED, Nic, public_signals
from lanikai.hdl.nic.owners.owner_page import PagePart
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header, packet_flits
from support.hdl.axi_memory import AxiMemory
from support.hdl.nic_card import LiteManager


class Card:
    """A card with its link looped back, a host memory behind its DMA, and both of its ports at hand."""

    def __init__(self, config, *, seed=0, stall=0.0, fails=lambda address: False):
        self.config, self.rng = config, random.Random(seed)
        m = Module()
        m.submodules.nic = self.nic = nic = Nic(config)
        connect(m, nic.tx, nic.rx)
        self.memory = bytearray(16384)
        self.axi = AxiMemory(
            nic.dma,
            self.memory,
            data_bits=config.bus_bits,
            rng=self.rng,
            stall=stall,
            max_beats=config.burst_beats,
            fails=fails,
        )
        self.host = LiteManager(nic.host, seed=seed, stall=stall)
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.axi.process, background=True)
        self.simulator.add_process(self.host.check)
        self.simulator.add_process(self.count_credits)
        self.credits_out = self.flits = 0

    def run(self, *scripts):
        for script in scripts:

            async def bench(ctx, script=script):
                await script(ctx, self)

            self.simulator.add_testbench(bench)
        self.simulator.run()

    async def count_credits(self, ctx):
        link = self.nic.tx
        async for _, _, sent, back in ctx.tick().sample(link.valid, link.credit_valid):
            self.flits += sent
            self.credits_out += sent - back

    async def access(self, ctx, address, data=None):
        """A read, or a write of `data`, by the processor."""
        request, response = self.nic.processor.request, self.nic.processor.response
        ctx.set(request, {"valid": 1, "write": data is not None, "address": address, "data": data or 0})
        while not ctx.get(response.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(request.valid, 0)
        return ctx.get(response.data)

    async def write(self, ctx, name, **fields):
        register = NIC_REGISTERS[name]
        await self.access(ctx, REGISTER_BASE + register.offset, register.pack(**fields))

    async def read(self, ctx, name):
        register = NIC_REGISTERS[name]
        return register.unpack(await self.access(ctx, REGISTER_BASE + register.offset))

    async def event(self, ctx, name, *, limit=4000):
        """Wait for an event by the event line, then clear it."""
        await self.write(ctx, "IMR", mask=NIC_REGISTERS["ISR"].fields[name].mask)
        for _ in range(limit):
            if ctx.get(self.nic.processor.response.event):
                break
            await ctx.tick()
        assert (await self.read(ctx, "ISR"))[name], f"no {name} within {limit} cycles"
        if NIC_REGISTERS["ISR"].fields[name].write_one_clears:
            await self.write(ctx, "ISR", **{name: 1})

    async def dma(self, ctx, *, host, sram, size, to_host):
        await self.write(ctx, "HOST_DMA_HOST", address=host)
        await self.write(ctx, "HOST_DMA_SRAM", address=sram)
        await self.write(ctx, "HOST_DMA_CONTROL", bytes=size, to_host=to_host)
        assert (await self.read(ctx, "HOST_DMA_CONTROL"))["busy"]
        await self.event(ctx, "host_dma")
        assert await self.read(ctx, "HOST_DMA_STATUS") == {"error": 0}
        assert not (await self.read(ctx, "HOST_DMA_CONTROL"))["busy"]


WIDE = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=2, rate_num=20, rate_den=33),
    sram_bytes=4096,
    bus_bits=32,
)


PIPELINED = WIDE.replace(pipelined=True, host_dma_queue_entries=3, receive_queue_entries=2, bus_bits=64)
configs = pytest.mark.parametrize(
    "config", [preset(NicConfig, "tiny"), WIDE, PIPELINED], ids=["32-bit flits", "64-bit flits", "pipelined"]
)


@configs
@pytest.mark.parametrize(("size", "vl", "stall"), [(1, 0, 0.0), (61, 1, 0.3), (128, 1, 0.0)])
def test_a_payload_goes_from_memory_over_the_link_and_back(config, size, vl, stall):
    card = Card(config, seed=size, stall=stall)
    payload = card.rng.randbytes(size)
    header = Header(route=0x123, destination=3, source=1, flow=7, length=size, sequence=9)
    send_at, receive_at = 0x100, 0x300
    card.memory[0x1004 : 0x1004 + size] = payload
    before = bytes(card.memory)

    async def script(ctx, c):
        await c.write(ctx, "RECEIVE_ADDRESS", address=receive_at)
        await c.write(ctx, "RECEIVE_CONTROL", bytes=config.mtu_bytes)
        assert (await c.read(ctx, "RECEIVE_CONTROL"))["armed"]
        await c.dma(ctx, host=0x1004, sram=send_at + 16, size=size, to_host=0)
        for word in range(4):
            await c.access(ctx, SRAM_BASE + send_at + 4 * word, header.pack() >> 32 * word & 0xFFFFFFFF)
        await c.write(ctx, "SEND_ADDRESS", address=send_at)
        await c.write(ctx, "SEND_CONTROL", bytes=size, vl=vl)
        await c.event(ctx, "send")
        await c.event(ctx, "receive")
        assert await c.read(ctx, "RECEIVE_STATUS") == {"bytes": size, "vl": vl}
        words = [await c.access(ctx, SRAM_BASE + receive_at + 4 * word) for word in range(4)]
        assert sum(word << 32 * i for i, word in enumerate(words)) == header.pack()
        await c.dma(ctx, host=0x2008, sram=receive_at + 16, size=size, to_host=1)
        assert await c.read(ctx, "CRC_ERRORS") == await c.read(ctx, "LENGTH_ERRORS") == {"packets": 0}
        # The same bytes by the host's window.
        word, response = await c.host.read(ctx, SRAM_BASE + receive_at + 16)
        assert (response, word & 0xFF) == (0, payload[0])
        assert c.axi.quiet()
        assert c.flits == packet_flits(size, config.link) and c.credits_out == 0

    card.run(script)
    expected = bytearray(before)
    expected[0x2008 : 0x2008 + size] = payload
    assert card.memory == expected


@configs
def test_packets_under_contention_for_the_sram(config):
    """Packets of all sizes, the next one's payload coming down while one is on the link. A host reads and writes its
    corner of the SRAM all the while."""
    card = Card(config, seed=5, stall=0.3)
    sizes = [card.rng.randint(1, config.mtu_bytes) for _ in range(6)]
    payloads = [card.rng.randbytes(size) for size in sizes]
    for i, payload in enumerate(payloads):
        card.memory[256 * i : 256 * i + len(payload)] = payload
    slots, receive_at, corner = [0x100, 0x200], 0x300, 0x3C0
    done = []

    async def firmware(ctx, c):
        async def bring(i):
            header = Header(length=sizes[i], sequence=i).pack()
            slot = slots[i % 2]
            for word in range(4):
                await c.access(ctx, slot + 4 * word, header >> 32 * word & 0xFFFFFFFF)
            await c.write(ctx, "HOST_DMA_HOST", address=256 * i)
            await c.write(ctx, "HOST_DMA_SRAM", address=slot + 16)
            await c.write(ctx, "HOST_DMA_CONTROL", bytes=sizes[i], to_host=0)

        await bring(0)
        await c.event(ctx, "host_dma")
        for i in range(len(sizes)):
            await c.write(ctx, "RECEIVE_ADDRESS", address=receive_at)
            await c.write(ctx, "RECEIVE_CONTROL", bytes=config.mtu_bytes)
            await c.write(ctx, "SEND_ADDRESS", address=slots[i % 2])
            await c.write(ctx, "SEND_CONTROL", bytes=sizes[i], vl=i % config.link.vls)
            # The engine is busy: this does nothing.
            await c.write(ctx, "SEND_CONTROL", bytes=4, vl=0)
            if i + 1 < len(sizes):
                await bring(i + 1)
                await c.event(ctx, "host_dma")
            await c.event(ctx, "receive")
            await c.event(ctx, "send")
            await c.dma(ctx, host=0x2000 + 256 * i, sram=receive_at + 16, size=sizes[i], to_host=1)
        assert await c.read(ctx, "CRC_ERRORS") == await c.read(ctx, "LENGTH_ERRORS") == {"packets": 0}
        assert c.credits_out == 0 and c.flits == sum(packet_flits(size, config.link) for size in sizes)
        done.append(True)

    async def host(ctx, c):
        kept = [0] * 8
        while not done:
            word = c.rng.randrange(8)
            if c.rng.random() < 0.5:
                kept[word] = c.rng.getrandbits(32)
                assert await c.host.write(ctx, corner + 4 * word, kept[word]) == 0
            else:
                assert await c.host.read(ctx, corner + 4 * word) == (kept[word], 0)

    card.run(firmware, host)
    for i, payload in enumerate(payloads):
        assert card.memory[0x2000 + 256 * i :][: len(payload)] == payload


def test_a_bus_error_shows_in_the_status():
    card = Card(preset(NicConfig, "tiny"), fails=lambda address: address >= 0x1000)

    async def script(ctx, c):
        await c.write(ctx, "HOST_DMA_HOST", address=0x1000)
        await c.write(ctx, "HOST_DMA_CONTROL", bytes=16, to_host=0)
        await c.event(ctx, "host_dma")
        assert await c.read(ctx, "HOST_DMA_STATUS") == {"error": 1}
        await c.dma(ctx, host=0, sram=0, size=16, to_host=0)

    card.run(script)


@pytest.mark.parametrize(
    ("structure", "pipelined", "charge"),
    [
        ("registers", False, "packets"),
        ("tree", False, "bytes"),
        ("tree", True, "packets"),
        ("registers", True, "bytes"),
    ],
)
def test_a_doorbell_starts_a_paced_send_and_an_interrupt_ends_it(structure, pipelined, charge):
    """The case joins doorbell queue, rate control, timer and the host's interrupt, by the registers."""
    config = preset(NicConfig, "tiny", rate_structure=structure, pipelined=pipelined, rate_charge=charge)
    card = Card(config)

    async def host(ctx, c):
        mask = REGISTER_BASE + HOST_REGISTERS["HOST_IMR"].offset
        assert await c.host.write(ctx, mask, 1) == 0
        assert await c.host.write(ctx, DOORBELL_BASE + 2 * 4096 + 0x40, 0xABCDE) == 0
        assert await c.host.write(ctx, DOORBELL_BASE + 4 * 4096, 1) == 2
        assert await c.host.read(ctx, REGISTER_BASE + HOST_REGISTERS["DOORBELLS_REFUSED"].offset) == (1, 0)
        while not ctx.get(c.nic.interrupt):
            await ctx.tick()
        assert await c.host.read(ctx, REGISTER_BASE + HOST_REGISTERS["HOST_VECTOR"].offset) == (77, 0)
        assert await c.host.read(ctx, REGISTER_BASE + HOST_REGISTERS["ID"].offset) == (0x4C4E0001, 0)
        assert await c.host.write(ctx, REGISTER_BASE + HOST_REGISTERS["HOST_ISR"].offset, 1) == 0
        assert not ctx.get(c.nic.interrupt)

    async def firmware(ctx, c):
        await c.event(ctx, "doorbell")
        assert await c.read(ctx, "DOORBELL_QUEUE") == {"channel": 2, "value": 0xABCDE, "valid": 1}
        assert await c.read(ctx, "DOORBELL_QUEUE") == {"channel": 0, "value": 0, "valid": 0}
        await c.write(ctx, "RATE_SELECT", flow=1)
        await c.write(ctx, "RATE_IDT", ticks=20)
        assert await c.read(ctx, "RATE_IDT") == {"ticks": 20}
        await c.write(ctx, "RATE_COMMAND", enqueue=1)
        now = (await c.read(ctx, "RTC"))["ticks"]
        await c.event(ctx, "dispatch")
        assert await c.read(ctx, "RATE_DISPATCH") == {"flow": 1, "last": 0, "bytes": 0, "valid": 1}
        first = (await c.read(ctx, "RATE_NDT"))["ticks"]
        assert now - 2 <= first <= now
        await c.write(ctx, "RATE_DISPATCH", flow=1)
        assert not (await c.read(ctx, "RATE_DISPATCH"))["valid"]
        assert await c.read(ctx, "RATE_NDT") == {"ticks": first + 20}
        await c.event(ctx, "dispatch")
        assert first + 20 <= (await c.read(ctx, "RTC"))["ticks"] <= first + 24
        # Commands for flows that do not exist: of the register's ten bits none is left out.
        for flow in (4, 5, 1023):
            await c.write(ctx, "RATE_SELECT", flow=flow)
            await c.write(ctx, "RATE_IDT", ticks=3)
            await c.write(ctx, "RATE_NDT", ticks=3)
            await c.write(ctx, "RATE_COMMAND", enqueue=1, clear=1)
            await c.write(ctx, "RATE_DISPATCH", flow=flow, last=1)
            assert await c.read(ctx, "RATE_IDT") == await c.read(ctx, "RATE_NDT") == {"ticks": 0}
            assert not (await c.read(ctx, "RATE_COMMAND"))["valid"]
        await c.write(ctx, "RATE_SELECT", flow=1)
        assert await c.read(ctx, "RATE_NDT") == {"ticks": first + 20}
        assert await c.read(ctx, "RATE_COMMAND") == {"enqueue": 0, "clear": 0, "valid": 1}
        await c.write(ctx, "RATE_IDT", ticks=0xFFFFFFFF)
        assert await c.read(ctx, "RATE_IDT") == {"ticks": config.max_idt_ticks}
        await c.write(ctx, "RATE_DISPATCH", flow=1, last=1)
        assert not (await c.read(ctx, "RATE_COMMAND"))["valid"]
        # Both at once: cleared, then valid, and not before the clock.
        await c.write(ctx, "RATE_NDT", ticks=first)
        await c.write(ctx, "RATE_COMMAND", enqueue=1)
        assert (await c.read(ctx, "RATE_NDT"))["ticks"] > first
        await c.write(ctx, "RATE_NDT", ticks=first)
        await c.write(ctx, "RATE_COMMAND", enqueue=1, clear=1)
        assert (await c.read(ctx, "RATE_COMMAND"))["valid"] and (await c.read(ctx, "RATE_NDT"))[
            "ticks"
        ] > first
        await c.write(ctx, "RATE_COMMAND", clear=1)
        # Charged by bytes: a quarter of the MTU is a quarter of the IDT; 0, or more than the MTU, all of it.
        await c.write(ctx, "RATE_IDT", ticks=20)
        ndt = (await c.read(ctx, "RTC"))["ticks"] + 500
        await c.write(ctx, "RATE_NDT", ticks=ndt)
        for charged, ticks in ((32, 5), (0, 20), (128, 20), (16383, 20), (31, 5), (33, 5), (0, 20)):
            await c.write(ctx, "RATE_DISPATCH", flow=1, bytes=charged)
            ndt += ticks if config.rate_charge == "bytes" else 20
            assert await c.read(ctx, "RATE_NDT") == {"ticks": ndt}
        assert not (await c.read(ctx, "RATE_COMMAND"))["valid"]
        later = (await c.read(ctx, "RTC"))["ticks"] + 30
        await c.write(ctx, "TIMER", ticks=later)
        await c.event(ctx, "timer")
        assert later <= (await c.read(ctx, "RTC"))["ticks"] <= later + 4
        await c.write(ctx, "HOST_INTERRUPT", vector=77)

    card.run(host, firmware)


def test_polled_doorbells_by_the_registers():
    card = Card(preset(NicConfig, "tiny", doorbell="polled"))

    async def script(ctx, c):
        for word in (5, 6):
            assert await c.host.write(ctx, DOORBELL_BASE + 3 * 4096, word) == 0
        await c.event(ctx, "doorbell")
        for channel in range(4):
            await c.write(ctx, "DOORBELL_SELECT", channel=channel)
            wanted = {"value": 6, "valid": 1} if channel == 3 else {"value": 0, "valid": 0}
            assert await c.read(ctx, "DOORBELL_WORD") == wanted
        assert not (await c.read(ctx, "DOORBELL_WORD"))["valid"]
        assert not (await c.read(ctx, "DOORBELL_QUEUE"))["valid"]
        await c.write(ctx, "ISR", doorbell=1)
        assert not (await c.read(ctx, "ISR"))["doorbell"]

    card.run(script)


def test_polled_receive_doorbells_have_words_of_their_own():
    """DOORBELL_SELECT.receive once selected nothing: the card's own fields were joined behind it."""
    card = Card(preset(NicConfig, "tiny", doorbell="polled", receive_doorbells="merged", owners=2))

    async def script(ctx, c):
        await c.write(ctx, "DOORBELL_CHANNEL", channel=3, owner=1, open=1)
        for part, word in ((PagePart.SEND, 5), (PagePart.RECEIVE, 6)):
            assert await c.host.write(ctx, DOORBELL_BASE + 4096 + part.offset, word << 10 | 3) == 0
        for channel in range(4):
            for receive in (1, 0):
                await c.write(ctx, "DOORBELL_SELECT", channel=channel, receive=receive)
                wanted = {"value": 5 + receive, "valid": 1} if channel == 3 else {"value": 0, "valid": 0}
                assert await c.read(ctx, "DOORBELL_WORD") == wanted
        await c.write(ctx, "ISR", doorbell=1)
        assert not (await c.read(ctx, "ISR"))["doorbell"]

    card.run(script)


def test_watched_registers_stay_in_the_verilog():
    config = preset(NicConfig, "tiny")
    text = to_verilog(Nic(config), name="card")
    module = text[text.index("module card(") :]
    module = module[: module.index("endmodule")]
    assert [name for _, name in public_signals(config, name="card")] == list(WATCHED)
    for part, name in public_signals(config, name="card"):
        assert part == "card" and f" {name};" in module
    assert text == to_verilog(Nic(config), name="card")


def test_credits_of_the_other_end_are_checked():
    with pytest.raises(ConfigError) as error:
        Nic(preset(NicConfig, "tiny"), downstream_flits=1)
    assert str(error.value) == "Nic: downstream_flits = 1: at least 2"
