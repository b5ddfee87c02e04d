"""Packets of queue pairs that are begun and not on the link, against a plain count."""

import random

from amaranth import Signal
from amaranth.hdl import ResetInserter
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.packet_counts import PacketCounts

CONFIG = preset(HcaConfig, "tiny")
MOST = CONFIG.link.vls * CONFIG.vl_packets
"""Packets that the buffers towards the link hold."""


def test_packets_come_and_go_as_a_plain_count_and_none_stay_after_a_reset():
    print("seed 1")
    rng = random.Random(1)
    dut, reset = PacketCounts(CONFIG), Signal()
    counts, seen = [0] * CONFIG.queue_pairs, 0

    async def bench(ctx):
        nonlocal seen
        for turn in range(3):
            await ctx.tick().repeat(CONFIG.queue_pairs)
            counts[:] = [0] * CONFIG.queue_pairs
            for _ in range(300):
                comes, goes, look = (rng.randrange(CONFIG.queue_pairs) for _ in range(3))
                begin = sum(counts) < MOST and rng.random() < 0.6
                gone = counts[goes] > 0 and rng.random() < 0.6
                ctx.set(dut.look, look)
                ctx.set(dut.begin, begin)
                ctx.set(dut.begin_qp, comes)
                ctx.set(dut.gone, gone)
                ctx.set(dut.gone_qp, goes)
                assert ctx.get(dut.some) == bool(counts[look]), turn
                seen += bool(counts[look])
                await ctx.tick()
                counts[comes] += begin
                counts[goes] -= gone
            ctx.set(dut.begin, 0)
            ctx.set(dut.gone, 0)
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert 100 < seen < 800
