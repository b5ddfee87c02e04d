"""Schedulers of VIA against fluid servers: bounds, shares, and the two faults of VirtualClock."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.firmware.via.schedulers.base import Rate, Scheduler
from lanikai.firmware.via.schedulers.deficit import FRAME_TICKS
from lanikai.firmware.via.schedulers.registry import SCHEDULERS, find_scheduler
from lanikai.hdl.config import ConfigError
from support.firmware.fluid_server import Arrival, Service, own_link_finish, serve

LINK = Fraction(64)
"""Bytes a tick: 128 MB/s on a clock of half a microsecond."""
SHARE = Rate(message_bytes=4096, interval_ticks=640)
"""A tenth of the link."""
FAIR = ("wf2q", "deficit")
NEAR_WRAP = (1 << 32) - 500


def make(name: str, rates: dict[int, Rate | None], *, best_effort: Rate = SHARE, bits: int = 32) -> Scheduler:
    scheduler = find_scheduler(name)(vis=8, bits=bits, best_effort=best_effort)
    for vi, rate in rates.items():
        scheduler.open(vi, rate)
    return scheduler


@st.composite
def traffic(draw: st.DrawFn) -> tuple[dict[int, Rate], list[Arrival]]:
    """Up to 5 VIs whose rates are at most nine tenths of the link, and messages that need not keep to them."""
    parts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    total = max(sum(parts), 9)
    rates = {}
    for vi, part in enumerate(parts):
        message = draw(st.sampled_from([256, 1000, 4096]))
        # Rounded up: a rate that is a little lower.
        interval = -(-message * total * 10 // (part * 9 * int(LINK)))
        rates[vi] = Rate(message_bytes=message, interval_ticks=interval)
    count = draw(st.integers(1, 60))
    arrivals = []
    for _ in range(count):
        vi = draw(st.integers(0, len(parts) - 1))
        size = draw(st.integers(1, rates[vi].message_bytes))
        arrivals.append(Arrival(draw(st.integers(0, 3000)), vi, size))
    return rates, sorted(arrivals, key=lambda one: one.at)


@given(traffic(), st.sampled_from([0, 12345, NEAR_WRAP]))
@settings(max_examples=40)
def test_wf2q_is_at_most_a_message_behind_the_fluid_server(made, offset):
    rates, arrivals = made
    services = serve(make("wf2q", rates), arrivals, bytes_per_tick=LINK, offset=offset)
    ends = own_link_finish(arrivals, rates)
    longest = max(one.bytes for one in arrivals) / LINK
    for one in services:
        # A tick of each whole stamp: the clock's, and the two that are compared.
        assert one.end <= ends[one.number] + longest + 3


def received(services: list[Service], vi: int, time: Fraction) -> Fraction:
    """Bytes of the VI that were served until `time`, with the part of a message in service."""
    got = Fraction(0)
    for one in services:
        if one.arrival.vi == vi and one.begin < time:
            got += (min(one.end, time) - one.begin) * LINK
    return got


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.sampled_from([0, NEAR_WRAP]))
@settings(max_examples=15)
def test_wf2q_is_within_a_message_of_gps_on_both_sides(parts, offset):
    # All flows wait all the time and their rates are the link: GPS serves each at its rate.
    total = sum(parts)
    size = 64 * total
    rates = {
        vi: Rate(message_bytes=size * part, interval_ticks=size * total // int(LINK))
        for vi, part in enumerate(parts)
    }
    length = {vi: 64 * (1 + vi) * 5 for vi in rates}
    arrivals = [Arrival(0, vi, length[vi]) for vi in rates for _ in range(12 * parts[vi])]
    services = serve(make("wf2q", rates), arrivals, bytes_per_tick=LINK, offset=offset)
    stop = min(max(one.end for one in services if one.arrival.vi == vi) for vi in rates)
    for one in services:
        if one.end > stop:
            continue
        for vi, part in enumerate(parts):
            ahead = received(services, vi, one.end) - one.end * LINK * part / total
            # The bytes of 2 ticks: stamps are whole.
            assert -max(length.values()) - 2 * LINK <= ahead
            assert ahead <= length[vi] * (1 - Fraction(part, total)) + 2 * LINK


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.sampled_from([0, NEAR_WRAP]))
@settings(max_examples=8)
def test_deficit_round_robin_shares_by_the_rates(parts, offset):
    total = sum(parts)
    rates = {vi: Rate(message_bytes=4096 * part, interval_ticks=64 * total) for vi, part in enumerate(parts)}
    length = {vi: 300 + 700 * vi for vi in rates}
    quantum = {vi: Fraction(FRAME_TICKS * 4096 * part, 64 * total) for vi, part in enumerate(parts)}
    arrivals = [
        Arrival(0, vi, length[vi]) for vi in rates for _ in range(int(6 * quantum[vi] / length[vi]) + 1)
    ]
    services = serve(make("deficit", rates), arrivals, bytes_per_tick=LINK, offset=offset)
    stop = min(max(one.end for one in services if one.arrival.vi == vi) for vi in rates)
    for one in services[::5]:
        if one.end > stop:
            continue
        rounds = [received(services, vi, one.end) / quantum[vi] for vi in rates]
        # No flow is more than a round, and a message of its own, from any other one (Shreedhar and Varghese, lemma 2).
        slack = [1 + Fraction(length[vi] + 1) / quantum[vi] for vi in rates]
        for a, left in enumerate(rounds):
            for b, right in enumerate(rounds):
                assert abs(left - right) <= 1 + max(slack[a], slack[b])


@pytest.mark.parametrize("name", SCHEDULERS)
@given(made=traffic(), offset=st.sampled_from([0, 77, NEAR_WRAP]), seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_a_message_waits_no_longer_than_the_bound(name, made, offset, seed):
    rates, sent = made
    # Sources keep to their rates: the k-th message of a VI comes k intervals after the first, or later.
    free: dict[int, int] = {}
    arrivals = []
    for one in sent:
        at = max(one.at, free.get(one.vi, 0))
        free[one.vi] = at + rates[one.vi].interval_ticks
        arrivals.append(Arrival(at, one.vi, rates[one.vi].message_bytes))
    # Best effort is greedy.
    arrivals += [Arrival(seed + 7 * number, 7, 4096) for number in range(20)]
    arrivals.sort(key=lambda one: one.at)
    scheduler = make(name, {**rates, 7: None})
    services = serve(scheduler, arrivals, bytes_per_tick=LINK, offset=offset)
    assert len(services) == len(arrivals) and scheduler.waiting == 0
    for one in services:
        rate = rates.get(one.arrival.vi)
        ahead = sum(
            other.arrival.bytes
            for other in services
            if other.arrival.vi == one.arrival.vi
            and other.arrival.at <= one.arrival.at
            and other.end >= one.arrival.at
            and other.number <= one.number
        )
        bound = scheduler.wait_bound_ticks(rate, ahead_bytes=ahead, longest_ticks=64, flows=len(rates))
        assert (bound is None) == (name == "virtual_clock" and rate is None)
        if bound is not None:
            assert one.end - one.arrival.at <= bound


def first_wait(name: str) -> Fraction:
    """The wait of a message of VI 0, which keeps to its rate now but has used what was idle, beside a busy VI 1."""
    rates: dict[int, Rate | None] = {
        0: Rate(message_bytes=4096, interval_ticks=128),
        1: Rate(message_bytes=4096, interval_ticks=160),
    }
    # Alone, VI 0 sends at twice its rate. Then VI 1 begins, and always has messages.
    arrivals = [Arrival(64 * number, 0, 4096) for number in range(100)]
    start = 64 * 100
    arrivals += [Arrival(start, 1, 4096) for _ in range(200)]
    late = Arrival(start + 128, 0, 4096)
    services = serve(make(name, rates), [*arrivals, late], bytes_per_tick=LINK)
    return next(one.end for one in services if one.arrival is late) - late.at


def test_virtual_clock_punishes_a_vi_for_what_was_idle():
    # auxVC is 100 x 64 ticks ahead. VI 1, an interval of 160 ticks, passes with 40 messages of 64 ticks each ...
    assert first_wait("virtual_clock") > 35 * 64
    # ... and under the others a message waits for an interval or two, as one of a VI that has used nothing.
    for name in FAIR:
        assert first_wait(name) <= 3 * 128 + FRAME_TICKS


def best_effort_waits(name: str) -> list[Fraction]:
    """Waits of best-effort messages while two VIs with a rate always have messages."""
    rates: dict[int, Rate | None] = {
        0: Rate(message_bytes=4096, interval_ticks=128),
        1: Rate(message_bytes=4096, interval_ticks=160),
        7: None,
    }
    arrivals = [Arrival(0, vi, 4096) for vi in (0, 1) for _ in range(200)]
    arrivals += [Arrival(0, 7, 4096) for _ in range(3)]
    services = serve(make(name, rates), arrivals, bytes_per_tick=LINK)
    return [one.end for one in services if one.arrival.vi == 7]


def test_virtual_clock_starves_best_effort_and_the_others_do_not():
    assert min(best_effort_waits("virtual_clock")) > 400 * 64
    for name in FAIR:
        scheduler = make(name, {})
        for number, wait in enumerate(best_effort_waits(name), 1):
            bound = scheduler.wait_bound_ticks(None, ahead_bytes=4096 * number, longest_ticks=64, flows=2)
            assert bound is not None and wait <= bound


@pytest.mark.parametrize("name", SCHEDULERS)
def test_stamps_wrap_and_compare_right(name):
    # The same history, at every place of the clock's range: the same order. The clock is short: it wraps in the run.
    rates = {0: Rate(message_bytes=100, interval_ticks=30), 1: Rate(message_bytes=100, interval_ticks=45)}
    arrivals = [Arrival(37 * number, number % 2, 1 + number * 7 % 100) for number in range(200)]
    found = []
    for bits, offset in ((32, 0), (32, (1 << 32) - 100), (14, 0), (14, 16000)):
        scheduler = make(name, dict(rates), bits=bits, best_effort=Rate(message_bytes=100, interval_ticks=90))
        services = serve(scheduler, arrivals, bytes_per_tick=Fraction(5, 2), offset=offset)
        found.append([one.number for one in services])
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_vi_is_closed_and_opened_and_changes_its_rate(name):
    scheduler = make(name, {0: SHARE, 1: None, 2: None})
    for vi in (0, 1, 2, 1):
        scheduler.stamp(vi, 10, 100)
    scheduler.close(1)
    scheduler.close(5)
    assert scheduler.waiting == 2
    with pytest.raises(ValueError, match=r"^vi = 1: not open$"):
        scheduler.stamp(1, 11)
    with pytest.raises(ValueError, match=r"^vi = 1: not open$"):
        scheduler.served(1, 11)
    # What waits of a VI that changes its class is not lost.
    scheduler.open(2, SHARE)
    scheduler.open(0, Rate(message_bytes=4096, interval_ticks=64))
    served = Counter()
    while (vi := scheduler.choose(20)) is not None:
        scheduler.served(vi, 20)
        served[vi] += 1
    assert served == {0: 1, 2: 1}
    with pytest.raises(ValueError, match=r"^vi = 0: no message of it waits$"):
        scheduler.served(0, 20)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_vi_that_is_opened_anew_pays_nothing_for_the_one_before(name):
    scheduler = make(name, {0: SHARE, 1: SHARE})
    for _ in range(50):
        scheduler.stamp(0, 0)
    scheduler.close(0)
    scheduler.open(0, SHARE)
    first, second = scheduler.stamp(0, 0), scheduler.stamp(1, 0)
    assert first <= second


@pytest.mark.parametrize("name", FAIR)
def test_a_message_stamped_without_its_bytes_is_charged_for_them_later(name):
    long, told = make(name, {0: SHARE}), make(name, {0: SHARE})
    for _ in range(8):
        long.stamp(0, 0, 1024)
        told.stamp(0, 0)
        told.correct(0, 1024)
    assert long.stamp(0, 0, 4096) == told.stamp(0, 0, 4096)


def test_what_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"^bits = 7: at least 8$"):
        find_scheduler("wf2q")(vis=1, bits=7)
    scheduler = find_scheduler("wf2q")(vis=2, bits=8)
    with pytest.raises(ValueError, match=r"^vi = 2: 0 to 1$"):
        scheduler.open(2, None)
    with pytest.raises(ValueError, match=r"^interval_ticks = 64: at most 63$"):
        scheduler.open(0, Rate(message_bytes=1, interval_ticks=64))
    with pytest.raises(ValueError, match=r"^Rate: message_bytes = 0: at least 1$"):
        Rate(message_bytes=0, interval_ticks=1)
    with pytest.raises(
        ConfigError, match=r"^unknown scheduler 'fifo'; valid schedulers: virtual_clock, wf2q, deficit$"
    ):
        find_scheduler("fifo")
