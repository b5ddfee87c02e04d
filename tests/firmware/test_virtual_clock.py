"""Stamps of VirtualClock as the firmware reckons them: the thesis' rule, ages and wraps."""

import pytest
from lanikai.firmware.virtual_clock import VirtualClock, before


def test_stamps_follow_the_rule_of_the_thesis():
    clock = VirtualClock(channels=2)
    clock.set_vtick(0, 30)
    clock.set_vtick(1, 10)
    # auxVC = max(now, auxVC) + Vtick: a burst is spread over its rate, an idle time is not saved up.
    assert [clock.stamp(0, now) for now in (100, 100, 105, 300)] == [130, 160, 190, 330]
    assert [clock.stamp(1, now) for now in (300, 301)] == [310, 320]


def test_no_auxvc_is_too_old_or_too_far_ahead():
    clock = VirtualClock(channels=1, bits=8)
    clock.set_vtick(0, 5)
    now = 0
    for _ in range(40):
        now += 100
        assert clock.stamp(0, now % 256) == (now + 5) % 256
    # Longer than the clock's range without a stamp.
    for _ in range(3):
        now += 200
        clock.look(now % 256)
    assert clock.stamp(0, now % 256) == (now + 5) % 256
    clock.set_vtick(0, 63)
    assert [clock.stamp(0, now % 256) for _ in range(3)] == [(now + 63) % 256] * 3


@pytest.mark.parametrize(
    ("a", "b", "yes"), [(1, 2, 1), (2, 1, 0), (250, 3, 1), (3, 250, 0), (7, 7, 0), (0, 128, 0)]
)
def test_order_of_stamps_across_the_wrap(a, b, yes):
    assert before(a, b, 8) == bool(yes)


def test_values_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"^bits = 2: at least 3$"):
        VirtualClock(channels=1, bits=2)
    clock = VirtualClock(channels=2, bits=8)
    with pytest.raises(ValueError, match=r"^ticks = 64: 0 to 63$"):
        clock.set_vtick(0, 64)
    with pytest.raises(ValueError, match=r"^channel = 2: 0 to 1$"):
        clock.stamp(2, 0)
