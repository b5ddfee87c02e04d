# amaranth: UnusedElaboratable=no
"""The parts of a port with registers: counts of each VL against numbers, and choices that stand."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.link_port.packet_interface import PacketInterface
from lanikai.hdl.nic.link_port.registered_port import RegisteredVlPort, make_port
from lanikai.hdl.nic.link_port.standing_choice import StandingChoice
from lanikai.hdl.nic.link_port.vl_counters import VlCounters
from lanikai.hdl.nic.link_port.vl_port import VlPort


def run(dut, bench):
    async def wrapped(ctx):
        await bench(ctx)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(wrapped)
    simulator.run()


@pytest.mark.parametrize(
    ("vls", "most", "filled", "full"),
    [(1, 1, False, None), (3, 2, True, None), (4, 5, False, 4), (16, 10, True, None)],
)
def test_counts_are_those_of_numbers(vls, most, filled, full):
    rng = random.Random(vls)
    dut = VlCounters(vls=vls, most=most, filled=filled, full=full)
    counts = [most if filled else 0] * vls
    seen = set()

    async def bench(ctx):
        for cycle in range(600):
            assert ctx.get(dut.any) == sum((count > 0) << vl for vl, count in enumerate(counts))
            assert ctx.get(dut.full) == sum(
                (count >= (full or most)) << vl for vl, count in enumerate(counts)
            )
            seen.update(counts)
            # Long times of filling and of emptying.
            odds = 0.8 if cycle // 50 % 2 else 0.2
            take = sum((count > 0 and rng.random() > odds) << vl for vl, count in enumerate(counts))
            room = [count < most or take >> vl & 1 for vl, count in enumerate(counts)]
            add = sum((room[vl] and rng.random() < odds) << vl for vl in range(vls))
            fill = filled and rng.random() < 0.02
            ctx.set(dut.add, add)
            ctx.set(dut.take, take)
            if filled:
                ctx.set(dut.fill, fill)
            for vl in range(vls):
                counts[vl] = most if fill else counts[vl] + (add >> vl & 1) - (take >> vl & 1)
            await ctx.tick()

    run(dut, bench)
    assert seen == set(range(most + 1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"most": 0}, "most = 0: at least 1"),
        ({"most": 4, "full": 5}, "full = 5: 1 to 4"),
        ({"most": 4, "full": 0}, "full = 0: 1 to 4"),
    ],
)
def test_counts_out_of_range_are_refused(wrong, message):
    with pytest.raises(ConfigError) as caught:
        VlCounters(vls=2, **wrong)
    assert str(caught.value) == f"VlCounters: {message}"


def test_a_choice_stands_until_it_is_done_and_all_have_turns():
    dut = StandingChoice(vls=4)
    order = []

    async def bench(ctx):
        ctx.set(dut.requests, 0b1011)
        for cycle in range(3):
            assert ctx.get(dut.chosen) == 0, cycle
            await ctx.tick()
        for _ in range(9):
            chosen = ctx.get(dut.chosen)
            order.append(chosen)
            ctx.set(dut.requests, 0b1111 & ~chosen)  # as if this was its last
            for _ in range(3):
                await ctx.tick()
                assert ctx.get(dut.chosen) == chosen
            ctx.set(dut.requests, chosen)  # not looked at in the cycle of `done` and in the next one
            ctx.set(dut.done, 1)
            await ctx.tick()
            ctx.set(dut.done, 0)
            await ctx.tick()
            ctx.set(dut.requests, 0b1011)
            for _ in range(3):
                assert ctx.get(dut.chosen) == 0
                await ctx.tick()

    run(dut, bench)
    assert order == [0b1, 0b10, 0b1000] * 3


def test_the_control_vl_is_chosen_first():
    dut = StandingChoice(vls=16)

    async def bench(ctx):
        ctx.set(dut.requests, 0xFFFF)
        ctx.set(dut.done, 0)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.chosen) == 1 << 15

    run(dut, bench)


@pytest.mark.parametrize("vls", [1, 3, 5, 15, 16])
def test_choices_are_those_of_a_round_robin_of_3_cycles_before(vls):
    """Whatever asks in which cycle, and however long a choice stands; VL 15 of 16 costs nobody a turn."""
    rng = random.Random(vls)
    dut = StandingChoice(vls=vls)
    past, gaps, chosen_ones = [0] * 4, [], set()

    async def bench(ctx):
        first, shown, ended = 0, 0, -9
        for cycle in range(3000):
            requests = rng.getrandbits(vls) & rng.getrandbits(vls) & (rng.getrandbits(vls) | -(cycle & 1))
            chosen = ctx.get(dut.chosen)
            if shown:
                assert chosen == shown
            elif cycle < ended + 5:
                assert chosen == 0
            else:
                asked = [vl for vl in range(vls) if past[-3] >> vl & 1]
                turns = sorted(asked, key=lambda vl: (vl != 15, (vl - first) % vls))
                assert chosen == (1 << turns[0] if asked else 0)
                if asked:
                    chosen_ones.add(turns[0])
                    gaps.append(cycle - ended)
                    first = first if turns[0] == 15 else turns[0] + 1
            done = bool(chosen) and rng.random() < 0.5
            shown = 0 if done else chosen
            ended = cycle if done else ended
            past.append(requests)
            ctx.set(dut.requests, requests)
            ctx.set(dut.done, done)
            await ctx.tick()

    run(dut, bench)
    assert chosen_ones == set(range(vls)) and min(gaps[1:]) == 5


LINK = LinkConfig(flit_bits=32, vls=2, rate_num=1, rate_den=5, restart=True)
CONFIG = preset(
    NicConfig,
    "tiny",
    mtu_bytes=16,
    link=LINK,
    send_queue_entries=2,
    vl_packets=2,
    input_buffer_flits=32,
    pipelined=True,
    vl_arbiter="table_fast",
)


def test_the_port_has_the_latencies_that_it_states_and_a_flit_a_cycle_in_each_packet():
    dut = make_port(CONFIG, downstream_flits=10)
    sent, shown = [], []

    async def bench(ctx):
        ctx.set(dut.receive.ready, 1)
        ctx.set(dut.begin, 1)
        ctx.set(dut.send.valid, 1)
        ctx.set(dut.send.payload, {"vl": 1, "head": 1, "tail": 1})
        for cycle in range(60):
            # Two packets of 6 flits each come in meanwhile, one behind the other.
            ctx.set(dut.rx.valid, cycle < 12)
            ctx.set(dut.rx.payload, {"vl": 0, "head": cycle % 6 == 0, "tail": cycle % 6 == 5, "data": cycle})
            if ctx.get(dut.tx.valid):
                sent.append(cycle)
            if ctx.get(dut.receive.valid):
                shown.append((cycle, ctx.get(dut.receive.payload.data)))
            await ctx.tick()
            ctx.set(dut.begin, 0)
            ctx.set(dut.send.valid, 0)

    run(dut, bench)
    assert sent == [12]
    tail = 5
    assert shown == [(tail + 10 + i, i) for i in range(6)] + [
        (tail + 10 + 5 + 9 + i, 6 + i) for i in range(6)
    ]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, RegisteredVlPort),
        ({"vl_arbiter": "table_slow"}, RegisteredVlPort),
        ({"vl_arbiter": "round_robin"}, VlPort),
        ({"vl_arbiter": "table_iba"}, VlPort),
        ({"pipelined": False}, VlPort),
        ({"link": LINK.replace(rate_num=2, rate_den=9)}, VlPort),
        ({"link": LINK.replace(guard_cycles=4096)}, VlPort),
        ({"vl_packets": 0}, PacketInterface),
    ],
)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_registers_are_there_where_the_link_gives_them_time(changes, kind):
    assert type(make_port(CONFIG.replace(**changes), downstream_flits=10)) is kind
