"""Protection and translation against the plain model, with page tables behind a slow bus."""

import random

import pytest
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.protection import Protection
from lanikai.hdl.nic.owners.translation import Scope, Translation
from support.hdl.axi_memory import AxiMemory
from support.hdl.counting import Nearly
from support.hdl.protection_model import Region, expected

NARROW = preset(NicConfig, "tiny", owners=4, regions=4, translation_entries=4)
WIDE = NARROW.replace(link=LinkConfig(flit_bits=64, vls=2), bus_bits=64)


class Guard:
    """Protection over translation over a memory."""

    def __init__(self, config, *, seed=0, stall=0.3, fails=lambda address: False):
        self.config = config
        m = Module()
        m.submodules.protection = self.protection = Protection(config)
        m.submodules.translation = self.translation = Translation(config)
        connect(m, self.protection.lookup, self.translation.lookup)
        connect(m, self.translation.answer, self.protection.answer)
        self.rng = random.Random(seed)
        self.memory = bytearray(8192)
        self.axi = AxiMemory(
            self.translation.axi,
            self.memory,
            data_bits=config.bus_bits,
            rng=self.rng,
            stall=stall,
            max_beats=1,
            fails=fails,
        )
        self.regions, self.channels = {}, {}
        self.simulator = Simulator(m)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.axi.process, background=True)

    def run(self, script):
        async def bench(ctx):
            await script(ctx, self)

        self.simulator.add_testbench(bench)
        self.simulator.run()

    async def region(self, ctx, number, region):
        self.regions[number] = region
        dut = self.protection
        fields = {"key": region.key, "owner": region.owner, "start": region.start, "bytes": region.bytes}
        more = {"table": region.table, "writable": region.writable, "valid": region.valid}
        ctx.set(dut.region, {"region": number, **fields, **more})
        ctx.set(dut.regions, 1)
        await ctx.tick()
        ctx.set(dut.regions, 0)

    async def channel(self, ctx, number, owner):
        self.channels[number] = owner
        ctx.set(self.protection.assign, {"channel": number, "owner": owner, "open": 1})
        ctx.set(self.protection.assigns, 1)
        await ctx.tick()
        ctx.set(self.protection.assigns, 0)

    async def invalidate(self, ctx, scope, region=0, page=0):
        stream = self.translation.invalidate
        ctx.set(stream.payload, {"scope": scope, "region": region, "page": page})
        ctx.set(stream.valid, 1)
        while not ctx.get(stream.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(stream.valid, 0)

    async def access(self, ctx, *, channel, region, key, address, size, write):
        """Make an access. Returns (status, pieces)."""
        dut = self.protection
        ctx.set(
            dut.access.payload,
            {
                "channel": channel,
                "region": region,
                "key": key,
                "address": address,
                "bytes": size,
                "write": write,
            },
        )
        ctx.set(dut.access.valid, 1)
        while not ctx.get(dut.access.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(dut.access.valid, 0)
        # A payload on the port after the access was taken is nothing to it.
        ctx.set(dut.access.payload, {"channel": 1, "region": 1, "key": 99})
        pieces, status = [], CompletionStatus.OK
        while True:
            up = self.rng.random() < 0.6
            ctx.set(dut.segment.ready, up)
            if up and ctx.get(dut.segment.valid):
                piece = ctx.get(dut.segment.payload)
                await ctx.tick()
                ctx.set(dut.segment.ready, 0)
                if piece.status:
                    status = piece.status
                    assert piece.last and piece.bytes == 0 and piece.address == 0
                else:
                    pieces.append((piece.address if piece.bytes else None, piece.bytes))
                if piece.last:
                    return CompletionStatus(status), pieces
            else:
                await ctx.tick()

    async def check(self, ctx, **access):
        found = await self.access(ctx, **access)
        alignment = self.config.dma_alignment_bytes
        assert found == expected(self.regions, self.channels, self.memory, alignment=alignment, **access), (
            access
        )
        return found[0]


ACCESS = st.fixed_dictionaries(
    {
        "channel": st.integers(0, 4),
        "region": st.sampled_from([0, 1, 2, 3, 4, 255]),
        "key": st.sampled_from([7, 7, 7, 8]),
        "address": st.sampled_from(
            [0x10000, 0x10FFC, 0x11000, 0x12FFF, 0x10806, 0x13000, 0xFFFFF000, 0xFFF0, 0x14800]
        ),
        "size": st.sampled_from([0, 1, 4, 4096, 4100, 8192, 40000, 65535]),
        "write": st.integers(0, 1),
    }
)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    wide=st.booleans(),
    bytewise=st.booleans(),
    accesses=st.lists(ACCESS, min_size=10, max_size=30),
)
def test_agrees_with_the_model(seed, wide, bytewise, accesses):
    config = WIDE if wide else NARROW
    guard = Guard(config.replace(dma_alignment_bytes=1 if bytewise else 4), seed=seed)
    rng = guard.rng
    for table in (0x100, 0x300):
        for page in range(24):
            entry = (rng.getrandbits(20) << 12) | (rng.random() < 0.9)
            guard.memory[table + 4 * page : table + 4 * page + 4] = entry.to_bytes(4, "little")

    async def script(ctx, g):
        for channel, owner in ((0, 1), (1, 2), (3, 1)):
            await g.channel(ctx, channel, owner)
        await g.region(ctx, 0, Region(7, 1, 0x10800, 0x14000, 0x100))
        await g.region(ctx, 1, Region(7, 2, 0x10000, 0x5000, 0x300))
        await g.region(ctx, 2, Region(7, 1, 0xFFFF0000, 0x10000, 0x100, writable=False))
        await g.region(ctx, 3, Region(7, 1, 0, 0x14801, 0x100, valid=rng.random() < 0.7))
        bad = 0
        violations = Nearly(ctx, g.protection.violations)
        for access in accesses:
            bad += await g.check(ctx, **access) != CompletionStatus.OK
        assert ctx.get(g.protection.violations) == violations(bad)
        assert ctx.get(g.translation.hits) + ctx.get(g.translation.misses) >= len(g.axi.bursts)
        assert ctx.get(g.translation.misses) == len(g.axi.bursts)

    guard.run(script)


def entry(frame, present=1):
    return (frame << 12 | present).to_bytes(4, "little")


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("config", [NARROW, WIDE], ids=["32-bit bus", "64-bit bus"])
def test_a_cached_page_is_used_until_it_is_invalidated(config, scope):
    guard = Guard(config.replace(translation_entries=8))
    guard.memory[0x100:0x104], guard.memory[0x104:0x108] = entry(0x55), entry(0x66)
    guard.memory[0x200:0x204] = entry(0x77)

    async def script(ctx, g):
        await g.channel(ctx, 0, 1)
        await g.region(ctx, 0, Region(7, 1, 0x10000, 0x2000, 0x100))
        await g.region(ctx, 1, Region(7, 1, 0x10000, 0x1000, 0x200))

        async def where(region, address):
            status, pieces = await g.access(
                ctx, channel=0, region=region, key=7, address=address, size=4, write=0
            )
            assert status == CompletionStatus.OK
            return pieces[0][0]

        hits, misses = Nearly(ctx, g.translation.hits), Nearly(ctx, g.translation.misses)
        for _ in range(2):
            assert await where(0, 0x10010) == 0x55010
            assert await where(0, 0x11020) == 0x66020
            assert await where(1, 0x10030) == 0x77030
        assert (ctx.get(g.translation.hits), ctx.get(g.translation.misses)) == (hits(3), misses(3))
        g.memory[0x100:0x104], g.memory[0x104:0x108] = entry(0x155), entry(0x166)
        g.memory[0x200:0x204] = entry(0x177)
        assert await where(0, 0x10010) == 0x55010  # cached
        await g.invalidate(ctx, scope, region=0, page=0)
        assert await where(0, 0x10010) == 0x155010
        assert await where(0, 0x11020) == (0x66020 if scope == Scope.PAGE else 0x166020)
        assert await where(1, 0x10030) == (0x177030 if scope == Scope.ALL else 0x77030)
        # A page that goes away is not there, and is not kept as missing when it comes back.
        g.memory[0x100:0x104] = entry(0x255, present=0)
        await g.invalidate(ctx, Scope.PAGE, region=0, page=0)
        access = {"channel": 0, "region": 0, "key": 7, "address": 0x10010, "size": 4, "write": 0}
        assert await g.check(ctx, **access) == CompletionStatus.NO_PAGE
        g.memory[0x100:0x104] = entry(0x255)
        assert await where(0, 0x10010) == 0x255010

    guard.run(script)


def test_a_page_table_that_the_bus_cannot_read_translates_nothing():
    guard = Guard(NARROW, fails=lambda address: True)
    guard.memory[0x100:0x104] = entry(0x55)

    async def script(ctx, g):
        await g.channel(ctx, 0, 1)
        await g.region(ctx, 0, Region(7, 1, 0x10000, 0x2000, 0x100))
        access = {"channel": 0, "region": 0, "key": 7, "address": 0x10010, "size": 4, "write": 0}
        assert await g.access(ctx, **access) == (CompletionStatus.NO_PAGE, [])

    guard.run(script)


@pytest.mark.parametrize("component", [Protection, Translation])
def test_regions_are_asked_for(component):
    with pytest.raises(ConfigError) as error:
        component(preset(NicConfig, "tiny"))
    assert str(error.value) == f"{component.__name__}: regions = 0: at least 1"


def test_regions_need_owners():
    with pytest.raises(ConfigError) as error:
        preset(NicConfig, "tiny", regions=3)
    assert str(error.value) == "NicConfig: regions = 3: needs owners, 1 at least"
