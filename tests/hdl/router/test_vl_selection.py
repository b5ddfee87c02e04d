"""Output VLs by service level and by class."""

import random
from collections import Counter

import pytest
from amaranth.sim import Simulator
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.packet import Kind
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.vl_selection import VlSelectionStage

LINK = LinkConfig(flit_bits=32, vls=4, hop_bits=2)
BASE = RouterConfig(link=LINK, ports=3, input_buffer_flits=6, output_buffer_flits=2)
BY_LEVEL = BASE.replace(vl_selection="service_level", service_level_map=(3, 1, 0, 2) * 4)
ANY = BASE.replace(vl_selection="any", vl_classes=(0, 1, 1, 0), service_level_map=(1,) + (0,) * 15)

PHASES = (Phase.explicit, Phase.generate)
"""A case takes seconds, so that shrinking it would take minutes."""


def ends_of(router):
    return list(zip(router.rx, router.tx, strict=True))


def test_the_control_vl_is_first_of_those_that_wait():
    """VL 3 waits as long. The VL that is not taken comes in the cycle after."""
    link = LinkConfig(flit_bits=32, vls=16, hop_bits=2)
    dut = VlSelectionStage(BASE.replace(link=link, vl_selection="service_level"))
    taken = []

    async def bench(ctx):
        ctx.set(dut.found_port[0], 0b010)
        for vl in (3, 15):
            ctx.set(dut.found[0], 1 << vl)
            await ctx.tick()
        ctx.set(dut.found[0], 0)
        for _ in range(3):
            ctx.set(dut.want[0][1], 0x8008 & ~sum(taken))
            await ctx.delay(1e-8)
            taken.append(ctx.get(dut.taken[0]))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert taken == [0x8000, 0x0008, 0]


@pytest.mark.parametrize("config", [BY_LEVEL, ANY], ids=["service_level", "any"])
@pytest.mark.parametrize("flits", [1, 12])
def test_zero_load_latency_is_the_formula(traffic, config, flits):
    router = Router(config)
    packet = traffic.Packet(
        number=0, source=0, hops=[2], end=2, vl=2, flits=flits, service_level=1, start=3, out_vls=(0, 1, 3)
    )
    result = traffic.run_packets(router, ends_of(router), LINK, [packet], buffer_flits=6)
    head, tail = result.seen[0]
    assert (head - result.sent[0][0], tail - head) == (5, flits - 1)


@settings(max_examples=5, deadline=None, derandomize=True, phases=PHASES)
@given(
    config=st.sampled_from([BY_LEVEL, ANY]),
    seed=st.integers(0, 2**16),
    stall=st.sampled_from([0.0, 0.3, 0.8]),
    depth=st.sampled_from([2, 6]),
)
def test_every_packet_comes_whole_on_a_vl_of_its_group(traffic, config, seed, stall, depth):
    """Packets and stalls are random. The checks are those of `run_packets`, and the VL that the map or class allows."""
    chance = random.Random(seed)
    packets = []
    for number in range(30):
        level, port = chance.randrange(16), chance.randrange(3)
        group = config.vl_groups[config.initial_service_level_map[level]]
        packets.append(
            traffic.Packet(
                number=number,
                source=chance.randrange(3),
                hops=[port],
                end=port,
                vl=chance.randrange(4),
                flits=chance.randint(1, 7),
                service_level=level,
                out_vls=group,
            )
        )
    router = Router(config.replace(input_buffer_flits=depth), credit_flits=[3] * 3)
    traffic.run_packets(
        router, ends_of(router), LINK, packets, buffer_flits=depth, sink_flits=3, stall=stall, seed=seed
    )


