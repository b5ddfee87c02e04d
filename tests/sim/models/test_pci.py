"""The PCI host in Amaranth's simulator: timing clock by clock, faults, fairness, retry, watches."""

import itertools
import random

import pytest
from amaranth import Module
from amaranth.lib import memory as amaranth_memory
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.sim.models.pci_host import DECERR, INCR, OKAY, SLVERR, PciHost
from lanikai.sim.models.pci_timing import PciTiming

MEMORY_BYTES = 4096


class Bench:
    """A PCI host on a plain memory, with an AXI-Lite target that answers after `target_cycles`."""

    def __init__(self, timing=None, *, data_bits=32, target_cycles=1):
        self.timing = timing or PciTiming()
        self.host = PciHost(self.timing, data_bits=data_bits, memory_bytes=MEMORY_BYTES)
        self.word_bytes = data_bits // 8
        self.memory = amaranth_memory.Memory(shape=data_bits, depth=MEMORY_BYTES // self.word_bytes, init=[])
        self.target_cycles = target_cycles
        self.target_words = {}
        self.cycle = 0
        self.events = []
        m = Module()
        m.submodules.host = self.host
        m.submodules.memory = self.memory
        port, bus = self.memory.read_port(), self.host.memory
        write = self.memory.write_port(granularity=8)
        shift = self.word_bytes.bit_length() - 1
        m.d.comb += [
            port.addr.eq(bus.address >> shift),
            port.en.eq(bus.read),
            bus.read_data.eq(port.data),
            write.addr.eq(bus.address >> shift),
            write.data.eq(bus.write_data),
            write.en.eq(bus.strobe & bus.write.replicate(self.word_bytes)),
        ]
        # The word at byte 0x100 is watched.
        m.d.sync += bus.hit.eq(bus.write & (bus.address == 0x100))
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        self.simulator.add_process(self._count)
        self.simulator.add_testbench(self._target, background=True)

    async def _count(self, ctx):
        async for _, _, event in ctx.tick().sample(self.host.write_event):
            self.cycle += 1
            if bool(event) != bool(len(self.events) % 2):
                self.events.append(self.cycle)

    async def _target(self, ctx):
        nic = self.host.nic
        while True:
            await ctx.tick()
            if not (ctx.get(nic.awvalid) or ctx.get(nic.arvalid)):
                continue
            write = ctx.get(nic.awvalid)
            address, word = ctx.get(nic.awaddr), ctx.get(nic.wdata)
            ready = [nic.awready, nic.wready] if write else [nic.arready]
            for signal in ready:
                ctx.set(signal, 1)
            await ctx.tick()
            for signal in ready:
                ctx.set(signal, 0)
            for _ in range(self.target_cycles - 1):
                await ctx.tick()
            bad = address >= 0x1000
            if write:
                if not bad:
                    self.target_words[address] = word
                ctx.set(nic.bresp, SLVERR if bad else OKAY)
                ctx.set(nic.bvalid, 1)
                await ctx.tick().until(nic.bready)
                ctx.set(nic.bvalid, 0)
            else:
                ctx.set(nic.rdata, self.target_words.get(address, 0))
                ctx.set(nic.rresp, SLVERR if bad else OKAY)
                ctx.set(nic.rvalid, 1)
                await ctx.tick().until(nic.rready)
                ctx.set(nic.rvalid, 0)

    def run(self, *processes):
        for process in processes:
            self.simulator.add_testbench(process)
        self.simulator.run()

    async def dma_read(self, ctx, address, beats, *, stall=lambda: False, burst=INCR):
        """A read burst: its words, responses and the cycle of each beat."""
        dma = self.host.dma
        for name, value in self._address(address, beats, burst).items():
            ctx.set(getattr(dma, f"ar{name}"), value)
        ctx.set(dma.arvalid, 1)
        await ctx.tick().until(dma.arready)
        ctx.set(dma.arvalid, 0)
        got = []
        while len(got) < beats:
            ready = not stall()
            ctx.set(dma.rready, ready)
            _, _, valid, word, response, last = await ctx.tick().sample(
                dma.rvalid, dma.rdata, dma.rresp, dma.rlast
            )
            if ready and valid:
                got.append((word, response, self.cycle))
                assert last == (len(got) == beats)
        ctx.set(dma.rready, 0)
        return got

    async def dma_write(self, ctx, address, words, *, stall=lambda: False, strobe=None, burst=INCR):
        """A write burst: its response and the cycle of each beat."""
        dma = self.host.dma
        for name, value in self._address(address, len(words), burst).items():
            ctx.set(getattr(dma, f"aw{name}"), value)
        ctx.set(dma.awvalid, 1)
        await ctx.tick().until(dma.awready)
        ctx.set(dma.awvalid, 0)
        beats = []
        ctx.set(dma.wstrb, (1 << self.word_bytes) - 1 if strobe is None else strobe)
        while len(beats) < len(words):
            valid = not stall()
            ctx.set(dma.wvalid, valid)
            ctx.set(dma.wdata, words[len(beats)])
            ctx.set(dma.wlast, len(beats) == len(words) - 1)
            _, _, ready = await ctx.tick().sample(dma.wready)
            if ready and valid:
                beats.append(self.cycle)
        ctx.set(dma.wvalid, 0)
        ctx.set(dma.bready, 1)
        (response,) = await ctx.tick().sample(dma.bresp).until(dma.bvalid)
        ctx.set(dma.bready, 0)
        return response, beats

    def _address(self, address, beats, burst):
        size = self.word_bytes.bit_length() - 1
        return {"addr": address, "len": beats - 1, "size": size, "burst": burst, "id": 1}

    async def programmed(self, ctx, address, *, write=None):
        """Programmed I/O: (data, error, cycles from command to answer)."""
        command, response = self.host.command, self.host.response
        started = self.cycle
        ctx.set(command.write, write is not None)
        ctx.set(command.address, address)
        ctx.set(command.data, write or 0)
        toggle = 1 - ctx.get(response.toggle)
        ctx.set(command.toggle, toggle)
        await ctx.tick().until(response.toggle == toggle)
        return ctx.get(response.data), ctx.get(response.error), self.cycle - started


def test_read_timing():
    """Arbitration 2, address 1, turnaround 1, wait 8, then a word a cycle."""
    bench = Bench()

    async def body(ctx):
        got = await bench.dma_read(ctx, 0, 4)
        cycles = [cycle for _, _, cycle in got]
        assert cycles == [2 + 1 + 1 + 8 + n for n in range(1, 5)]

    bench.run(body)


def test_a_faster_bus_waits_more_clocks_for_the_same_memory():
    """60 ns of DRAM are 2 clocks at 33 MHz, the default, and 4 at 66. 6 clocks are the bridge's at any speed."""
    assert PciTiming.at(33_000_000) == PciTiming() and PciTiming().read_wait_cycles == 2 + 6
    assert PciTiming.at(66_000_000) == PciTiming(read_wait_cycles=4 + 6)
    assert PciTiming.at(66_000_000, idle_cycles=2).idle_cycles == 2


def test_write_timing():
    """Arbitration 2, address 1, wait 2, then a word a cycle; the response a cycle after the last."""
    bench = Bench()

    async def body(ctx):
        response, beats = await bench.dma_write(ctx, 0, [1, 2, 3])
        assert response == OKAY
        assert beats == [2 + 1 + 2 + n for n in range(1, 4)]
        assert bench.cycle == beats[-1] + 1

    bench.run(body)


def test_burst_is_cut():
    """A burst longer than the bridge's goes on in a new transaction, arbitration hidden behind the old
    one."""
    bench = Bench(PciTiming(burst_words=4))

    async def body(ctx):
        _, beats = await bench.dma_write(ctx, 0, list(range(8)))
        gaps = [b - a for a, b in itertools.pairwise(beats)]
        # Idle 1, address 1, wait 2, and the word itself.
        assert gaps == [1, 1, 1, 1 + 1 + 2 + 1, 1, 1, 1]

    bench.run(body)


@settings(max_examples=15, deadline=None)
@given(
    data_bits=st.sampled_from([32, 64]),
    start=st.integers(0, 200),
    count=st.integers(1, 20),
    burst_words=st.sampled_from([1, 3, 256]),
    seed=st.integers(0, 2**32),
)
def test_data_with_stalls(data_bits, start, count, burst_words, seed):
    """Data that is written is read back, whatever stalls and wherever bursts are cut."""
    bench = Bench(PciTiming(burst_words=burst_words), data_bits=data_bits)
    generator = random.Random(seed)
    words = [generator.getrandbits(data_bits) for _ in range(count)]

    def stall():
        return generator.random() < 0.4

    async def body(ctx):
        address = start * bench.word_bytes
        response, _ = await bench.dma_write(ctx, address, words, stall=stall)
        assert response == OKAY
        got = await bench.dma_read(ctx, address, len(words), stall=stall)
        assert [word for word, _, _ in got] == words
        assert all(response == OKAY for _, response, _ in got)
        assert not ctx.get(bench.host.activity)

    bench.run(body)


def test_strobes():
    """Only the bytes that the strobes name are written."""
    bench = Bench()

    async def body(ctx):
        await bench.dma_write(ctx, 8, [0x11223344])
        await bench.dma_write(ctx, 8, [0xAABBCCDD], strobe=0b0101)
        assert (await bench.dma_read(ctx, 8, 1))[0][0] == 0x11BB33DD

    bench.run(body)


def test_faults():
    """An access beyond the memory gets DECERR and ones, beat by beat; a fixed burst gets SLVERR. Nothing else is
    touched."""
    bench = Bench()

    async def body(ctx):
        response, _ = await bench.dma_write(ctx, MEMORY_BYTES - 4, [7, 8])
        assert response == DECERR
        got = await bench.dma_read(ctx, MEMORY_BYTES - 4, 2)
        assert [(word, response) for word, response, _ in got] == [(7, OKAY), (0xFFFFFFFF, DECERR)]
        assert (await bench.dma_read(ctx, 0, 1))[0][:2] == (0, OKAY)
        response, _ = await bench.dma_write(ctx, 0, [9], burst=0)
        assert response == SLVERR
        assert (await bench.dma_read(ctx, 0, 1, burst=0))[0][1] == SLVERR
        assert (await bench.dma_read(ctx, 0, 1))[0][:2] == (0, OKAY)

    bench.run(body)


def test_programmed_io():
    """Words reach the target and come back; its refusal is an error."""
    bench = Bench()

    async def body(ctx):
        _, error, cycles = await bench.programmed(ctx, 0x20, write=0x12345678)
        assert not error and bench.target_words == {0x20: 0x12345678}
        # Arbitration 2, address 1, the target's handshake 1 and answer 1, the cycle that shows the register.
        assert cycles == 2 + 1 + 1 + 1 + 1
        word, error, _ = await bench.programmed(ctx, 0x20)
        assert word == 0x12345678 and not error
        _, error, _ = await bench.programmed(ctx, 0x2000, write=1)
        assert error

    bench.run(body)


def test_retry_lets_dma_pass():
    """A target that does not answer is retried, DMA goes on meanwhile, and the access happens once."""
    bench = Bench(target_cycles=100)
    ended = {}

    async def programmed(ctx):
        await bench.programmed(ctx, 0x20, write=5)
        ended["programmed"] = bench.cycle

    async def dma(ctx):
        await ctx.tick()
        for _ in range(2):
            await bench.dma_write(ctx, 0, [1, 2, 3])
        ended["dma"] = bench.cycle

    bench.run(programmed, dma)
    assert bench.target_words == {0x20: 5}
    assert ended["dma"] < 80 < ended["programmed"]


def test_turns():
    """Programmed I/O and DMA that both wait take turns."""
    bench = Bench()
    order = []

    async def programmed(ctx):
        for _ in range(4):
            await bench.programmed(ctx, 0x20, write=5)
            order.append("p")

    async def dma(ctx):
        for _ in range(4):
            await bench.dma_read(ctx, 0, 8)
            order.append("d")

    bench.run(programmed, dma)
    assert "".join(order) in ("pdpdpdpd", "dpdpdpdp")


def test_write_event():
    """The event changes two cycles after the last beat of a burst that hit a watched word, and for no
    other."""
    bench = Bench()

    async def body(ctx):
        await bench.dma_write(ctx, 0x200, [1, 2])
        await ctx.tick().repeat(5)
        assert bench.events == []
        _, beats = await bench.dma_write(ctx, 0xFC, [1, 2, 3])
        await ctx.tick().repeat(5)
        # The new value stands in the second cycle after the beat's, sampled at that cycle's end.
        assert bench.events == [beats[-1] + 2]
        await bench.dma_write(ctx, 0x104, [1])
        await ctx.tick().repeat(5)
        assert len(bench.events) == 1

    bench.run(body)


def test_errors():
    """Wrong parameters are named."""
    with pytest.raises(ConfigError, match=r"^PciHost: data_bits = 16: 32 or 64$"):
        PciHost(PciTiming(), data_bits=16, memory_bytes=4096)
    with pytest.raises(ConfigError, match=r"^PciHost: memory_bytes = 100: a positive multiple of 4096$"):
        PciHost(PciTiming(), data_bits=32, memory_bytes=100)
    with pytest.raises(
        ConfigError, match=r"read_wait_cycles = 16: the first word would come in clock 19, PCI allows 16"
    ):
        PciTiming(read_wait_cycles=16)


def test_every_time_of_the_bus_says_where_it_is_from():
    """Each is a rule of the specification or an assumption, with the section of the specification if it has one."""
    for name, field in PciTiming.model_fields.items():
        assert "pecification: " in field.description or "ssumption: " in field.description, name
