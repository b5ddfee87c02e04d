"""Turns by number are those of the arbiter that grants one-hot."""

import random

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator
from lanikai.hdl.arbiter.numbered_round_robin import NumberedRoundRobin
from lanikai.hdl.arbiter.round_robin import RoundRobinArbiter


@pytest.mark.parametrize("size", [1, 2, 16, 17, 256])
def test_turns_are_those_of_round_robin(size, seed=1):
    print(f"seed {seed}")
    rng = random.Random(seed)
    m = Module()
    m.submodules.dut = dut = NumberedRoundRobin(size=size)
    m.submodules.model = model = RoundRobinArbiter(size=size)
    requests, advance = Signal(size), Signal()
    for one in (dut, model):
        m.d.comb += [one.requests.eq(requests), one.advance.eq(advance)]

    def some():
        """Nobody, one or two, or about a quarter of them."""
        few = [rng.randrange(size) for _ in range(rng.randrange(3))]
        many = rng.getrandbits(size) & rng.getrandbits(size)
        return rng.choice([many, sum({1 << i for i in few})])

    async def bench(ctx):
        for _ in range(200):
            ctx.set(requests, some())
            ctx.set(advance, rng.randrange(2))
            grant = ctx.get(model.grant)
            assert ctx.get(dut.any) == (grant != 0)
            assert not grant or grant == 1 << ctx.get(dut.number)
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
