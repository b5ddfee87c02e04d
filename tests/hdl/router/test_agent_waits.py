"""The agent's accesses are answered within a bound, whatever the traffic does."""

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.agent import ROUTER_REGISTERS
from lanikai.hdl.router.router import Router
from lanikai.hdl.vl_arbiter.base import TableSignature

CONFIG = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=3, hop_bits=2),
    ports=3,
    input_buffer_flits=10,
    output_buffer_flits=10,
    vl_table_entries=1,
)
STREAMS = {(0, 0): 1, (0, 1): 2, (1, 2): 2}
"""Streams, (input, VL): output. VL 0, in the high table, fills its input, and VL 1 behind it holds the turn at output
2."""
PACKET_FLITS = 16
REWRITES = 3


def longest_access(config, bound):
    """The most cycles that an access waits when each stream always has more to send, and the flits of the streams.

    Output 1 has stood still for 200 cycles so that VL 0 fills it. The tables of output 2 and of input 0 are rewritten
    meanwhile. An access that takes longer than `bound` cycles fails.
    """
    router = Router(config)
    waits, sent = [], {stream: 0 for stream in STREAMS}

    async def bench(ctx):
        credits, place = {stream: 10 for stream in STREAMS}, {stream: 0 for stream in STREAMS}
        owed = {port: [] for port in range(3)}
        cycle, order = 0, list(STREAMS)

        async def tick():
            nonlocal cycle
            for port in range(2):
                rx = router.rx[port]
                # In turn, one flit a cycle and link.
                ready = [s for s in order if s[0] == port and credits[s]]
                ctx.set(rx.valid, bool(ready))
                if ready:
                    stream = ready[0]
                    order.remove(stream)
                    order.append(stream)
                    head, tail = place[stream] == 0, place[stream] == PACKET_FLITS - 1
                    word = STREAMS[stream] << 8 if head else 0
                    ctx.set(rx.payload, {"data": word, "vl": stream[1], "head": head, "tail": tail})
                    credits[stream] -= 1
                    place[stream] = (place[stream] + 1) % PACKET_FLITS
                if ctx.get(rx.credit_valid):
                    stream = (port, ctx.get(rx.credit_vl))
                    credits[stream] += 1
                    sent[stream] += 1
            for port in range(3):
                tx = router.tx[port]
                if ctx.get(tx.valid):
                    owed[port].append(ctx.get(tx.payload.vl))
                back = bool(owed[port]) and not (port == 1 and 100 <= cycle < 300)
                ctx.set(tx.credit_valid, back)
                if back:
                    ctx.set(tx.credit_vl, owed[port].pop(0))
            cycle += 1
            await ctx.tick()

        async def write(name, **fields):
            register = ROUTER_REGISTERS[name]
            request = {"valid": 1, "write": 1, "address": register.offset, "data": register.pack(**fields)}
            ctx.set(router.agent.request, request)
            waited = 0
            while not ctx.get(router.agent.response.ready):
                assert waited <= bound, f"{name}: not answered after {waited} cycles"
                waited += 1
                await tick()
            await tick()
            ctx.set(router.agent.request.valid, 0)
            waits.append(waited)

        async def tables(weight, **where):
            await write("SELECT", **where)
            await write("VL_TABLE_ENTRY", high=1, entry=0, vl=0, weight=1)
            await write("VL_TABLE_ENTRY", high=0, entry=0, vl=1, weight=weight)
            await write("VL_TABLE_COMMIT", limit=255)

        await tables(200, everywhere=1)
        while cycle < 400:
            await tick()
        for weight in range(1, REWRITES + 1):
            await tables(255 - weight, port=2)
            await tables(255 - weight, port=0, crossbar=1)
        await write("VL_TABLE_COMMIT", limit=255)
        # An arbiter that takes tables at once has answered all by now: look at the traffic for as long as with others.
        while cycle < 900:
            await tick()

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return max(waits), sent


@pytest.mark.parametrize(
    ("allocator", "vl_arbiter"),
    [
        ("separable", "table_slow"),
        *(
            pytest.param(allocator, arbiter, marks=pytest.mark.full)
            for allocator in ("separable", "islip", "wavefront")
            for arbiter in ("table_fast", "table_slow", "table_iba", "deficit")
            if (allocator, arbiter) != ("separable", "table_slow")
        ),
    ],
)
def test_accesses_are_answered_under_saturation(allocator, vl_arbiter):
    """Tables of a saturated router are rewritten again and again, each access within the bound that is stated."""
    bound = TableSignature.wait_bound(vls=3, entries=1)
    assert bound == 2 + 1 + 8 + 256
    longest, sent = longest_access(CONFIG.replace(allocator=allocator, vl_arbiter=vl_arbiter), bound)
    assert longest <= bound
    # The traffic was there: input 0 was busy all the time.
    assert sent[0, 0] + sent[0, 1] > 800
