"""The pipelined router against a plain expectation of the packets that must come out, where and when."""

import random

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import Network, mesh, torus
from lanikai.hdl.router.pipelined import crossbar, picker
from lanikai.hdl.router.router import Router
from support.formal.harness import mutate

from .test_router import chain, ends_of


@pytest.mark.parametrize("flits", [1, 10, 40])
@pytest.mark.parametrize(
    ("flit_bits", "delay", "routers", "vls"), [(32, 0, 1, 1), (64, 1, 2, 2), (128, 0, 3, 4), (64, 0, 2, 16)]
)
def test_zero_load_latency_is_the_formula(traffic, flits, flit_bits, delay, routers, vls):
    """((D + 1) * S - 1) + N cycles from the head on the first link to the tail on the last, S = 5 + delay."""
    link = LinkConfig(flit_bits=flit_bits, vls=vls, delay_cycles=delay, hop_bits=2)
    depth = 9 + 2 * delay
    config = RouterConfig(link=link, ports=2, pipelined=True, input_buffer_flits=depth)
    top, ends = chain(config, routers)
    packet = traffic.Packet(
        number=3, source=0, hops=[1] * routers, end=1, vl=min(1, vls - 1), flits=flits, start=2
    )
    seen = traffic.run_packets(top, ends, link, [packet], buffer_flits=depth, sink_flits=depth)
    head, tail = seen.seen[3]
    start = seen.sent[3][0]
    step = 5 + delay
    assert head - start == routers * step
    assert tail - start == (routers * step - 1) + flits


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**16),
    stall=st.sampled_from([0.0, 0.3, 0.8]),
    gap=st.sampled_from([0.0, 0.4]),
    depths=st.sampled_from([(2, 4), (3, 5), (10, 10)]),
    wire=st.sampled_from([(0, 1, 1), (2, 1, 1), (0, 2, 3)]),
    vls=st.sampled_from([1, 2, 5, 16]),
    shapes=st.lists(st.integers(1, 7), min_size=10, max_size=24),
)
def test_delivers_every_packet_whole_and_in_order(traffic, seed, stall, gap, depths, wire, vls, shapes):
    """Random traffic of all ports and VLs goes under random stalls, some of it to ports that do not exist. Then every
    output must hold exactly its credits."""
    delay, num, den = wire
    link = LinkConfig(flit_bits=32, vls=vls, hop_bits=3, delay_cycles=delay, rate_num=num, rate_den=den)
    config = RouterConfig(link=link, ports=3, pipelined=True, input_buffer_flits=depths[0])
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
                vl=chance.randrange(min(vls, 15)),
                flits=flits,
            )
        )

    async def credits_are_home(ctx):
        assert ctx.get(router.dropped) == sum(packet.end is None for packet in packets)
        assert not ctx.get(router.activity)
        sent = dict.fromkeys([(p, v) for p in range(config.ports) for v in range(link.vls)], 0)
        for i in range(link.vls * 5 + 40 + 20 * den):
            for p in range(config.ports):
                vl, turn = i % link.vls, i // link.vls
                ctx.set(router.rx[p].valid, turn < 5)
                # Kind 3 (a probe) may go on VL 15.
                word = 1 << 16 | p << 8 | 3
                ctx.set(router.rx[p].payload, {"data": word, "vl": vl, "head": turn == 0, "tail": turn == 4})
                if ctx.get(router.tx[p].valid):
                    sent[p, ctx.get(router.tx[p].payload.vl)] += 1
            await ctx.tick()
        assert max(sent.values()) <= 3
        if num == den:
            assert set(sent.values()) == {3} if depths[0] >= 5 else min(sent.values()) >= 1

    traffic.run_packets(
        router,
        ends_of(router),
        link,
        packets,
        buffer_flits=depths[0],
        sink_flits=3,
        stall=stall,
        gap=gap,
        seed=seed,
        after=credits_are_home,
    )


