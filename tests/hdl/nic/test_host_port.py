"""The host's port against a plain model of the card's map, with random stalls on every channel."""

from collections import deque
from pathlib import Path

import lanikai.hdl.nic
import pytest
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.doorbell import Doorbell
from lanikai.hdl.nic.host_port import HostPort, Resp
from lanikai.hdl.nic.ports import DOORBELL_BASE, REGISTER_BASE
from lanikai.hdl.nic.sram import Sram
from lanikai.hdl.register_bank import RegisterBank
from lanikai.hdl.registers import load
from support.hdl.nic_card import LiteManager

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
    st.integers(0, 4).map(lambda word: word * 4),
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
        for address in (*range(0, 20, 4), 1020):
            word = int.from_bytes(memory[address : address + 4], "little")
            assert await manager.read(ctx, address) == (word, Resp.OKAY)
        assert ctx.get(doorbell.refusals) == refused
        while expected:
            await ctx.tick()

    async def firmware(ctx, manager, doorbell):
        """Take doorbells now and then, so that the queue is full at times."""
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


@pytest.mark.parametrize("bits", CONFIGS)
def test_reads_and_writes_beside_each_other(bits):
    """Both want the SRAM in the same cycle often; each gets its own data."""

    async def writer(ctx, manager, doorbell):
        for i in range(60):
            strobes = manager.random.randrange(16)
            assert await manager.write(ctx, 4 * (i % 8), 0x01010101 * i, strobes) == Resp.OKAY
            for byte in range(4):
                if strobes >> byte & 1:
                    memory[4 * (i % 8) + byte] = i

    async def reader(ctx, manager, doorbell):
        constants = {512 + 4 * i: 0x5A000000 + i for i in range(4)}
        for address, word in constants.items():
            assert await manager.write(ctx, address, word) == Resp.OKAY
        ready.append(True)
        for _ in range(100):
            address = manager.random.choice(list(constants))
            assert await manager.read(ctx, address) == (constants[address], Resp.OKAY)
        done.append(True)

    async def both(ctx, manager, doorbell):
        while not ready:
            await ctx.tick()
        await writer(ctx, manager, doorbell)
        while not done:
            await ctx.tick()
        for i in range(8):
            word = int.from_bytes(memory[4 * i : 4 * i + 4], "little")
            assert await manager.read(ctx, 4 * i) == (word, Resp.OKAY)

    memory, ready, done = bytearray(32), [], []
    run(CONFIGS[bits], both, seed=bits, stall=0.2, background=[reader])


def test_an_answer_that_waits_is_not_disturbed_by_the_next_access():
    """The next access is offered while the answer to the one before is held off."""
    m, port, _, _ = setup(CONFIGS[32])
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    # A good access and then a bad one, on both sides.
    addresses = {"aw": [0, 0x200000], "w": [1, 2], "ar": [ID, 0x200000]}
    found = {"b": [], "r": []}

    async def bench(ctx):
        host = port.host
        ctx.set(host.wstrb, 15)
        todo = {channel: list(values) for channel, values in addresses.items()}
        for cycle in range(60):
            held = cycle % 30 < 28
            for channel, names in {"b": ["bresp"], "r": ["rdata", "rresp"]}.items():
                ctx.set(getattr(host, f"{channel}ready"), not held)
                if ctx.get(getattr(host, f"{channel}valid")) and cycle % 30 > 15:
                    found[channel].append(tuple(ctx.get(getattr(host, name)) for name in names))
            taken = []
            for channel, values in todo.items():
                ctx.set(getattr(host, f"{channel}valid"), bool(values))
                if values:
                    ctx.set(getattr(host, "wdata" if channel == "w" else f"{channel}addr"), values[0])
                    if ctx.get(getattr(host, f"{channel}ready")):
                        taken.append(channel)
            await ctx.tick()
            for channel in taken:
                todo[channel].pop(0)

    simulator.add_testbench(bench)
    simulator.run()
    assert list(dict.fromkeys(found["b"])) == [(Resp.OKAY,), (Resp.SLVERR,)]
    assert list(dict.fromkeys(found["r"])) == [(0x4C4E0000, Resp.OKAY), (0, Resp.SLVERR)]
    assert all(len(answers) >= 26 for answers in found.values())


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
    """The latency is as HostPort's docstring says: two cycles to bvalid, three to rvalid."""
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
