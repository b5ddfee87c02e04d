"""The computed polling pointer against one that is stepped cycle by cycle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware.polling import PollPointer


def stepped(channels: int, period: int, origin: int, channel: int, rung: int) -> int:
    """Walk the pointer: the cycle of the first look at `channel` in `rung` or later."""
    cycle, at = origin, 0
    while cycle < rung or at != channel:
        cycle += period
        at = (at + 1) % channels
    return cycle


@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 300), st.integers(0, 3000), st.data())
def test_sees_a_doorbell_in_the_cycle_of_a_stepped_pointer(channels, period, origin, rung, data) -> None:
    channel = data.draw(st.integers(0, channels - 1))
    pointer = PollPointer(channels=channels, period_cycles=period, origin_cycle=origin)
    assert pointer.seen(channel, rung) == stepped(channels, period, origin, channel, rung)


@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 300), st.integers(0, 300))
def test_next_look_is_the_one_that_sees_its_own_channel(channels, period, origin, cycle) -> None:
    pointer = PollPointer(channels=channels, period_cycles=period, origin_cycle=origin)
    look, channel = pointer.next_look(cycle)
    assert look == stepped(channels, period, origin, channel, cycle)
    assert look == min(pointer.seen(other, cycle) for other in range(channels))


@given(st.integers(1, 20), st.integers(1, 20), st.data())
def test_a_moved_pointer_looks_where_it_was_put(channels, period, data) -> None:
    channel = data.draw(st.integers(0, channels - 1))
    cycle = data.draw(st.integers(channels * period, 5000))
    moved = PollPointer(channels=channels, period_cycles=period).moved(channel=channel, cycle=cycle)
    assert moved.next_look(cycle) == (cycle, channel)
    assert moved.next_look(cycle + 1) == (cycle + period, (channel + 1) % channels)


def test_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"^PollPointer.channels = 0: at least 1$"):
        PollPointer(channels=0, period_cycles=1)
    with pytest.raises(ValueError, match=r"^channel 4: 0 to 3$"):
        PollPointer(channels=4, period_cycles=1).seen(4, 0)
