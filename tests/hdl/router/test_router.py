"""The router against a plain expectation of the packets that must come out, where and when."""

import random
from itertools import pairwise

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig, preset
from lanikai.hdl.router.router import Router
from support.hdl.counting import Nearly

TINY = preset(RouterConfig, "tiny")


def ends_of(router):
    return list(zip(router.rx, router.tx, strict=True))


def chain(config, count):
    """`count` routers in a row, port 1 of one to port 0 of the next; the ends of the row."""
    m, routers = Module(), [Router(config) for _ in range(count)]
    m.submodules += routers
    for left, right in pairwise(routers):
        wiring.connect(m, left.tx[1], right.rx[0])
        wiring.connect(m, right.tx[0], left.rx[1])
    return m, [(routers[0].rx[0], routers[0].tx[0]), (routers[-1].rx[1], routers[-1].tx[1])]


@pytest.mark.parametrize("flits", [1, 10, 40])
@pytest.mark.parametrize(
    ("flit_bits", "delay", "routers", "ahead"),
    [
        (32, 0, 1, False),
        (64, 1, 1, True),
        (128, 0, 1, False),
        (32, 1, 2, True),
        (128, 1, 2, False),
        (64, 0, 2, False),
        (32, 0, 3, True),
    ],
)
def test_zero_load_latency_is_the_formula(traffic, flits, flit_bits, delay, routers, ahead):
    """((D + 1) * S - 1) + N cycles from the head on the first link to the tail on the last, S = 5 + delay."""
    link = LinkConfig(flit_bits=flit_bits, vls=2, delay_cycles=delay, hop_bits=2)
    config = RouterConfig(
        link=link, ports=2, input_buffer_flits=10, output_buffer_flits=3, header_lookahead=ahead
    )
    top, ends = chain(config, routers)
    packet = traffic.Packet(number=3, source=0, hops=[1] * routers, end=1, vl=1, flits=flits, start=2)
    seen = traffic.run_packets(top, ends, link, [packet], buffer_flits=10)
    head, tail = seen.seen[3]
    start = seen.sent[3][0]
    step = 5 + delay
    assert head - start == routers * step
    assert tail - start == (routers * step - 1) + flits


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    ahead=st.booleans(),
    seed=st.integers(0, 2**16),
    stall=st.sampled_from([0.0, 0.3, 0.8]),
    gap=st.sampled_from([0.0, 0.4]),
    depth=st.sampled_from([2, 3, 10]),
    delay=st.sampled_from([0, 2]),
    shapes=st.lists(st.integers(1, 7), min_size=10, max_size=24),
)
def test_delivers_every_packet_whole_and_in_order(traffic, ahead, seed, stall, gap, depth, delay, shapes):
    """Random traffic of all ports and VLs goes under random stalls, some of it to ports that do not exist. Then every
    output must hold exactly its credits."""
    link = TINY.link.replace(delay_cycles=delay)
    config = TINY.replace(link=link, input_buffer_flits=depth, header_lookahead=ahead)
    router = Router(config, credit_flits=[3] * config.ports)
    chance = random.Random(seed)
    packets = []
    for number, flits in enumerate(shapes):
        port = chance.randrange(config.ports + 1)
        packets.append(
            traffic.Packet(
                number=number,
                source=chance.randrange(config.ports),
                hops=[port if port < config.ports else 5],
                end=port if port < config.ports else None,
                vl=chance.randrange(link.vls),
                flits=flits,
            )
        )

    async def credits_are_home(ctx):
        assert ctx.get(router.dropped) == sum(packet.end is None for packet in packets)
        assert not ctx.get(router.activity)
        # With no credit coming back, each VL of each output must send as many flits as the receiver holds.
        sent = dict.fromkeys([(p, v) for p in range(config.ports) for v in range(link.vls)], 0)
        for i in range(link.vls * 12 + 20):
            for p in range(config.ports):
                vl, turn = i % link.vls, i // link.vls
                ctx.set(router.rx[p].valid, turn < 5)
                word = 1 << 16 | p << 8
                ctx.set(router.rx[p].payload, {"data": word, "vl": vl, "head": turn == 0, "tail": turn == 4})
                if ctx.get(router.tx[p].valid):
                    sent[p, ctx.get(router.tx[p].payload.vl)] += 1
            await ctx.tick()
        assert set(sent.values()) == {3}

    traffic.run_packets(
        router,
        ends_of(router),
        link,
        packets,
        buffer_flits=depth,
        sink_flits=3,
        stall=stall,
        gap=gap,
        seed=seed,
        after=credits_are_home,
    )


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("offset", range(9))
@pytest.mark.parametrize("flits", [1, 4])
def test_tail_and_next_header_meet_in_any_cycle(traffic, offset, flits, ahead):
    """The output VL is released and asked for again in the same cycle, or near it.

    The next request is from another input, from the same one, and with another VL in between. An early router lost the
    release when they met, and hung.
    """
    router = Router(TINY.replace(input_buffer_flits=10, header_lookahead=ahead))
    tail = 10 + flits - 1
    packets = [
        traffic.Packet(number=0, source=0, hops=[2], end=2, vl=1, flits=flits, start=10),
        traffic.Packet(number=1, source=1, hops=[2], end=2, vl=1, flits=3, start=tail - 4 + offset),
        traffic.Packet(number=2, source=0, hops=[2], end=2, vl=1, flits=2, start=tail + 1 + offset),
        traffic.Packet(number=3, source=2, hops=[2], end=2, vl=0, flits=2, start=tail + offset),
        # Everything must be as after reset for a packet that comes later.
        traffic.Packet(number=4, source=1, hops=[2], end=2, vl=1, flits=3, start=60),
    ]
    result = traffic.run_packets(router, ends_of(router), TINY.link, packets, buffer_flits=10)
    assert result.seen[4] == (65, 67)


