"""Random numbers in RTL, and exponentially distributed draws from them, with plain Python models bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "EXPONENTIAL_BITS",
    "EXPONENTIAL_FRACTION",
    "Xoroshiro",
    "exponential",
    "exponential_value",
    "seed_words",
    "xoroshiro",
]

MASK64 = (1 << 64) - 1
EXPONENTIAL_FRACTION = 16
"""Fraction bits of an exponential draw."""
EXPONENTIAL_BITS = 5 + EXPONENTIAL_FRACTION
"""Width of a draw: at most 33 ln 2 = 22.9."""
TABLE_BITS = 7
"""The logarithm's table has 2^7 segments; interpolation is off by at most 2^-14/8 = 7.6e-6, half an LSB."""
SLOPE_BITS = 16
"""Bits of the mantissa that interpolate in a segment."""

LN2_GUARD = 6
"""More bits of ln 2, since it is multiplied by up to 33."""

_LN2 = round(math.log(2) * (1 << EXPONENTIAL_FRACTION + LN2_GUARD))
_LOG = [
    round(math.log(1 + i / (1 << TABLE_BITS)) * (1 << EXPONENTIAL_FRACTION))
    for i in range((1 << TABLE_BITS) + 1)
]


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & MASK64


def seed_words(seed: int, stream: int = 0) -> list[int]:
    """The four 32-bit words of a generator's state, low words first, from a `seed` and the number of a `stream`.

    They are made by splitmix64 (Steele, Lea, Flood, OOPSLA 2014), as xoroshiro's authors advise. Neighbouring seeds
    give unrelated states. The state is never all zero, as its two halves are images of different numbers.
    """
    state = (seed * 0xD1342543DE82EF95 + stream * 0x9E3779B97F4A7C15 * 3 + 0x9E3779B97F4A7C15) & MASK64
    words = []
    for _ in range(2):
        state = (state + 0x9E3779B97F4A7C15) & MASK64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK64
        z ^= z >> 31
        words += [z & 0xFFFFFFFF, z >> 32]
    return words


def xoroshiro(words: list[int]) -> Iterator[tuple[int, int]]:
    """The numbers (`total`, `raw`) of a `Xoroshiro` whose state is `words`; the first pair is that before any step."""
    s0, s1 = words[0] | words[1] << 32, words[2] | words[3] << 32
    while True:
        yield (s0 + s1) & MASK64, s0
        s1 ^= s0
        s0 = _rotate(s0, 24) ^ s1 ^ (s1 << 16 & MASK64)
        s1 = _rotate(s1, 37)


class Xoroshiro(wiring.Component):
    """xoroshiro128+ (Blackman and Vigna, 2018): 128 bits of state, period 2^128 - 1.

    Members:

    - `total` (out, 64): the generator's output.
    - `raw` (out, 64): half of its state, for choices that need more bits. The pair of `total` and `raw` takes every
      value once in a period, so the two are independent of each other.
    - `step` (in): both change in the next cycle.
    - `load` (in, 4), `word` (in, 32): bit i loads word i of the state (`seed_words`).

    Latency: 1 cycle from `step`. Throughput: a number a cycle. Reset: the state of seed 0. A state of zeros stays;
    `seed_words` gives none.
    """

    def __init__(self) -> None:
        super().__init__({"total": Out(64), "raw": Out(64), "step": In(1), "load": In(4), "word": In(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = seed_words(0)
        s0 = Signal(64, init=first[0] | first[1] << 32)
        s1 = Signal(64, init=first[2] | first[3] << 32)
        mixed = s0 ^ s1
        m.d.comb += [self.total.eq(s0 + s1), self.raw.eq(s0)]
        with m.If(self.step):
            m.d.sync += [
                s0.eq(s0.rotate_left(24) ^ mixed ^ (mixed << 16)[:64]),
                s1.eq(mixed.rotate_left(37)),
            ]
        for i, place in enumerate([s0[:32], s0[32:], s1[:32], s1[32:]]):
            with m.If(self.load[i]):
                m.d.sync += place.eq(self.word)
        return m


def exponential_value(random: int) -> int:
    """The model of `exponential`: -ln((random + 1/2) / 2^32) with 16 fraction bits, within 2 LSBs."""
    mantissa, zeros = random << 1 | 1, 0
    for shift in (32, 16, 8, 4, 2, 1):
        if not mantissa >> 33 - shift:
            mantissa, zeros = mantissa << shift, zeros + shift
    fraction = mantissa & (1 << 32) - 1
    segment = fraction >> 32 - TABLE_BITS
    inside = fraction >> 32 - TABLE_BITS - SLOPE_BITS & (1 << SLOPE_BITS) - 1
    low, high = _LOG[segment], _LOG[segment + 1]
    return (_LN2 * (zeros + 1) >> LN2_GUARD) - (low + ((high - low) * inside >> SLOPE_BITS))


def exponential(m: Module, random: Value) -> Signal:
    """An exponential draw of mean 1 from 32 uniform bits, `EXPONENTIAL_BITS` wide, 16 fraction bits; combinational.

    It is the inverse distribution function. With z the zeros above the first one of `random`,
    u = (random + 1/2) / 2^32 = 2^-(1 + z) * (1 + f) gives -ln u = (1 + z) ln 2 - ln(1 + f). The last term comes from a
    table of 128 segments with linear interpolation. Mean and deviation are 1 within 1e-4.
    """
    mantissa: Value = Cat(Const(1, 1), random)
    zeros: list[Value] = []
    # A binary search for the first one, shifting on the way.
    for stage, shift in enumerate((32, 16, 8, 4, 2, 1)):
        empty = Signal(name=f"empty_{shift}")
        shifted = Signal(33, name=f"mantissa_{stage}")
        m.d.comb += [
            empty.eq(mantissa[33 - shift : 33] == 0),
            shifted.eq(Mux(empty, (mantissa << shift)[:33], mantissa)),
        ]
        zeros.insert(0, empty)
        mantissa = shifted
    segment = mantissa[32 - TABLE_BITS : 32]
    inside = mantissa[32 - TABLE_BITS - SLOPE_BITS : 32 - TABLE_BITS]
    rises = [high - low for low, high in pairwise(_LOG)]
    m.submodules.logarithms = logs = memory.Memory(
        shape=EXPONENTIAL_FRACTION, depth=len(rises), init=_LOG[:-1]
    )
    m.submodules.slopes = slopes = memory.Memory(shape=max(rises).bit_length(), depth=len(rises), init=rises)
    log, slope = logs.read_port(domain="comb"), slopes.read_port(domain="comb")
    draw = Signal(EXPONENTIAL_BITS)
    m.d.comb += [
        log.addr.eq(segment),
        slope.addr.eq(segment),
        draw.eq(((Cat(*zeros) + 1) * _LN2 >> LN2_GUARD) - log.data - (slope.data * inside)[SLOPE_BITS:]),
    ]
    return draw
