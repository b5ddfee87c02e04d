"""The bounds of waiting in the receive side: nobody waits for a process, and what is closed stays untouched."""

import pytest
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from support.hdl.hca.completion_model import cqe_fields
from support.hdl.hca.receive_bench import ReceiveBench
from support.hdl.hca.receive_model import Packet, Pair, wqe_bits
from support.hdl.hca.streams import put
from support.hdl.protection_model import Region

CONFIG = preset(HcaConfig, "tiny")
RINGS, TABLE, DATA, VIRTUAL = 0x1000, 0x2000, 0x4000, 0x80000
JUDGED_SET_UP = 60
"""Cycles until a set-up is taken: the bus's time once for an element and once for a page, and a few cycles for each
packet that stands."""
JUDGED = 4
"""Cycles for a packet that is dropped."""


async def prepare(ctx, bench, *, buffers=8):
    """Queue pairs 0 and 1 of owner 1, and a page for each, with so many buffers of 64 bytes."""
    for page in range(2):
        bench.fill(TABLE + 4 * page, (DATA + page * 4096 | 1).to_bytes(4, "little"))
    await bench.region(ctx, 0, Region(key=7, owner=1, start=VIRTUAL, bytes=2 * 4096, table=TABLE))
    for qp in range(2):
        await bench.pair(ctx, qp, Pair(1, qp, RINGS + 0x100 * qp, 3, None))
        for number in range(buffers):
            element = wqe_bits(address=VIRTUAL + 4096 * qp + 64 * number, bytes=64, tag=number, key=7)
            bench.fill(RINGS + 0x100 * qp + 16 * number, element)
        await bench.doorbell(ctx, 1, qp, buffers)
        await bench.rest(ctx)


def packet(qp, size=64):
    return Packet(qp=qp, source=1, source_qp=1, payload=bytes([qp % 255 + 1]) * size)


@pytest.mark.parametrize("size", [0, 64])
def test_packets_without_buffers_are_dropped_at_the_stated_rate(size):
    # A bus that never answers is none of their business.
    bench = ReceiveBench(CONFIG, seed=0, stall=1.0)

    async def script(ctx):
        await put(ctx, bench.engine.setup, {"qp": 0, "open": 1, "owner": 1, "entries_log2": 3})
        begin = bench.now
        packets = [packet(qp, size) for qp in (0, 0, 2, 255) * 10]
        flits = sum(len(one.flits(CONFIG)) for one in packets)
        await bench.packets(ctx, packets)
        await bench.rest(ctx)
        taken = bench.tail_times[-1] - begin
        print(f"{len(packets)} packets, {flits} flits, in {taken} cycles")
        assert ctx.get(bench.engine.buffer_drops) == 20 and ctx.get(bench.engine.closed_drops) == 20
        # One that is dropped takes so many cycles, and at most those of the stage come in before.
        assert taken <= max(flits, JUDGED * len(packets)) + 5

    bench.run(script)


@pytest.mark.parametrize("delay", [13, *range(16, 23)])
def test_a_set_up_is_taken_while_a_message_waits_for_its_buffer(delay):
    """Two queue pairs' elements are fetched one after the other, for packets that stand, and a third is closed."""
    bench = ReceiveBench(CONFIG, seed=0, latency=20)
    begun, taken = [], []

    async def close(ctx):
        while not begun:
            await ctx.tick()
        await ctx.tick().repeat(delay)
        setup = bench.engine.setup
        ctx.set(setup.payload, {"qp": 2})
        ctx.set(setup.valid, 1)
        for cycle in range(JUDGED_SET_UP):
            _, _, ready = await ctx.tick().sample(setup.ready)
            if ready:
                taken.append(cycle)
                break
        ctx.set(setup.valid, 0)

    async def script(ctx):
        await prepare(ctx, bench)
        begun.append(True)
        await bench.packets(ctx, [packet(qp, 0) for qp in (0, 1, 1, 0) * 2])
        await bench.rest(ctx)
        assert len(bench.posts) == 8

    bench.simulator.add_testbench(close)
    bench.run(script)
    assert taken


@pytest.mark.parametrize(
    "delay", [*(0, 33, 66), *(pytest.param(i, marks=pytest.mark.full) for i in range(11, 120, 11) if i % 33)]
)
def test_nothing_of_a_closed_queue_pair_is_touched(delay):
    bench = ReceiveBench(CONFIG, seed=delay, latency=20)
    taken, begun = [], []

    async def close(ctx):
        await ctx.tick().repeat(1 + delay)
        await put(ctx, bench.engine.setup, {"qp": 0})
        taken.append((bytes(bench.memory), len(bench.posts)))
        # All that was under way has ended.
        assert bench.axi.quiet()

    async def script(ctx):
        await prepare(ctx, bench)
        begun.append(True)
        for one in [packet(qp) for qp in (0, 1, 0, 0, 1, 0, 1, 0)]:
            await bench.packets(ctx, [one])
        await bench.rest(ctx)
        (memory, posts), page = taken[0], slice(DATA, DATA + 4096)
        assert bench.memory[page] == memory[page]
        later = [cqe_fields(entry)["qp"] for _, entry in bench.posts[posts:]]
        assert 0 not in later
        # The other queue pair has all of its messages.
        assert sum(cqe_fields(entry)["qp"] for _, entry in bench.posts) == 3
        ended = sum(cqe_fields(entry)["qp"] == 0 for _, entry in bench.posts)
        assert ended + ctx.get(bench.engine.closed_drops) == 5
        # A queue pair that is opened again starts anew: its ring is empty.
        await put(ctx, bench.engine.setup, {"qp": 0, "open": 1, "owner": 1, "base": RINGS, "entries_log2": 3})
        await bench.packets(ctx, [packet(0)])
        await bench.rest(ctx)
        assert ctx.get(bench.engine.buffer_drops) == 1

    async def closer(ctx):
        while not begun:
            await ctx.tick()
        await close(ctx)

    bench.simulator.add_testbench(closer)
    bench.run(script)
