"""The host's port against a plain model of the card's map, with random stalls on every channel."""

from collections import deque
from pathlib import Path

import lanikai.hdl.nic
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.doorbell import Doorbell
from lanikai.hdl.nic.host_port import HostPort, Resp
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE
from lanikai.hdl.nic.register_bank import RegisterBank
from lanikai.hdl.nic.sram import Sram
from lanikai.hdl.registers import load

from .card import LiteManager

HOST = load(Path(lanikai.hdl.nic.__file__).parent / "host.rdl")
IMR = REGISTER_BASE + HOST["HOST_IMR"].offset
ID = REGISTER_BASE + HOST["ID"].offset
CONFIGS = {
    bits: preset(
        NicConfig, "tiny", sram_bytes=1024, link=LinkConfig(flit_bits=bits, vls=2), doorbell_queue_entries=2
    )
    for bits in (32, 128)
}


def setup(config):
    """The port with its SRAM (and a rival on it), registers and doorbells."""
    m = Module()
    m.submodules.port = port = HostPort(config)
    m.submodules.sram = sram = Sram(config, ports=2)
    m.submodules.bank = bank = RegisterBank(HOST)
    m.submodules.doorbell = doorbell = Doorbell(config)
    connect(m, port.sram, sram.port_0)
    connect(m, port.registers, bank.bus)
    connect(m, port.ring, doorbell.ring)
    m.d.comb += [port.refused.eq(doorbell.refused), bank.ID.r_data.magic.eq(0x4C4E)]
    return m, port, sram.port_1, doorbell


