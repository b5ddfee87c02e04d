"""Counts of what passes link ends and buses: by themselves, and at a component."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import HcaConfig, LinkConfig, preset
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.hca.hca import Hca
from lanikai.hdl.monitors.flit_tally import LINK_TALLIES, BeatTally, FlitTally, tallied, tally_signals
from support.hdl.counting import Nearly

SEED = 1
LAST_BIT = 5


@pytest.mark.parametrize("last_bit", [None, LAST_BIT])
def test_flits_tails_and_credits_count_over_the_wrap(last_bit):
    dut, chance = FlitTally(LinkConfig(flit_bits=32, vls=2), last_bit=last_bit), random.Random(SEED)
    found = dict.fromkeys(LINK_TALLIES, 0)

    async def bench(ctx):
        nearly = {name: Nearly(ctx, getattr(dut, name), 10) for name in LINK_TALLIES}
        for cycle in range(300):
            valid, tail, credit, data = (chance.random() < 0.5 for _ in range(4))
            ctx.set(dut.payload, {"data": data << LAST_BIT, "tail": tail})
            ctx.set(dut.valid, valid)
            ctx.set(dut.credit_valid, credit)
            for name in LINK_TALLIES:
                assert ctx.get(getattr(dut, name)) == nearly[name](found[name]), (cycle, name)
            found["flits"] += valid
            found["tails"] += valid and tail
            found["lasts"] += valid and tail and data and last_bit is not None
            found["credits"] += credit
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert [bool(found[name]) for name in LINK_TALLIES] == [True, True, last_bit is not None, True]


def test_beats_count_over_the_wrap():
    dut, chance = BeatTally(), random.Random(SEED)

    async def bench(ctx):
        nearly, found = Nearly(ctx, dut.beats, 10), 0
        for _ in range(100):
            read, written = (chance.random() < 0.5 for _ in range(2))
            ctx.set(dut.read, read)
            ctx.set(dut.written, written)
            assert ctx.get(dut.beats) == nearly(found)
            found += read + written
            await ctx.tick()
        assert found > 20

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_component_has_a_tally_at_each_end():
    adapter = tallied(Hca(preset(HcaConfig, "tiny"), downstream_flits=4))
    names = [variable for _, variable in tally_signals(adapter, name="hca")]
    ends = [f"tally_{end}_{name}" for end in ("tx", "rx") for name in LINK_TALLIES]
    assert sorted(names) == sorted([*ends, "tally_bus_beats"])
    text = to_verilog(adapter, name="hca")
    assert all(f" {name};" in text for name in names)
