"""Round robin of many lanes: each lane by itself is the plain model."""

from amaranth import ClockDomain, Module
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.arbiter import LaneRoundRobin


@st.composite
def cases(draw):
    size, lanes = draw(st.sampled_from([(1, 1), (2, 2), (3, 2), (5, 16), (4, 1)]))
    vector = st.integers(0, (1 << lanes) - 1)
    cycle = st.lists(vector, min_size=size, max_size=size)
    return size, lanes, draw(st.lists(cycle, min_size=20, max_size=50))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases())
def test_each_lane_is_a_round_robin_of_its_own(case):
    size, lanes, cycles = case
    dut = LaneRoundRobin(size=size, lanes=lanes)

    async def bench(ctx):
        last = [size - 1] * lanes
        for requests in cycles:
            for i in range(size):
                ctx.set(dut.requests[i], requests[i])
            expected = [0] * size
            for lane in range(lanes):
                for i in [(last[lane] + 1 + k) % size for k in range(size)]:
                    if requests[i] >> lane & 1:
                        expected[i] |= 1 << lane
                        last[lane] = i
                        break
            assert [ctx.get(grant) for grant in dut.grant] == expected
            await ctx.tick()

    # A single requester has no register, and so no clock domain of its own.
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
