"""The births in RTL are those of the model; and the model's processes are what they are called."""

import math
from itertools import pairwise

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.generator import Generator
from lanikai.hdl.traffic.ports import (
    CLASS,
    Choice,
    Mode,
    VlChoice,
    class_address,
    route_address,
    statistics_address,
    trace_address,
)
from lanikai.hdl.traffic.random import seed_words
from support.hdl.generator_model import ONE, GeneratorModel, Settings

CONFIG = TrafficConfig(link=LinkConfig(flit_bits=64, vls=4), nodes=9, classes=3, trace_frames=8)


def setting():
    return st.builds(
        Settings,
        mode=st.sampled_from([Mode.OFF, Mode.RANDOM, Mode.PERIODIC, Mode.ON_OFF, Mode.TRACE]),
        pattern=st.sampled_from([Choice.FIXED, Choice.UNIFORM, Choice.HOT_SPOT]),
        vl_choice=st.sampled_from([VlChoice.RANDOM, VlChoice.IN_TURN, VlChoice.BY_DESTINATION]),
        vl_first=st.integers(0, 1),
        vl_count=st.integers(1, 3),
        service_level=st.integers(0, 15),
        flits=st.integers(1, 9),
        spacing=st.integers(ONE // 2, 20 * ONE),
        on=st.integers(1, 40),
        off=st.integers(0, 40),
        node=st.integers(0, 8),
        fraction=st.integers(0, 4096),
        interval=st.integers(1, 60),
        first=st.integers(0, 3),
        last=st.integers(4, 7),
        phase=st.integers(0, 30),
    )


async def write(ctx, dut, address, word):
    ctx.set(dut.access, {"write": 1, "address": address, "data": word})
    await ctx.tick()
    ctx.set(dut.access, {})


async def read(ctx, dut, address):
    ctx.set(dut.access, {"read": 1, "address": address})
    await ctx.tick()
    ctx.set(dut.access, {})
    return ctx.get(dut.answer)


async def set_up(ctx, dut, model):
    """The model's settings into the generator, and back."""
    for number, words in enumerate(model.words):
        ctx.set(dut.load_class, number)
        for i, word in enumerate(words):
            ctx.set(dut.load, 1 << i)
            ctx.set(dut.word, word)
            await ctx.tick()
    ctx.set(dut.load, 0)
    ctx.set(dut.node, model.node)
    for destination, vl in enumerate(model.vl_of):
        await write(ctx, dut, route_address(destination) + 4, vl << 16)
    for row, (flits, spacing) in enumerate(model.trace):
        await write(ctx, dut, trace_address(row), flits)
        await write(ctx, dut, trace_address(row) + 4, spacing)
    for c, chosen in enumerate(model.settings):
        for register, fields in chosen.words():
            word = CLASS[register].pack(**fields)
            await write(ctx, dut, class_address(c, register), word)
            assert await read(ctx, dut, class_address(c, register)) == word


@settings(max_examples=10)
@given(st.data(), st.integers(0, 2**32), st.integers(0, 8), st.integers(0, 3))
def test_births_are_the_models(data, seed, node, fullness):
    model = GeneratorModel(
        settings=data.draw(st.lists(setting(), min_size=3, max_size=3)),
        words=[seed_words(seed, node + 16 * number) for number in range(3)],
        node=node,
        nodes=CONFIG.nodes,
        header_flits=CONFIG.link.header_flits,
        trace=data.draw(
            st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9 * ONE)), min_size=8, max_size=8)
        ),
        vl_of=data.draw(st.lists(st.integers(0, 3), min_size=9, max_size=9)),
    )
    fulls = data.draw(st.lists(st.integers(0, 15), min_size=7, max_size=7))
    start = data.draw(st.integers(0, 2**32 - 1))
    dut = Generator(CONFIG)

    async def bench(ctx):
        await set_up(ctx, dut, model)
        births = 0
        for step in range(180):
            full = fulls[step // 8 % 7] if step % 4 < fullness else 0
            control = {"now": start + step & 0xFFFFFFFF, "run": 1, "window_cycles": 100}
            ctx.set(dut.control, control | {"window_start": start + 50 & 0xFFFFFFFF})
            ctx.set(dut.full, full)
            # The model's time does not wrap.
            born = model.cycle(start + step, full)
            assert ctx.get(dut.birth_valid) == (born is not None), step
            if born is not None:
                births += 1
                shown = ctx.get(dut.birth)
                assert shown.born == born.due % 2**27
                assert shown.tagged == (start + 50 <= born.due < start + 150)
                for name in ("destination", "traffic_class", "frame_end", "flits", "service_level"):
                    assert shown[name] == getattr(born, name), name
                assert ctx.get(dut.birth_vl) == born.vl
            ends = start + 150
            late = any(
                s.mode != Mode.OFF and not (p.primed and p.due >> 12 >= ends)
                for s, p in zip(model.settings, model.processes, strict=True)
            )
            await ctx.tick()
            ctx.set(dut.control.now, start + step + 1 & 0xFFFFFFFF)
            assert ctx.get(dut.behind) == late
        ctx.set(dut.control.run, 0)
        for c, cycles in enumerate(model.deferred):
            assert await read(ctx, dut, statistics_address(c, "DEFERRED")) == cycles
        ctx.set(dut.control.clear, 1)
        await ctx.tick()
        ctx.set(dut.control.clear, 0)
        assert await read(ctx, dut, statistics_address(0, "DEFERRED")) == 0

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_class_makes_the_same_packets_whatever_the_others_do():
    """Another class is there or not, and its queue is full or not. (The generator follows the model, above.)"""
    mine = Settings(mode=Mode.RANDOM, spacing=20 * ONE, vl_first=0, vl_count=2)
    other = Settings(mode=Mode.RANDOM, spacing=2 * ONE, vl_first=2, vl_count=2)
    seen = []
    for second, full in ((Settings(mode=Mode.OFF), 0), (other, 0), (other, 0b1100)):
        model = GeneratorModel(settings=[mine, second], words=[seed_words(5, 2), seed_words(5, 1026)])
        played = [born for now in range(4000) if (born := model.cycle(now, full if now % 100 < 90 else 0))]
        seen.append([(one.due, one.vl, one.destination) for one in played if one.traffic_class == 0])
    assert len(seen[0]) > 150 and seen[0] == seen[1] == seen[2]


def births(cycles, full=0, **changes):
    model = GeneratorModel(settings=[Settings(**changes)], words=[seed_words(11)], vl_of=list(range(16)))
    model.trace = [(10, 3 * ONE), (0, 0), (8, 0), (1, 0)]
    return [born for now in range(cycles) if (born := model.cycle(now, full))]


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.9])
def test_random_births_are_a_bernoulli_process(probability):
    cycles = 60_000
    spacing = round(-ONE / math.log(1 - probability))
    dues = [born.due for born in births(cycles, mode=Mode.RANDOM, spacing=spacing)]
    deviation = math.sqrt(cycles * probability * (1 - probability))
    assert len(dues) == pytest.approx(cycles * probability, abs=4 * deviation)
    gaps = [b - a for a, b in pairwise(dues)]
    assert min(gaps) == 1
    # A geometric gap: the chance of the shortest, and the variance.
    mean, n = 1 / probability, len(gaps)
    shortest = sum(gap == 1 for gap in gaps) / n
    assert shortest == pytest.approx(probability, abs=4 * math.sqrt(probability * (1 - probability) / n))
    variance = sum((gap - mean) ** 2 for gap in gaps) / n
    expected = (1 - probability) / probability**2
    fourth = expected * (9 * expected + 1)
    assert variance == pytest.approx(expected, abs=4 * math.sqrt((fourth - expected**2) / n))