def stream_rate(traffic, *, depth, delay, flits=60):
    """Flits a cycle of one long packet between two routers whose input buffers hold `depth` flits."""
    link = LinkConfig(flit_bits=32, vls=2, delay_cycles=delay, hop_bits=2)
    config = RouterConfig(link=link, ports=2, input_buffer_flits=depth, output_buffer_flits=2)
    top, ends = chain(config, 2)
    packet = traffic.Packet(number=0, source=0, hops=[1, 1], end=1, flits=flits)
    result = traffic.run_packets(top, ends, link, [packet], buffer_flits=depth, sink_flits=10 + 2 * delay)
    settled = result.busy[1][20:]
    # Flits come in groups of `depth`, so a whole number of groups is what has an exact rate.
    span = (len(settled) - 1) // depth * depth
    return span / (settled[span] - settled[0])


@pytest.mark.parametrize(
    ("depth", "delay", "rate"),
    [
        (2, 0, 1 / 2),
        (3, 0, 3 / 4),
        (4, 0, 1),
        (10, 0, 1),
        (6, 1, 1),
        (2, 1, 1 / 3),
        (10, 3, 1),
        (5, 3, 1 / 2),
    ],
)
def test_sustained_rate_of_one_lane(traffic, depth, delay, rate):
    """The rate is min(1, depth / (4 + 2 delay)), as the router's docstring says."""
    assert stream_rate(traffic, depth=depth, delay=delay) == pytest.approx(rate)


def test_default_buffers_have_no_gap(traffic):
    router = Router(RouterConfig(link=LinkConfig(flit_bits=32, hop_bits=2), ports=2, output_buffer_flits=2))
    packet = traffic.Packet(number=0, source=0, hops=[1], end=1, flits=50)
    result = traffic.run_packets(router, ends_of(router), router.config.link, [packet], buffer_flits=10)
    assert result.busy[1] == list(range(5, 55))


def test_link_keeps_its_rate(traffic):
    link = TINY.link.replace(rate_num=2, rate_den=3)
    router = Router(TINY.replace(link=link, input_buffer_flits=10))
    packets = [traffic.Packet(number=n, source=n, hops=[2], end=2, vl=n, flits=15) for n in range(2)]
    result = traffic.run_packets(router, ends_of(router), link, packets, buffer_flits=10)
    cycles = result.busy[2]
    assert cycles[-1] - cycles[0] == 29 * 3 // 2
    for i in range(len(cycles)):
        assert all((cycles[j] - cycles[i]) * 2 >= (j - i - 1) * 3 for j in range(i + 1, len(cycles)))


def test_lanes_share_a_link_flit_by_flit(traffic):
    """Two packets on two VLs leave one port side by side, at half the rate each."""
    router = Router(TINY.replace(input_buffer_flits=10, output_buffer_flits=4))
    packets = [traffic.Packet(number=n, source=n, hops=[2], end=2, vl=n, flits=20) for n in range(2)]
    result = traffic.run_packets(router, ends_of(router), TINY.link, packets, buffer_flits=10)
    assert len(result.busy[2]) == 40
    assert result.busy[2][-1] - result.busy[2][0] <= 41
    assert abs(result.seen[0][1] - result.seen[1][1]) <= 3