def saturate(config, streams, *, cycles, warmup=200, flits=10, slow=None):
    """Flits that come out in `cycles` of each (input, VL) in `streams`, which has their output, if all of them always
    send. `slow`: an output that takes a flit in every third cycle. Also the longest pause of each, in cycles."""
    router = Router(config)
    sent, pause, last = dict.fromkeys(streams, 0), dict.fromkeys(streams, 0), {}
    vls, depth = config.link.vls, config.input_buffer_flits
    credits, at = dict.fromkeys(streams, depth), dict.fromkeys(streams, 0)
    turns = [[key for key in streams if key[0] == i] for i in range(config.ports)]
    owed = [[] for _ in range(config.ports)]

    async def bench(ctx):
        for cycle in range(warmup + cycles):
            for i in range(config.ports):
                ctx.set(router.rx[i].valid, 0)
                for turn in list(turns[i]):
                    if credits[turn]:
                        turns[i].remove(turn)
                        turns[i].append(turn)
                        vl, n = turn[1], at[turn]
                        word = 1 << 24 | i << 16 | streams[turn] << 8 if n == 0 else i << 16
                        ctx.set(router.rx[i].valid, 1)
                        ctx.set(
                            router.rx[i].payload,
                            {"data": word, "vl": vl, "head": n == 0, "tail": n == flits - 1},
                        )
                        at[turn] = (n + 1) % flits
                        credits[turn] -= 1
                        break
                if ctx.get(router.rx[i].credit_valid):
                    credits[i, ctx.get(router.rx[i].credit_vl)] += 1
                ctx.set(router.tx[i].credit_valid, 0)
                if owed[i] and (i != slow or cycle % 3 == 0):
                    ctx.set(router.tx[i].credit_valid, 1)
                    ctx.set(router.tx[i].credit_vl, owed[i].pop(0))
                if ctx.get(router.tx[i].valid):
                    flit = ctx.get(router.tx[i].payload)
                    owed[i].append(flit.vl)
                    # The source's number is in each flit, below the hop in a header (which has lost its own).
                    source = flit.data >> 16 - config.link.hop_bits * flit.head & 7
                    key = (source, flit.vl)
                    assert streams[key] == i
                    if cycle >= warmup:
                        sent[key] += 1
                        pause[key] = max(pause[key], cycle - last.get(key, warmup))
                        last[key] = cycle
            await ctx.tick()

    assert vls > max(vl for _, vl in streams)
    simulator = Simulator(router)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return sent, pause


def routers(ports, vls, **changes):
    link = LinkConfig(flit_bits=32, vls=vls, hop_bits=3)
    return RouterConfig(link=link, ports=ports, pipelined=True, **changes)


def test_a_link_carries_a_flit_a_cycle():
    """One VL alone, whose packets follow each other with the gap of 3 cycles; four VLs without."""
    sent, _ = saturate(routers(2, 2), {(0, 0): 1}, cycles=430, flits=40)
    assert sent[0, 0] == pytest.approx(430 * 40 / 43, abs=2)
    sent, _ = saturate(routers(2, 4), {(0, vl): 1 for vl in range(4)}, cycles=420, flits=40)
    assert sum(sent.values()) == 420


@pytest.mark.parametrize(("vls", "flits"), [(2, 40), (4, 10)])
def test_shares_of_an_output_are_equal(vls, flits):
    """All inputs and VLs want output 2: each VL of each input has the same share, within 1%, and no cycle is lost."""
    streams = {(i, v): 2 for i in range(3) for v in range(vls)}
    sent, pause = saturate(routers(3, vls), streams, cycles=2400, flits=flits)
    assert sum(sent.values()) == 2400
    for share in sent.values():
        assert share == pytest.approx(800 / vls, rel=0.01)
    # An output VL is a packet's from head to tail: of three inputs one waits for two packets of the others.
    assert max(pause.values()) < 3 * vls * flits


def test_an_output_vl_is_free_for_three_cycles_between_two_inputs():
    """One VL, packets of 10 flits of three inputs in turn: 10 of 13 cycles are used."""
    sent, _ = saturate(routers(3, 1), {(i, 0): 2 for i in range(3)}, cycles=1300)
    assert sum(sent.values()) == pytest.approx(1000, abs=10)


def test_nobody_is_starved_where_every_vl_wants_another_output():
    """Every input has a VL for every output. All outputs are nearly always used, and nobody waits long."""
    streams = {(i, v): (i + v) % 4 for i in range(4) for v in range(4)}
    sent, pause = saturate(routers(4, 4), streams, cycles=1500, flits=40)
    assert sum(sent.values()) >= 0.99 * 4 * 1500
    for share in sent.values():
        assert share == pytest.approx(sum(sent.values()) / 16, rel=0.01)
    assert max(pause.values()) < 100


CONTESTED = [
    # (inputs and VLs: output), and how many want output 1. Input 0 could always send to another output instead.
    ({(0, 0): 1, (0, 1): 2, (1, 2): 1, (2, 3): 1}, 3),
    ({(0, 0): 1, (0, 1): 2, (0, 2): 3, (1, 1): 1, (2, 2): 1, (3, 3): 1, (1, 0): 0}, 4),
]


