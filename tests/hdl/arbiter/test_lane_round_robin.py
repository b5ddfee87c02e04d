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
    gates = draw(st.none() | st.lists(vector, min_size=50, max_size=50))
    return size, lanes, draw(st.lists(cycle, min_size=20, max_size=50)), gates


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases())
def test_each_lane_is_a_round_robin_of_its_own(case):
    """With gates, grants are given and turns move on only where a lane is open."""
    size, lanes, cycles, gates = case
    dut = LaneRoundRobin(size=size, lanes=lanes, gated=gates is not None)

    async def bench(ctx):
        last = [size - 1] * lanes
        for number, requests in enumerate(cycles):
            used = -1 if gates is None else gates[number]
            if gates is not None:
                ctx.set(dut.open, used)
            for i in range(size):
                ctx.set(dut.requests[i], requests[i])
            expected = [0] * size
            for lane in range(lanes):
                for i in [(last[lane] + 1 + k) % size for k in range(size)]:
                    if requests[i] >> lane & 1:
                        expected[i] |= 1 << lane
                        last[lane] = i if used >> lane & 1 else last[lane]
                        break
            assert [ctx.get(grant) for grant in dut.grant] == [lanes & used for lanes in expected]
            await ctx.tick()

    # A single requester has no register, and so no clock domain of its own.
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