def test_blocked_lane_stops_no_other(traffic):
    """VL 0 of port 2 gets no credit back; VL 1 of the same inputs and of the same port flows."""
    router = Router(TINY)

    async def bench(ctx):
        seen = []
        for cycle in range(60):
            for vl, port in ((0, 0), (1, 1)):
                # 7 flits of VL 0 would need more than all buffers on its way: the sender stops at its
                # credits.
                count = 6 if vl == 0 else 8
                turn = cycle // 4
                go = cycle % 4 == 0 and turn < count
                ctx.set(router.rx[port].valid, go)
                word = 1 << 12 | 2 << 8
                ctx.set(
                    router.rx[port].payload,
                    {"data": word, "vl": vl, "head": turn == 0, "tail": vl == 1 and turn == 7},
                )
            back = bool(ctx.get(router.tx[2].valid)) and ctx.get(router.tx[2].payload.vl) == 1
            ctx.set(router.tx[2].credit_valid, back)
            ctx.set(router.tx[2].credit_vl, 1)
            if ctx.get(router.tx[2].valid):
                seen.append(ctx.get(router.tx[2].payload.vl))
            await ctx.tick()
        assert seen.count(0) == TINY.input_buffer_flits
        assert seen.count(1) == 8
        assert ctx.get(router.activity) == 0

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_unconnected_port_drops_the_packet(traffic):
    """The port exists but leads nowhere. The packet goes, is counted, and the next one passes."""
    router = Router(TINY)
    packets = [
        traffic.Packet(number=0, source=0, hops=[1], end=None, flits=9),
        traffic.Packet(number=1, source=0, hops=[2], end=2, flits=3),
    ]

    async def counted(ctx):
        assert ctx.get(router.dropped) == 1

    m = Module()
    m.submodules.router = router
    m.d.comb += router.connected.eq(0b101)
    traffic.run_packets(m, ends_of(router), TINY.link, packets, buffer_flits=2, after=counted)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("flits", [1, 2, 9])
def test_a_packet_behind_one_that_crosses_is_dropped_alone(traffic, flits, ahead):
    """Two packets to nowhere are between three to port 2, all on one VL.

    With look-ahead it is known that they are lost while the one ahead of them still crosses. That one must not be lost
    with them.
    """
    router = Router(TINY.replace(input_buffer_flits=10, header_lookahead=ahead))
    packets = [
        traffic.Packet(
            number=n, source=0, hops=[2 if n % 2 == 0 else 5], end=2 if n % 2 == 0 else None, flits=flits
        )
        for n in range(5)
    ]

    async def counted(ctx):
        assert ctx.get(router.dropped) == 2

    traffic.run_packets(
        router, ends_of(router), TINY.link, packets, buffer_flits=10, limit=200, after=counted
    )


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("flits", [1, 3])
def test_what_does_not_begin_with_a_head_is_dropped(traffic, flits, ahead):
    """Flits without a head come between two packets. They are gone, counted as one packet, and the next one passes."""
    router = Router(TINY.replace(input_buffer_flits=10, header_lookahead=ahead))

    async def bench(ctx):
        # (head, tail) of each flit on VL 0 of input 0, all to port 2 by their first word.
        packets = [(3, True), (flits, False), (2, True)]
        flit_ends = [(whole and n == 0, n == count - 1) for count, whole in packets for n in range(count)]
        came, dropped = [], Nearly(ctx, router.dropped)
        for cycle in range(40):
            head, tail = flit_ends[cycle] if cycle < len(flit_ends) else (0, 0)
            ctx.set(router.rx[0].valid, cycle < len(flit_ends))
            ctx.set(router.rx[0].payload, {"data": 2 << 8, "vl": 0, "head": head, "tail": tail})
            if ctx.get(router.tx[2].valid):
                came.append((ctx.get(router.tx[2].payload.head), ctx.get(router.tx[2].payload.tail)))
            await ctx.tick()
        assert came == [(1, 0), (0, 0), (0, 1), (1, 0), (0, 1)]
        assert ctx.get(router.dropped) == dropped(1)

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_wrong_parameters_are_one_line():
    with pytest.raises(ConfigError, match=r"^RouterConfig\.arbiter = 'coin': one of round_robin$"):
        Router(TINY.replace(arbiter="coin"))
    with pytest.raises(ConfigError, match=r"^Router: credit_flits has 2 depths: one for each of 3 ports$"):
        Router(TINY, credit_flits=[2, 2])
    with pytest.raises(ConfigError, match=r"^Router: credit_flits\[1\] = 1: at least 2$"):
        Router(TINY, credit_flits=[2, 1, 2])