def shares_of_contested_output(streams, rivals):
    """Flits of each VL that wants output 1, as parts of an equal share of all that it could send."""
    sent, _ = saturate(routers(4, 4), streams, cycles=2400, flits=40)
    return [count * rivals / 2400 for key, count in sent.items() if streams[key] == 1]


@pytest.mark.parametrize(("streams", "rivals"), CONTESTED)
def test_an_input_with_another_output_to_go_to_has_its_share_of_a_contested_one(streams, rivals):
    """Inputs avoid an output that is in a burst. A second burst elsewhere is cut short when it ends."""
    shares = shares_of_contested_output(streams, rivals)
    assert min(shares) >= 0.99 and max(shares) <= 1.01


def test_without_bursts_that_are_cut_short_it_would_have_less(monkeypatch):
    mutant = mutate(picker.InputPicker, "~((second & ~next_served) | next_control)", "~next_control")
    monkeypatch.setattr(crossbar, "InputPicker", mutant)
    assert min(shares_of_contested_output(*CONTESTED[0])) < 0.9


def test_a_vl_whose_output_has_no_room_holds_up_no_other():
    """Output 1 takes a flit in every third cycle; output 2 stays at a flit a cycle."""
    streams = {(0, 0): 1, (0, 1): 2, (1, 0): 1, (1, 2): 2}
    sent, _ = saturate(routers(3, 3), streams, cycles=1200, flits=40, slow=1)
    assert sent[0, 1] + sent[1, 2] >= 0.95 * 1200
    assert sent[0, 0] + sent[1, 0] >= 0.95 * 400


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allocator": "wavefront"}, "allocator = 'wavefront': must be 'separable'"),
        ({"vl_arbiter": "fcfs"}, "vl_arbiter = 'fcfs': must be 'round_robin'"),
        ({"vl_selection": "any"}, "vl_selection = 'any': must be 'same'"),
        ({"header_lookahead": True}, "header_lookahead = True: must be False"),
        ({"activity_counters": True}, "activity_counters = True: must be False"),
        ({"status_outputs": True}, "status_outputs = True: must be False"),
        ({"power_budget": 100}, "power_budget = 100: must be 0"),
        ({"link": LinkConfig(restart=True)}, "link.restart = True: must be False"),
        ({"management": True, "link": LinkConfig(vls=16)}, "management = True: must be False"),
        ({"routing": "table"}, "routing = 'table': must be auto, source or dimension_order"),
        ({"routing": "torus"}, "routing = 'torus': must be auto, source or dimension_order"),
        (
            {"output_buffer_flits": 10},
            "output_buffer_flits = 10: leave it out, as a pipelined router has no output buffers",
        ),
    ],
)
def test_what_it_does_not_have_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        RouterConfig(pipelined=True, **changes)
    assert str(error.value) == f"RouterConfig: pipelined = True: {message}"


def test_output_buffers_are_left_behind_and_not_taken_up():
    plain = RouterConfig(ports=3, output_buffer_flits=4)
    config = plain.replace(pipelined=True)
    assert config == RouterConfig(ports=3, pipelined=True) == config.replace(pipelined=True)
    # Written down and read again, as a simulation's own process does.
    written = config.model_dump(mode="json")
    assert RouterConfig(**written) == config and "output_buffer_flits" not in written
    assert RouterConfig(**plain.model_dump(mode="json")) == plain
    network = mesh(2, 2, router=RouterConfig(ports=5, pipelined=True))
    assert Network(**network.model_dump(mode="json")) == network
    for change in ({"output_buffer_flits": 4}, {"pipelined": True, "output_buffer_flits": 4}):
        with pytest.raises(ConfigError, match="output_buffer_flits = 4: leave it out"):
            (config if len(change) == 1 else plain).replace(**change)


def test_a_torus_is_refused_where_packets_must_change_their_vl():
    router = RouterConfig(ports=5, pipelined=True)
    assert torus(3, 3, router=router).router.routing == "source"
    for sides in ((4, 1), (2, 5)):
        with pytest.raises(ConfigError) as error:
            torus(*sides, router=router)
        assert str(error.value) == (
            "Network: pipelined = True: in a torus with a ring of more than 3 routers packets must change their VL, "
            "and in a pipelined router they keep it: take a mesh, or pipelined = False"
        )
