"""The multi-VL buffer against a list of deques."""

from collections import deque

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.router import vl_buffer
from lanikai.hdl.router.vl_buffer import VlBuffer


def run(vls: int, depth: int, choices: list[tuple[int, int, int, int]], reset_at: int = -1) -> None:
    """Play each cycle's (want to write, to which VL, want to pop, from which VL); illegal wishes are dropped."""
    dut = VlBuffer(shape=8, vls=vls, depth=depth, peek=slice(2, 6))

    async def bench(ctx):
        model: list[deque[int]] = [deque() for _ in range(vls)]
        drain = [(0, 0, 1, vl) for vl in range(vls) for _ in range(depth)]
        for cycle, (write, write_vl, pop, pop_vl) in enumerate([*choices, *drain]):
            write_vl, pop_vl, value = write_vl % vls, pop_vl % vls, (cycle * 37 + 11) & 255
            assert ctx.get(dut.non_empty) == sum(bool(queue) << vl for vl, queue in enumerate(model))
            assert ctx.get(dut.full) == sum((len(queue) == depth) << vl for vl, queue in enumerate(model))
            pop = pop and bool(model[pop_vl])
            write = write and len(model[write_vl]) < depth
            ctx.set(dut.read_select, 1 << pop_vl)
            ctx.set(dut.peek_select, 1 << write_vl)
            ctx.set(dut.pop, pop)
            ctx.set(dut.write_valid, write)
            ctx.set(dut.write_vl, write_vl)
            ctx.set(dut.write_data, value)
            assert ctx.get(dut.read_vl) == pop_vl
            if model[pop_vl]:
                assert ctx.get(dut.read_data) == model[pop_vl][0]
            if model[write_vl]:
                assert ctx.get(dut.peek_data) == model[write_vl][0] >> 2 & 15
            if pop:
                model[pop_vl].popleft()
            if write:
                model[write_vl].append(value)
            await ctx.tick()
        assert ctx.get(dut.non_empty) == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    vls=st.sampled_from([1, 2, 3, 16]),
    depth=st.sampled_from([2, 3, 4, 10]),
    choices=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 1), st.integers(0, 15)),
        min_size=40,
        max_size=80,
    ),
)
def test_is_a_queue_a_vl(vls, depth, choices):
    run(vls, depth, choices)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    vls=st.sampled_from([2, 3, 16]),
    depth=st.sampled_from([2, 3, 4, 10]),
    choices=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 1), st.integers(0, 15)),
        min_size=40,
        max_size=80,
    ),
)
def test_is_a_queue_a_vl_in_block_ram(vls, depth, choices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_buffer, "BLOCK_RAM_ROWS", 0)
        run(vls, depth, choices)


@pytest.mark.parametrize("depth", [2, 3])
def test_full_rate_through_one_vl(depth):
    """A write and a pop of the same VL in every cycle, at the smallest depths."""
    run(2, depth, [(1, 1, 0, 0)] + [(1, 1, 1, 1)] * 20)


def test_reset_empties_it():
    """Pointers live in memories, which a reset does not reach: later flits must start afresh."""
    dut = VlBuffer(shape=8, vls=2, depth=3)
    reset = Signal()

    async def bench(ctx):
        ctx.set(dut.write_valid, 1)
        ctx.set(dut.write_vl, 1)
        ctx.set(dut.read_select, 2)
        for value in (1, 2):
            ctx.set(dut.write_data, value)
            await ctx.tick()
        ctx.set(dut.write_valid, 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        assert ctx.get(dut.non_empty) == 0
        ctx.set(dut.write_valid, 1)
        for value in (5, 6, 7):
            ctx.set(dut.write_data, value)
            await ctx.tick()
        ctx.set(dut.write_valid, 0)
        assert ctx.get(dut.full) == 2
        ctx.set(dut.pop, 1)
        for value in (5, 6, 7):
            assert ctx.get(dut.non_empty) == 2
            assert ctx.get(dut.read_data) == value
            await ctx.tick()
        assert ctx.get(dut.non_empty) == 0

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_depth_below_two_is_refused():
    with pytest.raises(ConfigError, match=r"^VlBuffer: depth = 1: at least 2$"):
        VlBuffer(shape=8, vls=1, depth=1)