@pytest.mark.parametrize("inputs", [1, 3])
@pytest.mark.parametrize(("flits", "gap"), [(2, 0), (3, 0), (5, 0), (1, 1)])
def test_look_ahead_leaves_no_gap_on_a_lane(traffic, inputs, flits, gap):
    """Packets of one VL leave back to back, from one input and from several. Those of one input and of a single flit
    each leave every other cycle. Without look-ahead there would be 2 cycles, or 1 from input to input."""
    router = Router(TINY.replace(input_buffer_flits=10, header_lookahead=True))
    packets = [
        traffic.Packet(number=n, source=n % inputs, hops=[2], end=2, vl=1, flits=flits) for n in range(12)
    ]
    cycles = traffic.run_packets(router, ends_of(router), TINY.link, packets, buffer_flits=10).busy[2]
    step = 1 if inputs > 1 else 1 + gap
    assert cycles == list(range(cycles[0], cycles[0] + 12 * flits * step, step))


def test_look_ahead_keeps_no_lane_from_others(traffic):
    """Behind a packet that cannot go on, the next one of its VL waits for another port. It must not be given the output
    VL there: another input's packet takes it and leaves at once. Else output VLs could wait for each other."""
    router = Router(TINY.replace(input_buffer_flits=10, header_lookahead=True), credit_flits=[2] * 3)

    async def bench(ctx):
        seen = []
        for cycle in range(60):
            # 10 flits to port 1, whose receiver gives no credit back: 4 leave the input. Then 2 flits to port 2.
            ctx.set(router.rx[0].valid, cycle < 12)
            port = 1 if cycle < 10 else 2
            ends = {"head": cycle in (0, 10), "tail": cycle in (9, 11)}
            ctx.set(router.rx[0].payload, {"data": port << 8, "vl": 1, **ends})
            ctx.set(router.rx[1].valid, cycle == 30)
            ctx.set(router.rx[1].payload, {"data": 2 << 8, "vl": 1, "head": 1, "tail": 1})
            if ctx.get(router.tx[2].valid):
                seen.append(cycle)
            await ctx.tick()
        assert seen == [35]

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("flits", [1, 2, 3, 5])
@pytest.mark.parametrize("inputs", [2, 3])
def test_inputs_take_turns_on_every_output_lane(traffic, flits, inputs):
    """Inputs with packets waiting on both VLs for one port are served in turn on each VL, by the packet.

    With one turn kept for both VLs, one input could have one VL for ever, and another the other one.
    """
    router = Router(TINY.replace(input_buffer_flits=10, output_buffer_flits=4))
    packets = [
        traffic.Packet(number=n, source=n % inputs, hops=[2], end=2, vl=n // inputs % 2, flits=flits)
        for n in range(16 * inputs)
    ]
    result = traffic.run_packets(router, ends_of(router), TINY.link, packets, buffer_flits=10)
    for vl in range(2):
        order = sorted((packet for packet in packets if packet.vl == vl), key=lambda p: result.seen[p.number])
        sources = [packet.source for packet in order]
        # Leave out the ends, where some input has nothing to send yet, or no more.
        for i in range(inputs, len(sources) - 2 * inputs):
            assert sorted(sources[i : i + inputs]) == list(range(inputs)), f"VL {vl}: {sources}"


@pytest.mark.parametrize(("arbiter", "busy_cycles"), [("table_slow", 8), ("deficit", 0), ("round_robin", 0)])
def test_it_is_not_quiet_while_tables_are_wiped(arbiter, busy_cycles):
    """After reset tables of 4 entries take 2 x 4 cycles: a simulator that stopped it would leave them half wiped."""
    config = TINY.replace(vl_arbiter=arbiter, vl_table_entries=4)
    router = Router(config, skippable=True)
    quiet = []

    async def watch(ctx):
        for _ in range(20):
            quiet.append(ctx.get(router.quiet))
            await ctx.tick()

    simulator = Simulator(router)
    simulator.add_clock(1e-6)
    simulator.add_testbench(watch)
    simulator.run()
    assert quiet == [0] * busy_cycles + [1] * (20 - busy_cycles)
