"""The choice among a packet's options: when it is made, by what, and what is written into headers at the source."""

import os
import random
from types import SimpleNamespace

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.router.adaptive.port_loads import PortLoads
from lanikai.hdl.router.adaptive.random import add_random, next_state
from lanikai.hdl.router.adaptive.targets import MOST_LOSSES, Targets
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.routing import ROUTING, needs_loads

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
LINK = LinkConfig(flit_bits=32, vls=2, hop_bits=3)
CONFIG = RouterConfig(
    link=LINK,
    ports=5,
    vl_selection="routing",
    routing="west_first",
    input_buffer_flits=6,
    output_buffer_flits=4,
)
MIDDLE = {"x": 1, "y": 1, "last_x": 3, "last_y": 3}


def simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def run(traffic, config, packets):
    """Packets through a router in the middle of a mesh."""
    router = Router(config)

    async def place(ctx):
        ctx.set(router.position, MIDDLE)

    bits = ROUTING[config.routing].route_bits(config)
    ends = list(zip(router.rx, router.tx, strict=True))
    return traffic.run_packets(
        router, ends, config.link, packets, buffer_flits=6, sink_flits=20, before=place, target_bits=bits
    )


def packet(traffic, number, source, to, end, flits=6, **more):
    return traffic.Packet(
        number=number, source=source, hops=[], target=to[0] | to[1] << 5, end=end, flits=flits, **more
    )


@pytest.mark.parametrize(("routing", "vl"), [("west_first", 0), ("odd_even", 0), ("duato", 1)])
def test_a_header_takes_five_cycles(traffic, routing, vl):
    """Both ports are free and as much loaded: the lower one is taken."""
    one = packet(traffic, 0, 0, (3, 3), 1, start=5, out_vls=(vl,))
    result = run(traffic, CONFIG.replace(routing=routing), [one])
    assert (result.seen[0][0] - result.sent[0][0], result.seen[0][1] - result.seen[0][0]) == (5, 5)


@pytest.mark.parametrize(("routing", "vl"), [("west_first", 0), ("odd_even", 0), ("duato", 1)])
def test_a_packet_goes_the_other_way_where_one_is_taken(traffic, routing, vl):
    """The first packet holds the VL of the port along x for 60 cycles. It comes from x - 1, along its own row."""
    packets = [
        packet(traffic, 0, 2, (3, 1), 1, flits=60, out_vls=(vl,)),
        packet(traffic, 1, 0, (3, 3), 3, start=20, out_vls=(vl,)),
    ]
    result = run(traffic, CONFIG.replace(routing=routing), packets)
    assert result.seen[1][0] - result.sent[1][0] == 5
    assert result.seen[1][1] < result.seen[0][1]


def test_the_escape_serves_where_all_options_are_taken(traffic):
    """Two packets hold the adaptive VLs of both ports. The third goes on the lower VL along x, as early."""
    packets = [
        packet(traffic, 0, 2, (3, 1), 1, flits=80, out_vls=(1,)),
        packet(traffic, 1, 4, (1, 3), 3, flits=80, out_vls=(1,)),
        packet(traffic, 2, 0, (3, 3), 1, start=25, out_vls=(0,)),
    ]
    result = run(traffic, CONFIG.replace(routing="duato"), packets)
    assert result.seen[2][1] < min(result.seen[0][1], result.seen[1][1])


def test_a_favourite_that_is_outrun_keeps_to_its_escape():
    """It comes for the free option until it has not won `MOST_LOSSES` times; a win begins the count anew."""
    dut = Targets(CONFIG, group_bits=1, groups=2)

    async def bench(ctx):
        ctx.set(dut.escape[0], 0 | 3 << 1)
        ctx.set(dut.found, 1)
        ctx.set(dut.found_options, 0b01010)
        ctx.set(dut.before[1], 0b01000)
        await ctx.tick()
        ctx.set(dut.found, 0)
        for port in (1, 3):
            ctx.set(dut.free[port], 1)
        for name in ("favourite", "waits", "comes"):
            ctx.set(getattr(dut, name), 1)
        for _ in range(2):
            for _ in range(MOST_LOSSES):
                await ctx.delay(1e-9)
                assert ctx.get(dut.target[0]) == 1 << 1
                await ctx.tick()
            await ctx.delay(1e-9)
            assert ctx.get(dut.target[0]) == 3 << 1
            ctx.set(dut.wins, 1)
            await ctx.tick()
            ctx.set(dut.wins, 0)
        ctx.set(dut.free[1], 0)
        await ctx.delay(1e-9)
        assert ctx.get(dut.target[0]) == 3 << 1

    simulate(dut, bench)


