"""Credit counters against a list of numbers."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.router.credits import Credits


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    vls=st.sampled_from([1, 2, 3, 16]),
    depth=st.sampled_from([2, 3, 10]),
    choices=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 1), st.integers(0, 15)),
        min_size=40,
        max_size=80,
    ),
)
def test_counts_what_may_be_sent(vls, depth, choices):
    dut = Credits(vls=vls, depth=depth)

    async def bench(ctx):
        model = [depth] * vls
        for spend, spend_vl, refund, refund_vl in choices:
            spend_vl, refund_vl = spend_vl % vls, refund_vl % vls
            assert ctx.get(dut.available) == sum(bool(count) << vl for vl, count in enumerate(model))
            spend = spend and model[spend_vl] > 0
            refund = refund and model[refund_vl] < depth
            ctx.set(dut.spend, spend)
            ctx.set(dut.spend_vl, spend_vl)
            ctx.set(dut.refund, refund)
            ctx.set(dut.refund_vl, refund_vl)
            model[spend_vl] -= bool(spend)
            model[refund_vl] += bool(refund)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_depth_below_two_is_refused():
    with pytest.raises(ConfigError, match=r"^Credits: depth = 1: at least 2$"):
        Credits(vls=1, depth=1)
