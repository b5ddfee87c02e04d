"""Tables that are written together."""

import pytest
from amaranth import Module
from amaranth.sim import Simulator
from lanikai.hdl.router.scheduler import share_table
from lanikai.hdl.vl_arbiter.base import TableSignature


@pytest.mark.parametrize("ready", [0b00, 0b01, 0b10, 0b11])
def test_what_is_written_goes_to_both_tables_or_to_none(ready):
    """Otherwise a link and its crossbar output would go by different weights from then on."""
    source, *tables = (TableSignature(vls=4, entries=8).create() for _ in range(3))
    m = Module()
    share_table(m, source, *tables)

    async def bench(ctx):
        for number, table in enumerate(tables):
            ctx.set(table.ready, ready >> number & 1)
        for name, value in {"write": 1, "commit": 1, "entry": 5, "vl": 2, "weight": 7}.items():
            ctx.set(getattr(source, name), value)
        await ctx.delay(1e-8)
        both = ready == 0b11
        assert ctx.get(source.ready) == both
        for table in tables:
            assert (ctx.get(table.write), ctx.get(table.commit)) == (both, both)
            assert (ctx.get(table.entry), ctx.get(table.vl), ctx.get(table.weight)) == (5, 2, 7)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
