"""The sums of the tables: what they are after several rewritings, and that nothing is seen before the swap."""

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.arbiter.vl_tables import VlTables

from .vl_models import ready_cycles

VLS, ENTRIES = 3, 4
ENTRY = st.tuples(st.integers(0, VLS - 1), st.sampled_from([0, 1, 2, 255]))
TABLE = st.lists(ENTRY, min_size=ENTRIES, max_size=ENTRIES)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(st.tuples(TABLE, TABLE, st.integers(0, 255)), min_size=4, max_size=5))
def test_sums_are_those_of_the_last_tables(rewritings):
    """Four times and more, so that both banks of sums are used again."""
    dut = VlTables(vls=VLS, entries=ENTRIES)

    async def sums(ctx):
        result = []
        for level in range(2):
            for vl in range(VLS):
                ctx.set(dut.select_vl, vl)
                ctx.set(dut.select_high, level)
                result.append(ctx.get(dut.share))
                assert ctx.get(dut.listed[level]) >> vl & 1 == (result[-1] != 0)
                assert ctx.get(dut.single[level]) >> vl & 1 == (result[-1] == 1)
        return result, ctx.get(dut.limit)

    async def bench(ctx):
        before = None
        await ctx.tick().until(dut.table.ready)
        for *tables, limit in rewritings:
            for level, table in enumerate(tables):
                for entry, (vl, weight) in enumerate(table):
                    for name, value in (("high", level), ("entry", entry), ("vl", vl), ("weight", weight)):
                        ctx.set(getattr(dut.table, name), value)
                    ctx.set(dut.table.write, 1)
                    await ctx.tick()
            ctx.set(dut.table.write, 0)
            ctx.set(dut.table.limit, limit)
            ctx.set(dut.table.commit, 1)
            await ctx.tick()
            ctx.set(dut.table.commit, 0)
            for _ in range(ready_cycles(VLS, ENTRIES) - 1):
                assert not ctx.get(dut.pending)
                await ctx.tick()
            assert ctx.get(dut.pending)
            assert before is None or await sums(ctx) == before
            ctx.set(dut.swap, 1)
            await ctx.tick()
            ctx.set(dut.swap, 0)
            before = [sum(w for v, w in table if v == vl) for table in tables for vl in range(VLS)], limit
            assert await sums(ctx) == before

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
