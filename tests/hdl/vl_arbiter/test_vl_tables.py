"""The rows of the tables: their content after several rewritings, and that nothing is seen before the swap."""

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.vl_arbiter.tables import VlTables
from support.hdl.vl_models import ready_cycles

VLS, ENTRIES = 3, 4
ENTRY = st.tuples(st.integers(0, VLS - 1), st.sampled_from([0, 1, 2, 255]))
TABLE = st.lists(ENTRY, min_size=ENTRIES, max_size=ENTRIES)


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("sums", [False, True])
@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.lists(st.tuples(TABLE, TABLE, st.integers(0, 255)), min_size=4, max_size=5))
def test_rows_are_those_of_the_last_tables(sums, registered, rewritings):
    """The tables are rewritten four times and more, so that both banks are used again."""
    dut = VlTables(vls=VLS, entries=ENTRIES, sums=sums, registered=registered)

    def expected(tables):
        rows = []
        for table in tables:
            for vl in range(VLS):
                own = [entry for entry, (v, weight) in enumerate(table) if v == vl and weight]
                weights = [table[entry][1] for entry in own]
                single = sum(weights) == 1 if sums else weights[:1] == [1]
                rows.append((own, weights, single, sum(weights) if sums else None))
        return rows

    async def rows(ctx):
        result = []
        for level in range(2):
            for vl in range(VLS):
                own, weights = [], []
                place = ctx.get(dut.first[level][vl])
                last, ones = not ctx.get(dut.listed[level]) >> vl & 1, None
                while not last:
                    ctx.set(dut.place, place)
                    ctx.set(dut.place_high, level)
                    await ctx.tick().repeat(1 + registered)
                    own.append(place)
                    weights.append(ctx.get(dut.weight))
                    assert ones is None or ones == (weights[-1] == 1)
                    last, place, ones = (
                        ctx.get(dut.last),
                        ctx.get(dut.following),
                        ctx.get(dut.following_single),
                    )
                share = None
                if sums:
                    ctx.set(dut.select_vl, vl)
                    ctx.set(dut.select_high, level)
                    share = ctx.get(dut.share) if own else 0
                result.append((own, weights, bool(ctx.get(dut.single[level]) >> vl & 1), share))
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
            for _ in range(ready_cycles(VLS, ENTRIES) - 1 + registered):
                assert not ctx.get(dut.pending)
                await ctx.tick()
            assert ctx.get(dut.pending)
            assert before is None or await rows(ctx) == before
            ctx.set(dut.swap, 1)
            await ctx.tick()
            ctx.set(dut.swap, 0)
            before = expected(tables), limit
            assert await rows(ctx) == before

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_vl_that_does_not_exist_is_left_out():
    """A row's VL has two bits, of which the fourth number is none of three VLs."""
    dut = VlTables(vls=3, entries=2)

    async def bench(ctx):
        await ctx.tick().until(dut.table.ready)
        for entry, vl in enumerate((3, 1)):
            for name, value in (("entry", entry), ("vl", vl), ("weight", 9), ("write", 1)):
                ctx.set(getattr(dut.table, name), value)
            await ctx.tick()
        ctx.set(dut.table.write, 0)
        ctx.set(dut.table.commit, 1)
        ctx.set(dut.swap, 1)
        await ctx.tick()
        ctx.set(dut.table.commit, 0)
        await ctx.tick().until(dut.table.ready)
        assert [ctx.get(dut.listed[level]) for level in range(2)] == [0b010, 0]
        assert ctx.get(dut.first[0][1]) == 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("patience", [1, 5])
def test_tables_that_wait_are_overdue_in_time(patience):
    dut = VlTables(vls=2, entries=1, patience_cycles=patience)

    async def bench(ctx):
        await ctx.tick().until(dut.table.ready)
        ctx.set(dut.table.commit, 1)
        await ctx.tick()
        ctx.set(dut.table.commit, 0)
        while not ctx.get(dut.pending):
            assert not ctx.get(dut.overdue)
            await ctx.tick()
        assert [(await ctx.tick().sample(dut.overdue))[-1] for _ in range(patience + 3)] == [
            *[0] * (patience - 1),
            *[1] * 4,
        ]

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
