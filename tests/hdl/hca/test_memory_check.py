"""The adapter's check of memory against the plain model, behind a slow bus of 128 bits."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.memory_check import MemoryCheck
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.translation import Scope
from support.hdl.axi_memory import AxiMemory
from support.hdl.counting import Nearly
from support.hdl.hca.streams import put, strobe
from support.hdl.protection_model import Region, expected

CONFIG = preset(HcaConfig, "tiny")
LATENCY = 20
PAGES = 12


async def pieces_of(ctx, dut, rng):
    """The (status, pieces) of the access that was made."""
    pieces, status, last = [], CompletionStatus.OK, False
    while not last:
        up = rng.random() < 0.7
        ctx.set(dut.segment.ready, up)
        piece = ctx.get(dut.segment.payload) if up and ctx.get(dut.segment.valid) else None
        await ctx.tick()
        if piece is None:
            continue
        last = bool(piece.last)
        if piece.status:
            status = CompletionStatus(piece.status)
        else:
            pieces.append((piece.address if piece.bytes else None, piece.bytes))
    ctx.set(dut.segment.ready, 0)
    return status, pieces


def bench_of(script, *, seed, stall, latency):
    rng = random.Random(seed)
    dut = MemoryCheck(CONFIG)
    memory = bytearray(8192)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    axi = AxiMemory(dut.axi, memory, data_bits=128, rng=rng, stall=stall, latency=latency, max_beats=1)
    simulator.add_testbench(axi.process, background=True)

    async def bench(ctx):
        await script(ctx, dut, memory, rng)

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
def test_accesses_end_as_the_plain_model_says(seed):
    print(f"seed {seed}")
    seen = set()

    async def script(ctx, dut, memory, rng):
        regions, owners = {}, {}
        refused = 0
        counted = Nearly(ctx, dut.protection.violations, 5)
        for entry in range(2 * PAGES):
            present = rng.random() < 0.9
            memory[4 * entry : 4 * entry + 4] = (rng.randrange(1 << 20) << 12 | present).to_bytes(4, "little")
        for step in range(150):
            if step % 15 == 0:
                qp, owner, opened = rng.randrange(4), rng.randrange(1, 3), step < 60 or rng.random() < 0.8
                owners.pop(qp, None)
                if opened:
                    owners[qp] = owner
                await strobe(
                    ctx, dut.assign, dut.assigns, {"channel": qp, "owner": owner, "open": int(opened)}
                )
            if step % 10 == 0:
                number = rng.randrange(3)
                table = 4 * rng.randrange(PAGES)
                region = Region(
                    key=rng.choice([7, 8]),
                    owner=rng.randrange(1, 3),
                    start=0x10000 + 16 * rng.randrange(8),
                    bytes=rng.choice([4096, 16384, 40000]),
                    table=table,
                    writable=rng.random() < 0.8,
                )
                regions[number] = region
                fields = {name: int(getattr(region, name)) for name in region.__dataclass_fields__}
                await strobe(ctx, dut.region, dut.regions, {"region": number, **fields})
                await put(ctx, dut.invalidate, {"scope": Scope.REGION, "region": number})
            known = rng.choice(list(regions))
            key = regions[known].key if rng.random() < 0.9 else 9
            address = regions[known].start + rng.choice([-16, 0, 16, 4080, 4096, 8192, 8])
            size = rng.choice([0, 1, 16, 608, 4096, 9000])
            access = {
                "channel": rng.choice([*owners, rng.randrange(4)]),
                "region": known if rng.random() < 0.9 else rng.choice([3, 200]),
                "key": key,
                "address": address,
                "write": int(rng.random() < 0.5),
            }
            await put(ctx, dut.access, {**access, "bytes": size})
            found = await pieces_of(ctx, dut, rng)
            assert found == expected(regions, owners, memory, alignment=16, size=size, **access), access
            refused += found[0] != CompletionStatus.OK
            seen.add(found[0])
            assert ctx.get(dut.violations) == counted(refused)
            await ctx.tick()
            assert ctx.get(dut.rests)

    bench_of(script, seed=seed, stall=0.3, latency=3)
    kinds = {"OK", "NO_REGION", "NOT_OWNER", "OUTSIDE", "READ_ONLY", "NO_PAGE", "MISALIGNED"}
    assert {status.name for status in seen} == kinds


@pytest.mark.parametrize(("cached", "cycles"), [(True, 5), (False, 5 + 2 + LATENCY)])
def test_first_segment_comes_as_late_as_stated(cached, cycles):
    async def script(ctx, dut, memory, rng):
        memory[0:4] = (0x5001).to_bytes(4, "little")
        await strobe(ctx, dut.assign, dut.assigns, {"channel": 1, "owner": 1, "open": 1})
        region = {
            "region": 1,
            "valid": 1,
            "writable": 1,
            "key": 7,
            "owner": 1,
            "start": 0x1000,
            "bytes": 4096,
        }
        await strobe(ctx, dut.region, dut.regions, region)
        access = {"channel": 1, "region": 1, "key": 7, "address": 0x1010, "bytes": 64}
        if cached:
            await put(ctx, dut.access, access)
            await pieces_of(ctx, dut, rng)
        await put(ctx, dut.access, access)
        waited = 1
        while not ctx.get(dut.segment.valid):
            await ctx.tick()
            waited += 1
        assert waited == cycles
        assert ctx.get(dut.segment.payload.address) == 0x5010

    bench_of(script, seed=0, stall=0, latency=LATENCY)
