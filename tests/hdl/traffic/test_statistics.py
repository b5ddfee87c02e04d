"""Tallies and the histogram's bins against plain Python."""

import random
from itertools import pairwise

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.packet import BORN_BITS
from lanikai.hdl.traffic.statistics import Tally, bin_number, bin_of, bin_range

LATENCIES = st.integers(0, 2**BORN_BITS - 1) | st.integers(0, 100)


@given(st.integers(0, 5), LATENCIES)
def test_bins_hold_their_latencies(sub, latency):
    config = TrafficConfig(histogram_sub_bits=sub)
    position = bin_of(latency, config)
    first, last = bin_range(position, config)
    assert 0 <= position < config.histogram_bins
    assert first <= latency <= last
    assert (last - first) << sub <= first or last == first


@pytest.mark.parametrize("sub", [0, 3, 5])
def test_bins_cover_everything_once(sub):
    config = TrafficConfig(histogram_sub_bits=sub)
    ends = [bin_range(position, config) for position in range(config.histogram_bins)]
    assert ends[0][0] == 0 and ends[-1][1] == 2**BORN_BITS - 1
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ends))


@settings(max_examples=10)
@given(st.sampled_from([0, 1, 3, 5]), st.lists(LATENCIES, min_size=20, max_size=40))
def test_bin_number_is_its_model(sub, latencies):
    config = TrafficConfig(histogram_sub_bits=sub)
    m, latency = Module(), Signal(BORN_BITS)
    shown = Signal(config.bin_bits)
    m.d.comb += shown.eq(bin_number(m, latency, config))

    async def bench(ctx):
        for value in latencies:
            ctx.set(latency, value)
            await ctx.delay(1e-7)
            assert ctx.get(shown) == bin_of(value, config)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=15)
@example("sum", [("g", 1, 255)] * 259)
@given(
    st.sampled_from(["sum", "max", "min"]),
    st.lists(st.tuples(st.sampled_from("gggc-"), st.integers(0, 3), st.integers(0, 255)), max_size=40),
)
def test_tally_is_its_model(kind, steps):
    dut = Tally(rows=4, bits=16, amount_bits=8, kind=kind)
    start = 0xFFFF if kind == "min" else 0
    rows = [start] * 4
    step = {"sum": lambda a, b: (a + b) % 2**16, "max": max, "min": min}[kind]

    async def bench(ctx):
        for what, row, amount in steps:
            ctx.set(dut.give.valid, what == "g")
            ctx.set(dut.give.row, row)
            ctx.set(dut.give.amount, amount)
            ctx.set(dut.clear, what == "c")
            ctx.set(dut.clear_row, row)
            await ctx.tick()
            if what == "g":
                rows[row] = step(rows[row], amount)
            elif what == "c":
                rows[row] = start
        ctx.set(dut.give.valid, 0)
        ctx.set(dut.clear, 0)
        ctx.set(dut.read, 1)
        for row in range(4):
            ctx.set(dut.read_row, row)
            await ctx.tick()
            assert ctx.get(dut.value) == rows[row]

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("options", [{"block": True}, {"direct": True}], ids=["block", "direct"])
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
def test_the_forms_for_small_fpgas_hold_what_the_plain_form_holds(kind, options):
    """Amounts of one row in turn, rows at random, a clear: after two cycles of rest all forms hold the same."""
    rows = 1 if "direct" in options else 4
    seed = 11
    rng = random.Random(seed)
    plain = Tally(rows=rows, bits=16, amount_bits=8, kind=kind)
    other = Tally(rows=rows, bits=16, amount_bits=8, kind=kind, **options)
    m = Module()
    m.submodules += [plain, other]

    async def drive(ctx):
        for turn in range(3):
            for _ in range(60):
                valid, row, amount = (
                    rng.random() < 0.7,
                    rng.choice([0, rng.randrange(rows)]),
                    rng.randrange(256),
                )
                for one in (plain, other):
                    ctx.set(one.give.valid, valid)
                    ctx.set(one.give.row, row)
                    ctx.set(one.give.amount, amount)
                await ctx.tick()
            for one in (plain, other):
                ctx.set(one.give.valid, 0)
            await ctx.tick().repeat(2)
            for row in range(rows):
                for one in (plain, other):
                    ctx.set(one.read, 1)
                    ctx.set(one.read_row, row)
                await ctx.tick()
                assert ctx.get(other.value) == ctx.get(plain.value), f"seed {seed}, turn {turn}, row {row}"
                for one in (plain, other):
                    ctx.set(one.read, 0)
                    ctx.set(one.clear, turn == 1)
                    ctx.set(one.clear_row, row)
                await ctx.tick()
                for one in (plain, other):
                    ctx.set(one.clear, 0)

    sim = Simulator(m)
    sim.add_clock(1e-6)
    sim.add_testbench(drive)
    sim.run()