def test_any_uses_every_vl_of_the_class_and_no_other(traffic):
    """Six inputs' VLs want one port: their packets go side by side on both VLs of the class."""
    router = Router(ANY)
    packets = [
        traffic.Packet(
            number=n, source=n % 2, hops=[2], end=2, vl=n // 2, flits=20, service_level=0, out_vls=(1, 2)
        )
        for n in range(6)
    ]
    with pytest.raises(AssertionError):
        # Level 0 is class 1 (VLs 1 and 2): that it never leaves it is seen by asking for less.
        traffic.run_packets(
            router,
            ends_of(router),
            LINK,
            [traffic.Packet(**vars(p) | {"out_vls": (1,)}) for p in packets],
            buffer_flits=6,
        )
    router = Router(ANY)
    result = traffic.run_packets(router, ends_of(router), LINK, packets, buffer_flits=6)
    assert Counter(result.vl.values()) == {1: 3, 2: 3}


def test_the_map_is_written_at_run_time(traffic):
    """Level 5 goes to VL 1 by the map. Then the agent sends it to VL 2, and then to a VL that does not exist. There the
    packet is dropped and stops nobody."""
    for group, vl in ((None, 1), (2, 2), (9, None)):
        router = Router(BY_LEVEL)
        packets = [
            traffic.Packet(
                number=0,
                source=0,
                hops=[1],
                end=None if vl is None else 1,
                vl=0,
                flits=3,
                service_level=5,
                out_vls=(vl,),
            ),
            traffic.Packet(number=1, source=0, hops=[1], end=1, vl=0, flits=3, service_level=3, out_vls=(2,)),
        ]

        async def write(ctx, router=router, group=group):
            assert await traffic.register(ctx, router, "LEVEL_GROUP") == {"group": 3}
            if group is not None:
                await traffic.register(ctx, router, "LEVEL_SELECT", service_level=5)
                await traffic.register(ctx, router, "LEVEL_GROUP", group=group)
                assert await traffic.register(ctx, router, "LEVEL_GROUP") == {"group": group}

        async def count(ctx, router=router, vl=vl):
            assert ctx.get(router.dropped) == (vl is None)

        traffic.run_packets(router, ends_of(router), LINK, packets, buffer_flits=6, before=write, after=count)


@pytest.mark.parametrize("selection", ["same", "service_level", "any"])
def test_control_vl_is_for_control_packets_and_comes_first(traffic, selection):
    """With 16 VLs data on VL 15 is dropped. A probe overtakes the packets that wait on other VLs at every place, and
    keeps its VL whatever the map says."""
    link = LinkConfig(flit_bits=32, vls=16, hop_bits=2)
    config = RouterConfig(
        link=link, ports=3, input_buffer_flits=6, output_buffer_flits=4, vl_selection=selection
    )
    router = Router(config)
    everywhere = None if selection == "same" else tuple(range(15))
    packets = [
        traffic.Packet(number=0, source=0, hops=[2], end=None, vl=15, flits=4, kind=Kind.DATA),
        *(
            traffic.Packet(
                number=n, source=n % 2, hops=[2], end=2, vl=n, flits=12, kind=Kind.DATA, out_vls=everywhere
            )
            for n in range(1, 7)
        ),
        traffic.Packet(number=7, source=0, hops=[2], end=2, vl=15, flits=4, kind=Kind.PROBE, start=30),
    ]

    async def count(ctx):
        assert ctx.get(router.dropped) == 1

    result = traffic.run_packets(router, ends_of(router), link, packets, buffer_flits=6, after=count)
    # The sender interleaves its VLs at random, so the packet may spread at its source; in the router nothing
    # makes it wait.
    head, tail = result.seen[7]
    assert head - result.sent[7][0] == 5
    assert tail - result.sent[7][1] in (3, 4, 5)  # a body flit overtakes the two stages of the header


