"""The windows of flows of GM messages: bytes over the whole window, whatever its ends cut, whoever stops in it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.experiments.measure.gm_windows import TAIL_CYCLES, TimeWindow, amount_within, bandwidths

CLOCK_HZ = 33_000_000


@given(
    interval=st.integers(1, 5000),
    phase=st.integers(0, 5000),
    window=st.integers(10_000, 200_000),
    amount=st.integers(1, 4096),
)
def test_a_periodic_flow_has_its_rate_wherever_the_window_lies(interval, phase, window, amount):
    opened = 10_000
    events = [(cycle, amount) for cycle in range(phase, opened + window + 5001, interval)]
    assert amount_within(events, opened, opened + window) == pytest.approx(amount * window / interval)


def test_a_flow_that_stops_in_the_window_loses_what_it_did_not_send():
    events = [(cycle, 100.0) for cycle in range(0, 2001, 100)]
    assert amount_within(events, 1000, 11_000) == 1000.0
    # It goes on long after: the packet is spread over all of the time that it took.
    assert amount_within([*events, (20_000, 180.0)], 1000, 11_000) == pytest.approx(
        1000 + 180 * 9000 / 18_000
    )


def test_what_is_outside_does_not_count():
    assert amount_within([], 0, 100) == 0
    assert amount_within([(50, 3.0)], 0, 100) == 3.0
    assert amount_within([(50, 3.0), (50, 4.0)], 0, 100) == 7.0
    assert amount_within([(10, 1.0), (20, 1.0)], 30, 40) == 0
    assert amount_within([(10, 1.0), (50, 4.0)], 30, 40) == 1.0


class PlainClock:
    """A clock that runs events at their cycles while a coroutine sleeps."""

    def __init__(self, events: list[tuple[int, int]]) -> None:
        self.cycle, self._events, self.deliver = 0, sorted(events), None

    async def sleep(self, cycles: int) -> None:
        until = self.cycle + cycles
        while self._events and self._events[0][0] <= until:
            self.cycle, flow = self._events.pop(0)
            self.deliver(flow, 4096)
        self.cycle = until


def measured(*flows: range, window_cycles: int = 100_000) -> tuple[list[float], int]:
    """Bandwidths of flows with packets at these cycles, and when the measurement ended."""
    clock = PlainClock([(cycle, number) for number, cycles in enumerate(flows) for cycle in cycles])
    cluster = SimpleNamespace(
        clock=clock,
        progress=lambda fraction, text: None,
        config=SimpleNamespace(nic=SimpleNamespace(clock_hz=CLOCK_HZ)),
    )
    window = TimeWindow(cluster, flows=len(flows))
    clock.deliver = window.deliver
    found = asyncio.run(window.measure(warm_up_cycles=20_000, window_cycles=window_cycles))
    return bandwidths(found), clock.cycle


def test_a_time_window_measures_every_flow_over_the_same_time():
    rates, ended = measured(range(0, 400_000, 1584), range(700, 400_000, 15_840))
    assert rates == pytest.approx([4096 * 33 / 1584, 4096 * 33 / 15_840])
    assert ended < 120_000 + 15_840 + 400


def test_a_dead_flow_is_not_waited_for_any_longer_than_the_tail():
    rates, ended = measured(range(0, 400_000, 1584), range(0, 40_000, 1000))
    assert rates[1] == pytest.approx(4096 * 19 * 33 / 100_000)
    assert 120_000 + TAIL_CYCLES - 400 <= ended <= 120_000 + TAIL_CYCLES
    # One that never sent is not waited for at all.
    rates, ended = measured(range(0, 400_000, 1584), range(0))
    assert rates[1] == 0 and ended < 120_000 + 2000
