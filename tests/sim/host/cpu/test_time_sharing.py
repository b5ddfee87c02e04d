"""Solaris' time-sharing class: levels, slices, boosts, and the raise of all every second."""

from __future__ import annotations

from typing import Any

import pytest
from lanikai.sim.host.cpu.event_time import EventTime
from lanikai.sim.host.cpu.host import Host
from lanikai.sim.host.cpu.process import State
from lanikai.sim.host.cpu.requests import Signal
from lanikai.sim.host.cpu.time_sharing import EXPIRED, HIGHEST, LEVELS, RETURNS, SLICES_MS, TimeSharing
from lanikai.sim.host.cpu.timekeeper import Rank
from support.sim.cpu_workload import HZ, small_machine

MS = HZ // 1000


def host(**settings: Any) -> Host:
    return Host(EventTime(HZ), small_machine(), TimeSharing(raise_phase=999_000, **settings), record=True)


def computing(cycles: int) -> Any:
    async def main(process: Any) -> None:
        await process.compute(cycles)

    return main


def until(one: Host, cycle: int) -> None:
    one.time.run(lambda: False, limit=cycle)  # type: ignore[attr-defined]


def test_the_table_is_that_of_the_system() -> None:
    assert {len(SLICES_MS), len(EXPIRED), len(RETURNS)} == {LEVELS} == {60}
    # The thesis: from 200 ms at level 0 to 20 ms at level 59; longer, not shorter, at lower levels.
    assert (SLICES_MS[0], SLICES_MS[HIGHEST]) == (200, 20)
    assert list(SLICES_MS) == sorted(SLICES_MS, reverse=True)
    assert all(low <= level for level, low in enumerate(EXPIRED))
    assert all(high >= min(level, 58) for level, high in enumerate(RETURNS))
    assert (EXPIRED[59], EXPIRED[49], EXPIRED[9], RETURNS[0], RETURNS[58], RETURNS[59]) == (
        49,
        39,
        0,
        50,
        58,
        59,
    )


def test_a_process_that_computes_sinks_and_is_raised_every_second() -> None:
    one = host(start_level=59)
    process = one.start(computing(10 * HZ), name="computes")
    levels = []
    for cycle in (15, 25, 65, 145, 265, 425, 998, 1000):
        until(one, cycle * MS)
        process.host.processors[0].plan_tick()
        levels.append(process.level)
    # Slices of 20, 40, 80, 120, 160 and 200 ms end, each at a tick; then all are raised at 999 ms.
    assert levels == [59, 49, 39, 29, 19, 9, 0, 59]


def test_a_process_that_returns_from_sleep_goes_first_at_the_next_tick() -> None:
    one, signal = host(start_level=29), Signal()

    async def sleeps(process: Any) -> None:
        await process.block(signal)
        await process.compute(100)

    sleeper = one.start(sleeps, name="sleeps")
    busy = one.start(computing(HZ), name="computes")
    one.time.call_at(2500, Rank.OUTSIDE, lambda _: signal.set(), 0)
    until(one, 2999)
    assert sleeper.state is State.READY and sleeper.level == RETURNS[29] == 52
    until(one, 3000)
    assert sleeper.state is State.RUNNING and busy.state is State.READY
    until(one, 3200)
    assert sleeper.state is State.ENDED and busy.state is State.RUNNING


@pytest.mark.parametrize("level", [0, 40, 59])
def test_a_boosted_process_runs_from_the_next_tick_on_whatever_runs(level: int) -> None:
    one = host(start_level=level)
    first, second, third = (one.start(computing(HZ), name=f"process {number}") for number in range(3))
    until(one, 5500)
    assert first.state is State.RUNNING
    one.scheduler.boost(third)  # type: ignore[attr-defined]
    until(one, 6000)
    assert third.state is State.RUNNING and third.level == HIGHEST and second.state is State.READY


def test_levels_change_in_every_state() -> None:
    one, signal = host(start_level=30), Signal()

    async def sleeps(process: Any) -> None:
        await process.block(signal)

    sleeper = one.start(sleeps, name="sleeps")
    runs, waits = one.start(computing(HZ), name="runs"), one.start(computing(HZ), name="waits")
    until(one, 1500)
    scheduler = one.scheduler
    assert isinstance(scheduler, TimeSharing)
    for process in (sleeper, runs, waits):
        scheduler.lower(process, 7)
        assert process.level == 7
        scheduler.boost(process)
        assert process.level == HIGHEST
    scheduler.lower(runs, 3)
    until(one, 2000)
    assert waits.state is State.RUNNING and runs.state is State.READY
    signal.set()
    assert sleeper.level == RETURNS[HIGHEST] == 59