def run(config, script, *, seed=0, stall=0.5, background=()):
    m, port, rival, doorbell = setup(config)
    manager = LiteManager(port.host, seed=seed, stall=stall)
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await script(ctx, manager, doorbell)

    async def contend(ctx):
        while True:
            await manager.pause(ctx)
            ctx.set(rival.valid, 1)
            while not ctx.get(rival.ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(rival.valid, 0)

    simulator.add_testbench(bench)
    for task in background:

        async def other(ctx, task=task):
            await task(ctx, manager, doorbell)

        simulator.add_testbench(other)
    simulator.add_process(manager.check)
    if stall:
        simulator.add_testbench(contend, background=True)
    simulator.run()


ADDRESS = st.one_of(
    st.integers(0, 15).map(lambda word: word * 4),
    st.sampled_from([1020, 1024, 0xFFFFC, IMR, ID, REGISTER_BASE + 0x40, REGISTER_BASE + 0x1000, 0x200000]),
    st.integers(0, 5).map(lambda channel: DOORBELL_BASE + channel * 4096 + 8 * channel),
)
OPERATION = st.tuples(
    st.booleans(), ADDRESS, st.integers(0, 0xFFFFFFFF), st.sampled_from([15, 15, 15, 1, 6, 0])
)


@settings(max_examples=15, deadline=None, print_blob=True)
@given(
    bits=st.sampled_from(list(CONFIGS)), operations=st.lists(OPERATION, max_size=25), seed=st.integers(0, 999)
)
def test_agrees_with_the_map(bits, operations, seed):
    config = CONFIGS[bits]
    expected = deque()

    async def script(ctx, manager, doorbell):
        memory, mask, refused = bytearray(config.sram_bytes), 0, 0
        for write, address, data, strobes in operations:
            if write:
                channel = (address - DOORBELL_BASE) // 4096
                if 0 <= channel < config.channels and strobes == 15:
                    expected.append((channel, data & 0x1FFFFF))
                found = await manager.write(ctx, address, data, strobes)
                good = strobes == 15
                if address < config.sram_bytes:
                    good = True
                    for i in range(4):
                        if strobes >> i & 1:
                            memory[address + i] = data >> 8 * i & 0xFF
                elif address == IMR:
                    mask = data & 1 if good else mask
                elif address >= DOORBELL_BASE and good:
                    good = channel < config.channels
                    refused += not good
                else:
                    good = good and address == ID
                assert found == (Resp.OKAY if good else Resp.SLVERR), hex(address)
            else:
                if address < config.sram_bytes:
                    wanted = int.from_bytes(memory[address : address + 4], "little"), Resp.OKAY
                else:
                    wanted = {IMR: (mask, Resp.OKAY), ID: (0x4C4E0000, Resp.OKAY)}.get(
                        address, (0, Resp.SLVERR)
                    )
                assert await manager.read(ctx, address) == wanted, hex(address)
        assert ctx.get(doorbell.refusals) == refused
        while expected:
            await ctx.tick()

    async def firmware(ctx, manager, doorbell):
        """Takes doorbells now and then, so that the queue is full at times."""
        while True:
            await ctx.tick().repeat(manager.random.randrange(1, 40))
            if ctx.get(doorbell.head_valid):
                head = ctx.get(doorbell.head)
                assert (head.channel, head.word) == expected.popleft()
                ctx.set(doorbell.pop, 1)
                await ctx.tick()
                ctx.set(doorbell.pop, 0)
            if not expected and not ctx.get(doorbell.pending) and done:
                return

    done = []

    async def whole(ctx, manager, doorbell):
        await script(ctx, manager, doorbell)
        done.append(True)

    run(config, whole, seed=seed, background=[firmware])
    assert not expected


def test_a_full_queue_stalls_the_write_and_not_the_reads():
    config = CONFIGS[32]
    order = []

    async def script(ctx, manager, doorbell):
        for word in (1, 2, 3):
            assert await manager.write(ctx, DOORBELL_BASE + 4096, word) == Resp.OKAY
            order.append(word)
        # The next write waited behind the stalled one.
        assert await manager.write(ctx, 0, 5) == Resp.OKAY

    async def reader(ctx, manager, doorbell):
        await ctx.tick().repeat(40)
        assert order == [1, 2] and ctx.get(doorbell.waiting) == 2
        assert await manager.read(ctx, ID) == (0x4C4E0000, Resp.OKAY)
        assert await manager.read(ctx, 0) == (0, Resp.OKAY)
        assert order == [1, 2]
        for word in (1, 2, 3):
            await ctx.tick().until(doorbell.head_valid)
            assert ctx.get(doorbell.head).word == word
            ctx.set(doorbell.pop, 1)
            await ctx.tick()
            ctx.set(doorbell.pop, 0)
        await ctx.tick().repeat(10)
        assert order == [1, 2, 3]
        assert await manager.read(ctx, 0) == (5, Resp.OKAY)

    run(config, script, stall=0, background=[reader])


def test_a_second_write_waits_on_the_bus_behind_a_stalled_doorbell():
    """Both of its halves are taken in advance at most once, and it acts only after the doorbell."""
    config = CONFIGS[32]
    m, port, _, doorbell = setup(config)
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        host = port.host
        ctx.set(host.bready, 1)
        for name in ("awvalid", "wvalid"):
            ctx.set(getattr(host, name), 1)
        ctx.set(host.wstrb, 15)
        ctx.set(host.awaddr, DOORBELL_BASE)
        answers = 0
        for _ in range(60):
            answers += ctx.get(host.bvalid)
            await ctx.tick()
        assert answers == 2 and ctx.get(doorbell.waiting) == 2
        assert not ctx.get(host.awready) and not ctx.get(host.wready)

    simulator.add_testbench(bench)
    simulator.run()


def test_zero_wait_latency():
    """As HostPort's docstring says: two cycles to bvalid, three to rvalid."""
    m, port, _, _ = setup(CONFIGS[32])
    simulator = Simulator(m)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        host = port.host
        for address in (0, IMR, DOORBELL_BASE):
            ctx.set(host.awaddr, address)
            ctx.set(host.wstrb, 15)
            ctx.set(host.awvalid, 1)
            ctx.set(host.wvalid, 1)
            await ctx.tick()
            ctx.set(host.awvalid, 0)
            ctx.set(host.wvalid, 0)
            assert not ctx.get(host.bvalid)
            await ctx.tick()
            assert ctx.get(host.bvalid)
            ctx.set(host.bready, 1)
            await ctx.tick()
            ctx.set(host.bready, 0)
            assert not ctx.get(host.bvalid)
        for address in (0, IMR):
            ctx.set(host.araddr, address)
            ctx.set(host.arvalid, 1)
            await ctx.tick()
            ctx.set(host.arvalid, 0)
            await ctx.tick()
            assert not ctx.get(host.rvalid)
            await ctx.tick()
            assert ctx.get(host.rvalid)
            ctx.set(host.rready, 1)
            await ctx.tick()
            ctx.set(host.rready, 0)
            assert not ctx.get(host.rvalid)

    simulator.add_testbench(bench)
    simulator.run()
