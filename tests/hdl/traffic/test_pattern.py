"""Destinations."""

from collections import Counter
from itertools import islice

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.pattern import PERMUTATIONS, UNIFORM_BITS, permutation, uniform, uniform_value
from lanikai.hdl.traffic.random import seed_words, xoroshiro


@pytest.mark.parametrize("name", sorted(PERMUTATIONS))
@pytest.mark.parametrize("nodes", [4, 16, 64])
def test_permutations_are_permutations(name, nodes):
    assert sorted(permutation(name, nodes)) == list(range(nodes))


def test_permutations_by_hand():
    assert permutation("transpose", 9) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert permutation("bit_complement", 4) == [3, 2, 1, 0]
    assert permutation("bit_reverse", 8) == [0, 4, 2, 6, 1, 5, 3, 7]
    assert permutation("shuffle", 8) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert permutation("neighbour", 5) == [1, 2, 3, 4, 0]
    assert permutation("tornado", 8) == [3, 4, 5, 6, 7, 0, 1, 2]


def test_wrong_patterns_are_one_line():
    names = ", ".join(sorted(PERMUTATIONS))
    with pytest.raises(ConfigError, match=rf"^pattern = 'spiral': one of {names}$"):
        permutation("spiral", 16)
    with pytest.raises(ConfigError, match=r"^pattern transpose: nodes = 8: must be a square number$"):
        permutation("transpose", 8)
    with pytest.raises(ConfigError, match=r"^pattern shuffle: nodes = 9: a power of two$"):
        permutation("shuffle", 9)


@pytest.mark.parametrize(("node", "nodes"), [(0, 2), (1, 2), (4, 9), (15, 16)])
def test_uniform_is_its_model_and_never_the_node_itself(node, nodes):
    config = TrafficConfig(nodes=nodes)
    m, number = Module(), Signal(UNIFORM_BITS)
    chosen = uniform(m, number, Signal(config.node_bits, init=node), config)
    numbers = [
        0,
        (1 << UNIFORM_BITS) - 1,
        *(total >> 40 for total, _ in islice(xoroshiro(seed_words(2)), 300)),
    ]

    async def bench(ctx):
        for value in numbers:
            ctx.set(number, value)
            await ctx.delay(1e-7)
            assert ctx.get(chosen) == uniform_value(value, node, nodes) != node

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


def test_uniform_is_uniform():
    numbers = islice(xoroshiro(seed_words(7)), 30_000)
    counts = Counter(uniform_value(total >> 40, 5, 16) for total, _ in numbers)
    assert set(counts) == set(range(16)) - {5}
    # 14 degrees of freedom: above 43 once in 10^4.
    assert sum((count - 2000) ** 2 / 2000 for count in counts.values()) < 43