def test_periodic_births_keep_fractions():
    dues = [born.due for born in births(1000, mode=Mode.PERIODIC, spacing=5 * ONE // 2, phase=7)]
    assert dues == [8 + i * 5 // 2 for i in range(len(dues))]
    assert len(dues) == 397


def test_on_off_has_its_mean_rate_and_silence():
    cycles, on, off, spacing = 400_000, 200, 600, 10
    chosen = {"mode": Mode.ON_OFF, "on": on, "off": off, "spacing": spacing * ONE}
    dues = [born.due for born in births(cycles, **chosen)]
    # The time spent ON in n pairs of periods has a relative deviation of about (off / (on + off)) sqrt(2 /
    # n).
    pairs = cycles / (on + off)
    mean = cycles * on / (on + off) / spacing
    assert len(dues) == pytest.approx(mean, rel=4 * off / (on + off) * math.sqrt(2 / pairs))
    gaps = [b - a for a, b in pairwise(dues)]
    assert min(gaps) == spacing
    pauses = [gap - spacing for gap in gaps if gap > spacing]
    # An OFF period is between the two births around it, and now and then two are.
    assert sum(pauses) / len(pauses) == pytest.approx(off, rel=4 / math.sqrt(len(pauses)) + spacing / on)


def test_trace_frames_are_cut_and_spaced():
    played = births(220, mode=Mode.TRACE, flits=4, interval=50, last=3, phase=5)
    shown = [(born.due, born.flits, born.frame_end) for born in played]
    # Frames at 6, 56 (empty), 106 and 156, and the first again.
    first = [(6, 4, False), (9, 4, False), (12, 2, True)]
    assert shown == [
        *first,
        (106, 4, False),
        (106, 4, True),
        (156, 1, True),
        *((due + 200, flits, end) for due, flits, end in first),
    ]


def test_hot_spot_fraction_and_vls():
    chosen = {"mode": Mode.RANDOM, "spacing": ONE, "pattern": Choice.HOT_SPOT, "node": 3, "fraction": 1024}
    played = births(20_000, vl_first=2, vl_count=11, **chosen)
    n = len(played)
    # A quarter, and one of 15 of the rest.
    share = 0.25 + 0.75 / 15
    hot = sum(born.destination == 3 for born in played)
    assert hot == pytest.approx(n * share, abs=4 * math.sqrt(n * share))
    counts = [sum(born.vl == vl for born in played) for vl in range(2, 13)]
    assert sum(counts) == n
    # 10 degrees of freedom: above 36 once in 10^4.
    assert sum((count - n / 11) ** 2 / (n / 11) for count in counts) < 36


def test_a_full_queue_puts_births_off_and_loses_none():
    chosen = Settings(mode=Mode.PERIODIC, spacing=10 * ONE)
    model = GeneratorModel(settings=[chosen], words=[seed_words(0)])
    played = [(now, born.due) for now in range(400) if (born := model.cycle(now, int(now < 300)))]
    assert [due for _, due in played] == list(range(1, 400, 10))
    assert played[0][0] == 300 and model.deferred == [299]