@settings(max_examples=6, deadline=None, derandomize=True, phases=PHASES)
@given(seed=st.integers(0, 2**16), config=st.sampled_from([BY_LEVEL, ANY]))
def test_owners_are_never_two_and_nobody_waits_for_ever(seed, config):
    """The stage is alone, against a model of who owns what. An output VL has one owner, of the right group.

    A packet waits for at most (vls - 1) favourites and (P - 1) packets of other inputs each, by the count of grants on
    its group.
    """
    dut = VlSelectionStage(config)
    ports, vls = range(config.ports), range(LINK.vls)
    chance = random.Random(seed)

    async def bench(ctx):
        waiting, owned, passed = {}, {}, {}
        for _ in range(250):
            for i in ports:
                for p in ports:
                    ctx.set(dut.want[i][p], sum(1 << v for v in vls if waiting.get((i, v), (None,))[0] == p))
            done = {key for key in owned if chance.random() < 0.3}
            for i in ports:
                ctx.set(dut.done[i], 0)
                ctx.set(dut.select[i], 0)
            # A tail a cycle and input.
            done = {(i, v) for i, v in done if v == min(w for j, w in done if j == i)}
            for i, v in done:
                ctx.set(dut.done[i], 1 << v)
                ctx.set(dut.select[i], 1 << v)
            fresh = {}
            for i in ports:
                idle = [v for v in vls if (i, v) not in waiting and (i, v) not in owned]
                ctx.set(dut.found[i], 0)
                if idle and chance.random() < 0.8:
                    v, p = chance.choice(idle), chance.choice(ports[:2])
                    group = chance.randrange(len(config.vl_groups))
                    ctx.set(dut.found[i], 1 << v)
                    ctx.set(dut.found_port[i], 1 << p)
                    ctx.set(dut.found_group[i], group)
                    fresh[i, v] = (p, group)
            for i, v in done:
                assert ctx.get(dut.out_vl[i]) == owned[i, v][1]
            taken = {(i, v) for i in ports for v in vls if ctx.get(dut.taken[i]) >> v & 1}
            assert taken <= waiting.keys()
            served = {waiting[key]: key for key in taken}
            assert len(served) == len(taken), "one of a group and cycle"
            for key, target in waiting.items():
                if target in served and key not in taken:
                    passed[key] = passed.get(key, 0) + 1
                    assert passed[key] <= len(vls) * (len(ports) - 1) + len(vls)
            await ctx.tick()
            for key in done:
                del owned[key]
            for i, v in taken:
                p, group = waiting.pop((i, v))
                passed.pop((i, v), None)
                assert ctx.get(dut.holds[i][p]) >> v & 1
                ctx.set(dut.found[i], 0)
                ctx.set(dut.done[i], 0)
                ctx.set(dut.select[i], 1 << v)
                mine = ctx.get(dut.out_vl[i])
                assert mine in config.vl_groups[group]
                assert (p, mine) not in owned.values(), "two owners"
                owned[i, v] = (p, mine)
            waiting |= fresh

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vl_classes": (0, 0)}, "RouterConfig: vl_classes has 2 entries: one for each of the 4 data VLs"),
        ({"vl_classes": (0, 2, 2, 0)}, "RouterConfig: vl_classes: class 1 has no VL"),
        ({"vl_classes": (0, 1, 1, 9)}, "RouterConfig: vl_classes[3] = 9: 0 to 3"),
        (
            {"service_level_map": (0,) * 3},
            "RouterConfig: service_level_map has 3 entries: one for each of 16",
        ),
        (
            {"vl_selection": "any", "vl_classes": (0, 1, 1, 0), "service_level_map": (0,) * 15 + (2,)},
            "RouterConfig: service_level_map[15] = 2: class 2 has no VL",
        ),
        (
            {"vl_selection": "service_level", "service_level_map": (0, 4) * 8},
            "RouterConfig: service_level_map[1] = 4: a data VL, 0 to 3",
        ),
        (
            {"link": LINK.replace(vls=16), "vl_selection": "service_level", "service_level_map": (15,) * 16},
            "RouterConfig: service_level_map[0] = 15: VL 15 carries control packets alone",
        ),
        (
            {"vl_selection": "any", "header_lookahead": True},
            "RouterConfig: header_lookahead = True: vl_selection = 'any': only with 'same', where the output VL of a "
            "packet is known before one is free",
        ),
        (
            {"management": True},
            "RouterConfig: management = True: link.vls = 4: must be 16, since control packets have VL 15",
        ),
    ],
)
def test_bad_maps_are_refused_by_name(changes, message):
    with pytest.raises(ConfigError) as error:
        BASE.replace(**changes)
    assert str(error.value) == message
