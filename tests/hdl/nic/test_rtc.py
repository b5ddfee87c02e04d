"""The real-time clock: exact ticks, and a timer that is right across the wrap."""

from math import ceil

import pytest
from amaranth import Const, Module, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.rtc import Rtc, difference, reached


def run(config, testbench):
    dut = Rtc(config)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await testbench(ctx, dut)

    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=15, deadline=None)
@given(num=st.integers(1, 65535), den=st.integers(1, 65535), cycles=st.integers(1, 200))
def test_ticks_are_exact(num, den, cycles):
    num, den = max(num, den), min(num, den)
    config = preset(NicConfig, "tiny", rtc_bits=32, rtc_cycles_num=num, rtc_cycles_den=den)

    async def bench(ctx, dut):
        for cycle in range(cycles):
            assert ctx.get(dut.ticks) == cycle * den // num
            await ctx.tick()

    run(config, bench)


def test_half_microsecond_ticks_alternate_between_16_and_17_cycles():
    config = preset(NicConfig, "lanai4")
    lengths = []

    async def bench(ctx, dut):
        last = 0
        for cycle in range(1, 34 * 4 + 1):
            before = ctx.get(dut.ticks)
            await ctx.tick()
            if ctx.get(dut.ticks) != before:
                lengths.append(cycle - last)
                last = cycle

    run(config, bench)
    assert lengths == [17, 16, 17, 16, 17, 16, 17, 16]
    assert sum(lengths) == ceil(8 * config.tick_cycles)


@settings(max_examples=12, deadline=None)
@given(start=st.integers(0, 300), ahead=st.integers(-126, 127))
def test_timer_fires_once_at_its_time(start, ahead):
    """Times on both sides of the wrap of an 8-bit clock, a tick a cycle."""
    config = preset(NicConfig, "tiny", rtc_bits=8, rtc_cycles_num=1, rtc_cycles_den=1)

    async def bench(ctx, dut):
        await ctx.tick().repeat(start) if start else None
        ctx.set(dut.arm, 1)
        ctx.set(dut.compare, (start + ahead) % 256)
        await ctx.tick()
        ctx.set(dut.arm, 0)
        ctx.set(dut.compare, 0x55)
        for _ in range(max(1, ahead) - 1):
            assert not ctx.get(dut.fired)
            await ctx.tick()
        assert ctx.get(dut.fired)
        for _ in range(140):
            await ctx.tick()
            assert not ctx.get(dut.fired)

    run(config, bench)


def test_timer_can_be_set_anew_and_in_the_cycle_in_which_it_fires():
    config = preset(NicConfig, "tiny", rtc_bits=8, rtc_cycles_num=1, rtc_cycles_den=1)
    writes = {2: 50, 4: 10, 10: 20, 30: 29}
    fired = []

    async def bench(ctx, dut):
        for cycle in range(80):
            ctx.set(dut.arm, cycle in writes)
            ctx.set(dut.compare, writes.get(cycle, 0))
            if ctx.get(dut.fired):
                fired.append(cycle)
            await ctx.tick()

    run(config, bench)
    assert fired == [10, 20, 31]


@pytest.mark.parametrize(
    ("now", "then", "ahead"), [(0, 255, 1), (255, 0, -1), (127, 0, 127), (5, 5, 0), (3, 130, -127)]
)
def test_differences_across_the_wrap(now, then, ahead):
    m = Module()
    found, past = Signal(8), Signal()
    m.d.comb += [
        found.eq(difference(Const(now, 8), Const(then, 8))),
        past.eq(reached(Const(now, 8), Const(then, 8))),
    ]
    simulator = Simulator(m)

    async def bench(ctx):
        await ctx.delay(1e-6)
        assert ctx.get(found) == ahead % 256
        assert ctx.get(past) == (ahead >= 0)

    simulator.add_testbench(bench)
    simulator.run()
