"""The activity counters of an adapter, by themselves."""

import random

from amaranth.sim import Simulator
from lanikai.hdl.hca.activity import ADAPTER_COUNTED, AdapterCounters, adapter_activity_signals
from support.hdl.counting import Nearly

SEED = 1


def test_every_event_counts_over_the_wrap():
    dut, chance = AdapterCounters(), random.Random(SEED)
    found = dict.fromkeys(ADAPTER_COUNTED, 0)

    async def bench(ctx):
        nearly = {name: Nearly(ctx, getattr(dut, f"{name}_count"), 20) for name in ADAPTER_COUNTED}
        for cycle in range(200):
            for name, events in ADAPTER_COUNTED.items():
                now = chance.randrange(1 << events)
                ctx.set(getattr(dut, name), now)
                assert ctx.get(getattr(dut, f"{name}_count")) == nearly[name](found[name]), (cycle, name)
                found[name] += now.bit_count()
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert min(found.values()) > 20


def test_variables_are_there_only_with_counters():
    assert adapter_activity_signals(counters=False) == []
    assert adapter_activity_signals(counters=True)[0] == ("hca", "counted_buffer_writes")
