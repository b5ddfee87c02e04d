"""Workloads: rates, regularity, order and refusals of the generators."""

from itertools import islice, pairwise
from random import Random
from statistics import fmean, pstdev

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.sim.experiments.qos.messages import PACKET_FLITS, merge, payload_bytes, until
from lanikai.sim.experiments.qos.mpeg import FILMS, MIN_FLITS, frame_flits, mpeg, peak_rate, read_film
from lanikai.sim.experiments.qos.sources import control, on_off, on_off_rate, poisson

INTERVAL = 416_667
"""Cycles of a frame at 1.6 Gbit/s: 33.3 ms of 80 ns."""


def rate_of(messages, cycles):
    return sum(message.flits for message in until(messages, cycles)) / cycles


@pytest.mark.parametrize("film", FILMS)
@pytest.mark.parametrize("rate", [0.002, 0.02])
def test_a_film_has_the_rate_that_is_stated_and_its_own_proportions(film, rate):
    frames = read_film(film)
    flits = frame_flits(frames, rate=rate, interval_cycles=INTERVAL)
    # Rounding is half a flit a frame at most; the shortest frames are lifted to a packet.
    assert fmean(flits) == pytest.approx(rate * INTERVAL, rel=0.001)
    largest = max(range(len(frames)), key=frames.__getitem__)
    assert flits[largest] / fmean(flits) == pytest.approx(frames[largest] / fmean(frames), rel=0.001)
    assert peak_rate(frames, rate=rate, interval_cycles=INTERVAL) == flits[largest] / INTERVAL


@pytest.mark.parametrize("regulator", [True, False])
def test_a_frame_is_cut_into_packets_and_the_regulator_spreads_them(regulator):
    frames = [100, 400, 401, 1]
    # Mean 82 flits: 36.4, 145.4, 145.8 and 0.4, so 36, 145, 146 and the least.
    stream = mpeg(frames, rate=0.082, interval_cycles=1000, regulator=regulator, first_frame=1, first_cycle=7)
    got = list(islice(stream, 4 + 4 + 1 + 1 + 4))
    spread = [0, 250, 500, 750] if regulator else [0] * 4
    assert [(m.cycle, m.flits, m.frame, m.last) for m in got[:10]] == [
        *((7 + at, flits, 0, flits == 25) for at, flits in zip(spread, (40, 40, 40, 25), strict=True)),
        *((1007 + at, flits, 1, flits == 26) for at, flits in zip(spread, (40, 40, 40, 26), strict=True)),
        (2007, MIN_FLITS, 2, True),
        (3007, 36, 3, True),
    ]
    assert [m.flits for m in got[10:]] == [40, 40, 40, 25]


def test_poisson_gaps_are_exponential_at_the_rate():
    messages = list(islice(poisson(Random(3), rate=0.2), 20_000))
    gaps = [b.cycle - a.cycle for a, b in pairwise(messages)]
    # The mean of 20,000 exponential gaps has a deviation of 0.7%.
    assert fmean(gaps) == pytest.approx(PACKET_FLITS / 0.2, rel=0.03)
    assert pstdev(gaps) == pytest.approx(fmean(gaps), rel=0.05)


@pytest.mark.parametrize(("on", "off"), [(4000, 6000), (300, 200)])
def test_on_off_has_its_rate_is_even_while_on_and_begins_anywhere(on, off):
    source = on_off(Random(5), peak_rate=0.1, on_cycles=on, off_cycles=off)
    messages = list(until(source, 20_000_000))
    expected = on_off_rate(peak_rate=0.1, on_cycles=on, off_cycles=off)
    assert sum(m.flits for m in messages) / 20_000_000 == pytest.approx(expected, rel=0.05)
    even = {b.cycle - a.cycle for a, b in pairwise(messages) if a.frame == b.frame}
    assert even <= {399, 400, 401}
    starts = [
        next(on_off(Random(seed), peak_rate=0.1, on_cycles=on, off_cycles=off)).cycle == 0
        for seed in range(2000)
    ]
    assert fmean(starts) == pytest.approx(on / (on + off), abs=0.05)


def test_control_packets_are_ten_of_ten_flits_a_period():
    messages = list(until(control(Random(1), period_cycles=10_000), 10_000_000))
    assert len(messages) == pytest.approx(10_000, rel=0.05)
    assert {m.flits for m in messages} == {10}


def test_sources_repeat_with_their_seed_and_merge_in_order():
    def some():
        sources = [poisson(Random(seed), rate=0.3) for seed in (1, 2, 2)]
        return list(islice(merge(sources), 300))

    first = some()
    assert first == some()
    assert all((a[1].cycle, a[0]) <= (b[1].cycle, b[0]) for a, b in pairwise(first))
    assert {number for number, _ in first} == {0, 1, 2}


def test_payload_is_what_header_and_crc_leave():
    assert payload_bytes(40, LinkConfig(flit_bits=128)) == 38 * 16
    assert payload_bytes(40, LinkConfig(flit_bits=32)) == 35 * 4
    with pytest.raises(ConfigError, match=r"^payload_bytes: flits = 2: at least 3$"):
        payload_bytes(2, LinkConfig(flit_bits=128))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: next(poisson(Random(1), rate=0)), "poisson: rate = 0: above 0 and at most 1 flit a cycle"),
        (
            lambda: next(on_off(Random(1), peak_rate=1.5, on_cycles=1, off_cycles=1)),
            "on_off: peak_rate = 1.5: above 0 and at most 1 flit a cycle",
        ),
        (
            lambda: next(on_off(Random(1), peak_rate=1, on_cycles=0, off_cycles=1)),
            "on_off: on_cycles = 0: above 0",
        ),
        (
            lambda: next(on_off(Random(1), peak_rate=1, on_cycles=1, off_cycles=-1)),
            "on_off: off_cycles = -1: above 0",
        ),
        (lambda: control(Random(1), period_cycles=0), "control: period_cycles = 0: above 0"),
        (
            lambda: mpeg([1], rate=2, interval_cycles=9),
            "mpeg: rate = 2: above 0 and at most 1 flit a cycle",
        ),
        (lambda: mpeg([1], rate=1, interval_cycles=0), "mpeg: interval_cycles = 0: above 0"),
        (lambda: mpeg([], rate=1, interval_cycles=9), "mpeg: frames is empty: at least one frame"),
    ],
)
def test_what_makes_no_source_is_refused_by_name(make, message):
    with pytest.raises(ConfigError) as error:
        make()
    assert str(error.value) == message
