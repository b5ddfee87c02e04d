"""Registers in a stream, and a queue whose head is one, against lists."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError
from lanikai.hdl.nic.queues.registered_fifo import RegisteredFifo
from lanikai.hdl.nic.stream_register import StreamRegister


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("come", "go"), [(1.0, 1.0), (0.5, 0.5), (1.0, 0.4), (0.3, 1.0)])
def test_items_go_through_in_order_one_a_cycle_and_stay_while_they_wait(come, go):
    rng = random.Random(f"{come} {go}")
    dut = StreamRegister(8)
    inside, seen = deque(), 0

    async def bench(ctx):
        nonlocal seen
        held, number = None, 0
        valid = False
        for _ in range(300):
            valid = valid or rng.random() < come
            ready = rng.random() < go
            ctx.set(dut.i.valid, valid)
            ctx.set(dut.i.payload, number % 256 if valid else rng.randrange(256))
            ready_before = ctx.get(dut.i.ready)
            ctx.set(dut.o.ready, ready)
            # No path leads through, and there is room for two.
            assert ctx.get(dut.i.ready) == ready_before == (len(inside) < 2)
            assert ctx.get(dut.o.valid) == bool(inside)
            if inside:
                assert ctx.get(dut.o.payload) == inside[0]
                assert held is None or held == inside[0]
                held = inside[0]
                if ready:
                    inside.popleft()
                    seen, held = seen + 1, None
            if valid and ready_before:
                inside.append(number % 256)
                number, valid = number + 1, False
            await ctx.tick()

    simulate(dut, bench)
    assert seen >= (298 if come == go == 1 else 80)


@pytest.mark.parametrize("depth", [2, 3, 4, 9])
@pytest.mark.parametrize(("come", "go"), [(1.0, 1.0), (0.5, 0.5), (1.0, 0.3), (0.3, 1.0)])
def test_a_queue_with_a_registered_head_loses_nothing(depth, come, go):
    rng = random.Random(f"{depth} {come} {go}")
    dut = RegisteredFifo(width=8, depth=depth)
    inside, popped = deque(), 0

    async def bench(ctx):
        nonlocal popped
        number = 0
        for _ in range(400):
            wants, takes = rng.random() < come, rng.random() < go
            ctx.set(dut.w_en, wants)
            ctx.set(dut.w_data, number % 256)
            ctx.set(dut.r_en, takes)
            assert ctx.get(dut.level) == len(inside) <= depth
            ready, valid = ctx.get(dut.w_rdy), ctx.get(dut.r_rdy)
            assert not (valid and not inside) and not (ready and len(inside) == depth)
            if valid:
                assert ctx.get(dut.r_data) == inside[0][0]
                if takes:
                    inside.popleft()
                    popped += 1
            elif inside:
                # The oldest shows three cycles after it came in.
                assert inside[0][1] < 3
            for item in inside:
                item[1] += 1
            if wants and ready:
                inside.append([number % 256, 1])
                number += 1
            await ctx.tick()
        # Filled to the last place when nothing is taken.
        ctx.set(dut.r_en, 0)
        ctx.set(dut.w_en, 1)
        await ctx.tick().repeat(3 * depth)
        assert ctx.get(dut.level) == depth and not ctx.get(dut.w_rdy)

    simulate(dut, bench)
    if come == go == 1 and depth >= 4:
        assert popped > 390


def test_a_queue_of_one_is_refused():
    with pytest.raises(ConfigError) as caught:
        RegisteredFifo(width=8, depth=1)
    assert str(caught.value) == "RegisteredFifo: depth = 1: at least 2"