def test_loads_count_flits_whose_credit_is_not_back():
    """Random flits and credits, held against plain numbers; the order of ports follows a cycle later."""
    dut = PortLoads(CONFIG.replace(input_buffer_flits=200, output_buffer_flits=4), credit_flits=[200] * 5)
    chance = random.Random(SEED)
    print(f"seed {SEED}")

    async def bench(ctx):
        counts, before = [0] * 5, [0] * 5
        for _ in range(1200):
            written = chance.getrandbits(5) & (chance.getrandbits(5) | 0b00111)
            returned = sum(1 << p for p in range(5) if counts[p] and chance.random() < 0.2)
            ctx.set(dut.written, written & sum(1 << p for p in range(5) if counts[p] < 408))
            ctx.set(dut.returned, returned)
            await ctx.delay(1e-9)
            assert [ctx.get(load) for load in dut.loads] == [min(255, count) for count in counts]
            order = sorted(range(5), key=lambda p: (min(255, before[p]), p))
            for i, p in enumerate(order):
                assert all(ctx.get(dut.before[p]) >> q & 1 for q in order[i + 1 :])
            before = list(counts)
            went = ctx.get(dut.written)
            counts = [c + (went >> p & 1) - (returned >> p & 1) for p, c in enumerate(counts)]
            await ctx.tick()
        assert max(counts) > 255

    simulate(dut, bench)


def test_credits_tell_when_all_are_home():
    """Random use of three VLs, held against plain numbers."""
    dut = Credits(vls=3, depth=4, tells_home=True)
    chance = random.Random(SEED)
    print(f"seed {SEED}")

    async def bench(ctx):
        out = [0, 0, 0]
        for _ in range(2000):
            spend, refund = chance.randrange(3), chance.randrange(3)
            spends, refunds = (
                out[spend] < 4 and chance.random() < 0.5,
                out[refund] > 0 and chance.random() < 0.6,
            )
            for name, value in {
                "spend": spends,
                "spend_vl": spend,
                "refund": refunds,
                "refund_vl": refund,
            }.items():
                ctx.set(getattr(dut, name), value)
            assert ctx.get(dut.home) == sum(1 << vl for vl in range(3) if not out[vl])
            await ctx.tick()
            out[spend] += spends
            out[refund] -= refunds

    simulate(dut, bench)


def test_routers_that_are_one_block_have_random_numbers_of_their_own():
    """The generator follows its model, from another start at each position and for each seed."""
    starts = set()
    for position, seed in ((0, 1), (33, 1), (33, 2)):
        m, take = Module(), Signal()
        ends = SimpleNamespace(position=Signal(20, init=position), random=Signal(24))
        add_random(m, take, ends, seed)
        seen = []

        async def bench(ctx, take=take, ends=ends, seen=seen):
            for i in range(6):
                ctx.set(take, i % 2)
                await ctx.delay(1e-9)
                seen.append(ctx.get(ends.random))
                await ctx.tick()

        simulate(m, bench)
        state, wanted = position | seed << 20, []
        for i in range(6):
            wanted.append(next_state(state) >> 8)
            state = next_state(state) if i % 2 else state
        assert seen == wanted
        starts.add(seen[0])
    assert len(starts) == 3


def test_a_header_is_told_its_way_at_the_source_alone(traffic):
    """A packet that enters goes where its random number says, with that in its route."""
    config = CONFIG.replace(routing="valiant")
    assert not needs_loads(config) and needs_loads(CONFIG.replace(routing="ugal"))
    router = Router(config)
    position = MIDDLE["x"] | MIDDLE["y"] << 5 | 3 << 10 | 3 << 15
    number = next_state(position | 1 << 20) >> 8
    via = (number % 4096) * 4 >> 12, (number >> 12) * 4 >> 12
    assert via != (1, 1)
    heads = []

    async def bench(ctx):
        ctx.set(router.position, MIDDLE)
        ctx.set(
            router.rx[0].payload,
            {"data": (2 | 3 << 5 | 0x2A << 20) << 8 | 0x70, "vl": 1, "head": 1, "tail": 1},
        )
        ctx.set(router.rx[0].valid, 1)
        await ctx.tick()
        ctx.set(router.rx[0].valid, 0)
        for _ in range(8):
            await ctx.tick()
            for port, tx in enumerate(router.tx):
                if ctx.get(tx.valid):
                    heads.append((port, ctx.get(tx.payload.vl), ctx.get(tx.payload.data)))

    simulate(router, bench)
    port = (1 if via[0] > 1 else 2) if via[0] != 1 else 3 if via[1] > 1 else 4
    route = 2 | 3 << 5 | (via[0] | via[1] << 5) << 10
    # The header's third byte and more is the route: 20 bits of it were written, the others stand.
    assert heads == [(port, 0, ((0x2A << 20 | route) & 0xFFFFFF) << 8 | 0x70)]
