"""Interrupt status against a plain model: an event is never lost to a clear, levels follow their source."""

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.nic.processor.interrupt import InterruptStatus

WORD = st.integers(0, 63)


@settings(max_examples=40, deadline=None)
@given(levels=WORD, cycles=st.lists(st.tuples(WORD, WORD, WORD), min_size=1, max_size=40))
def test_agrees_with_the_model(levels, cycles):
    dut = InterruptStatus(width=6, levels=levels)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        stored = 0
        for set_, clear, mask in cycles:
            ctx.set(dut.set, set_)
            ctx.set(dut.clear, clear)
            ctx.set(dut.mask, mask)
            expected = stored & ~levels | set_ & levels
            assert ctx.get(dut.status) == expected
            assert ctx.get(dut.event) == bool(expected & mask)
            await ctx.tick()
            stored = stored & ~clear | set_

    simulator.add_testbench(bench)
    simulator.run()


def test_an_event_in_the_cycle_of_its_clear_stays():
    dut = InterruptStatus(width=2)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        ctx.set(dut.set, 0b11)
        await ctx.tick()
        ctx.set(dut.set, 0b01)
        ctx.set(dut.clear, 0b11)
        await ctx.tick()
        assert ctx.get(dut.status) == 0b01
        ctx.set(dut.set, 0)
        await ctx.tick()
        assert ctx.get(dut.status) == 0

    simulator.add_testbench(bench)
    simulator.run()
