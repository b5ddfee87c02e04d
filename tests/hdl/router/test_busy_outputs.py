"""An output of a router is busy while anybody can send to it, though the VL whose turn it is cannot.

Three streams always send packets of 16 flits. Input 0 has VL 0 for output 1 and VL 1 for output 2, input 1 has VL 2 for
output 2.
"""

from collections import Counter

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.router import Router

LINK = LinkConfig(flit_bits=32, vls=3, hop_bits=2)
BUFFER_FLITS, PACKET_FLITS = 10, 16
STREAMS = {(0, 0): 1, (0, 1): 2, (1, 2): 2}
STALL = range(20, 220)
WARMUP_CYCLES, WINDOW_CYCLES = 400, 800

REAL_TIME = {"high": ((0, 1),), "low": ((1, 1), (2, 1)), "limit": 255}
FAST_ONE = {"low": ((0, 250), (1, 1), (2, 1))}
FOUR_TO_ONE = {"low": ((0, 64), (1, 16), (2, 16))}
# In units of 16 flits; a frame of more would be longer than the window.
FOUR_UNITS_TO_ONE = {"low": ((0, 4), (1, 1), (2, 1))}


async def write(traffic, ctx, router, *, high=(), low=(), limit=255):
    """The same tables everywhere, then time to take effect."""
    await traffic.register(ctx, router, "SELECT", port=0, everywhere=1)
    for is_high, rows in ((1, high), (0, low)):
        for entry in range(router.config.vl_table_entries):
            vl, weight = rows[entry] if entry < len(rows) else (0, 0)
            await traffic.register(
                ctx, router, "VL_TABLE_ENTRY", high=is_high, entry=entry, vl=vl, weight=weight
            )
    await traffic.register(ctx, router, "VL_TABLE_COMMIT", limit=limit)
    await ctx.tick().repeat(60)


def rates(traffic, config, tables=None, *, stalled=False):
    """Flits a cycle of each VL, which leaves by one output.

    `stalled`: output 1's receiver gives no credits for a while at the start, so that VL 0 has a full buffer from then
    on.
    """
    router = Router(config)
    sent = Counter()

    async def bench(ctx):
        if tables:
            await write(traffic, ctx, router, **tables)
        credits, position = dict.fromkeys(STREAMS, BUFFER_FLITS), dict.fromkeys(STREAMS, 0)
        last, owed = {0: 0, 1: 0}, {p: [] for p in range(config.ports)}
        for cycle in range(WARMUP_CYCLES + WINDOW_CYCLES):
            for p in range(config.ports):
                tx, rx = router.tx[p], router.rx[p]
                if ctx.get(tx.valid):
                    vl = ctx.get(tx.payload.vl)
                    owed[p].append(vl)
                    sent[vl] += cycle >= WARMUP_CYCLES
                back = bool(owed[p]) and not (stalled and p == 1 and cycle in STALL)
                ctx.set(tx.credit_valid, back)
                if back:
                    ctx.set(tx.credit_vl, owed[p].pop(0))
                if ctx.get(rx.credit_valid):
                    credits[p, ctx.get(rx.credit_vl)] += 1
            for i in last:
                ready = [stream for stream in STREAMS if stream[0] == i and credits[stream]]
                ctx.set(router.rx[i].valid, bool(ready))
                if ready:
                    stream = min(ready, key=lambda stream: (stream[1] - last[i] - 1) % LINK.vls)
                    last[i] = stream[1]
                    credits[stream] -= 1
                    ends = position[stream] == PACKET_FLITS - 1
                    flit = {"vl": stream[1], "head": position[stream] == 0, "tail": ends}
                    ctx.set(router.rx[i].payload, flit | {"data": STREAMS[stream] << 8})
                    position[stream] = 0 if ends else position[stream] + 1
            await ctx.tick()

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return {vl: sent[vl] / WINDOW_CYCLES for vl in range(LINK.vls)}


def configuration(vl_arbiter, allocator):
    return RouterConfig(
        link=LINK,
        ports=3,
        input_buffer_flits=BUFFER_FLITS,
        output_buffer_flits=BUFFER_FLITS,
        vl_arbiter=vl_arbiter,
        allocator=allocator,
        vl_table_entries=3,
    )


def check(traffic, vl_arbiter, allocator, tables, stalled, share):
    """Output 2 is always busy, and VL 2 has `share` of it."""
    found = rates(traffic, configuration(vl_arbiter, allocator), tables, stalled=stalled)
    assert found[1] + found[2] == pytest.approx(1.0, abs=0.005), found
    assert found[2] == pytest.approx(share, abs=0.015), found


@pytest.mark.parametrize(
    ("vl_arbiter", "tables", "stalled", "share"),
    [
        pytest.param("table_fast", FAST_ONE, False, 0.94, marks=pytest.mark.full),
        ("table_fast", REAL_TIME, True, 1.0),
        ("fixed_priority", None, True, 1.0),
    ],
)
def test_an_output_gives_what_a_vl_cannot_use_to_the_others(traffic, vl_arbiter, tables, stalled, share):
    check(traffic, vl_arbiter, "separable", tables, stalled, share)


@pytest.mark.full
@pytest.mark.parametrize("allocator", ["separable", "islip", "wavefront"])
@pytest.mark.parametrize(
    ("vl_arbiter", "tables", "stalled", "share"),
    [
        *((name, FAST_ONE, False, 0.94) for name in ("table_fast", "table_slow")),
        *((name, REAL_TIME, True, 1.0) for name in ("table_fast", "table_slow", "table_iba")),
        *((name, FOUR_TO_ONE, True, 0.8) for name in ("deficit", "table_fast", "table_slow")),
        ("table_iba", FOUR_UNITS_TO_ONE, True, 0.8),
        ("fixed_priority", None, True, 1.0),
        ("fixed_priority", None, False, 0.5),
        ("fcfs", None, False, 0.667),
        # By packet VL 1 can use its half: it goes while output 1 is idle, and VL 0 while VL 2 goes.
        ("fcfs_packet", None, True, 0.5),
    ],
)
def test_every_arbiter_and_allocator_gives_it(traffic, allocator, vl_arbiter, tables, stalled, share):
    check(traffic, vl_arbiter, allocator, tables, stalled, share)


@pytest.mark.full
def test_round_robin_keeps_it_busy_too(traffic):
    found = rates(traffic, configuration("round_robin", "separable"))
    # Without look-ahead no VL asks in the two cycles after a tail: if both end in turn, one cycle in 33 is nobody's.
    assert found[1] + found[2] == pytest.approx(32 / 33, abs=0.005), found
