"""Departures: the times of a packet's header in its end."""

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.departures import Departures
from lanikai.hdl.hca.layout import MOST_BUFFERED_CYCLES

CONFIG = preset(HcaConfig, "tiny")
WRAP = 1 << 32


@pytest.mark.parametrize(
    ("begun", "departed", "buffered"),
    [
        (5, 5, 0),
        (WRAP - 3, 4, 7),
        (0, MOST_BUFFERED_CYCLES - 1, MOST_BUFFERED_CYCLES - 1),
        (0, MOST_BUFFERED_CYCLES, MOST_BUFFERED_CYCLES),
        (0, MOST_BUFFERED_CYCLES + 1, MOST_BUFFERED_CYCLES),
        (1, 0, MOST_BUFFERED_CYCLES),
    ],
)
def test_an_end_has_the_times_of_its_header(begun, departed, buffered):
    dut = Departures(CONFIG)

    async def bench(ctx):
        # Two packets of two flits one behind the other on VL 1: the second header is on the link in the cycle in which
        # the first one's stamp is read.
        for number in range(2):
            ctx.set(dut.begin, 1)
            ctx.set(dut.begin_vl, 1)
            await ctx.tick()
            ctx.set(dut.begin, 0)
            ctx.set(dut.record_valid, 1)
            ctx.set(dut.record_vl, 1)
            ctx.set(dut.record, {"begun": begun, "last": 1, "tag": number, "flits": 2})
            await ctx.tick()
            ctx.set(dut.record_valid, 0)
        ctx.set(dut.flit_vl, 1)
        ctx.set(dut.flit, 1)
        for now, tail in ((departed, 0), (departed + 1, 1), (departed + 2, 0), (departed + 3, 1)):
            ctx.set(dut.now, now % WRAP)
            ctx.set(dut.tail, tail)
            await ctx.tick()
        ctx.set(dut.flit, 0)
        await ctx.tick().until(dut.end.valid)
        found = []
        ctx.set(dut.end.ready, 1)
        while ctx.get(dut.end.valid):
            end = ctx.get(dut.end.payload)
            found.append((end.tag, end.departed, end.buffered))
            await ctx.tick()
        second = min(MOST_BUFFERED_CYCLES, (departed + 2 - begun) % WRAP)
        assert found == [(0, departed, buffered), (1, departed + 2, second)]

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
