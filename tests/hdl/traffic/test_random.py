"""Random numbers against their models, bit for bit, and the models against what they promise."""

import math
from itertools import islice, pairwise

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.traffic.random import (
    EXPONENTIAL_FRACTION,
    Xoroshiro,
    exponential,
    exponential_value,
    seed_words,
    xoroshiro,
)


def run(top, bench):
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=10)
@given(st.integers(0, 2**64 - 1), st.lists(st.booleans(), min_size=5, max_size=40))
def test_generator_is_its_model(seed, steps):
    dut, words = Xoroshiro(), seed_words(seed, 3)

    async def bench(ctx):
        for i, word in enumerate(words):
            ctx.set(dut.load, 1 << i)
            ctx.set(dut.word, word)
            await ctx.tick()
        ctx.set(dut.load, 0)
        model = xoroshiro(words)
        total, raw = next(model)
        for step in steps:
            assert (ctx.get(dut.total), ctx.get(dut.raw)) == (total, raw)
            ctx.set(dut.step, step)
            await ctx.tick()
            if step:
                total, raw = next(model)

    run(dut, bench)


def test_first_numbers_of_a_published_state():
    # xoroshiro128+ with s = {1, 2}, computed by hand from its definition: the sum is 3; then s1 = 1^2 = 3,
    # s0 = rotl(1, 24) ^ 3 ^ (3 << 16), s1 = rotl(3, 37).
    first, second = islice(xoroshiro([1, 0, 2, 0]), 2)
    assert first == (3, 1)
    s0 = (1 << 24) ^ 3 ^ (3 << 16)
    assert second == (s0 + (3 << 37), s0)


def test_streams_and_seeds_differ():
    states = {tuple(seed_words(seed, stream)) for seed in range(40) for stream in range(64)}
    assert len(states) == 40 * 64
    assert all(any(state) for state in states)


@settings(max_examples=5)
@given(
    st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 31).map(lambda i: 1 << i), min_size=30, max_size=60)
)
def test_exponential_is_its_model(numbers):
    m, number = Module(), Signal(32)
    draw = exponential(m, number)

    async def bench(ctx):
        for value in [0, 2**32 - 1, *numbers]:
            ctx.set(number, value)
            await ctx.delay(1e-7)
            assert ctx.get(draw) == exponential_value(value)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@given(st.integers(0, 2**32 - 1))
def test_exponential_is_the_logarithm(number):
    exact = -math.log((number + 0.5) / 2**32) * (1 << EXPONENTIAL_FRACTION)
    assert abs(exponential_value(number) - exact) < 2


def test_exponential_has_mean_and_deviation_one():
    numbers = islice(xoroshiro(seed_words(1)), 200_000)
    draws = [exponential_value(total >> 32) / (1 << EXPONENTIAL_FRACTION) for total, _ in numbers]
    mean = sum(draws) / len(draws)
    variance = sum((draw - mean) ** 2 for draw in draws) / len(draws)
    # Standard errors: 1 / sqrt(n) of the mean, sqrt(8 / n) of the variance; four of them.
    assert mean == pytest.approx(1, abs=4 / math.sqrt(len(draws)))
    assert variance == pytest.approx(1, abs=4 * math.sqrt(8 / len(draws)))
    lag = sum((a - mean) * (b - mean) for a, b in pairwise(draws)) / len(draws)
    assert abs(lag) < 4 / math.sqrt(len(draws))


def test_low_bits_are_even():
    numbers = list(islice(xoroshiro(seed_words(5)), 40_000))
    for values in (
        [t >> 8 & 0xF for t, _ in numbers],
        [r & 0xF for _, r in numbers],
        [r >> 16 & 0xF for _, r in numbers],
    ):
        counts = [values.count(i) for i in range(16)]
        chi_squared = sum((count - 2500) ** 2 / 2500 for count in counts)
        # 15 degrees of freedom: above 44 once in 10^4.
        assert chi_squared < 44
