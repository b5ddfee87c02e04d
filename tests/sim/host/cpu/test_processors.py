"""Processors of hosts: what takes time, who gets it, and that computed time is the time of every cycle."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from lanikai.sim.host.cpu.event_time import EventTime
from lanikai.sim.host.cpu.host import Host
from lanikai.sim.host.cpu.machine import ASSUMED, MACHINES, Price
from lanikai.sim.host.cpu.process import State
from lanikai.sim.host.cpu.requests import Signal, Spin, Work
from lanikai.sim.host.cpu.round_robin import RoundRobin
from lanikai.sim.host.cpu.timekeeper import Rank
from support.sim.cpu_workload import HZ, SCHEDULERS, Workload, small_machine
from support.sim.stepped_host import SteppedHost

FOREVER = 10_000_000


def host(**options: Any) -> Host:
    """A host of the small machine, with a slice of 3 ms: 3000 cycles."""
    return Host(EventTime(HZ), small_machine(), RoundRobin(3), **options)


def run(one: Host, limit: int = FOREVER) -> None:
    assert one.time.run(lambda: not one.processes, limit=limit)  # type: ignore[attr-defined]


def begin(one: Host, *programs: Any) -> list[Any]:
    return [one.start(program, name=f"process {number}") for number, program in enumerate(programs)]


def computing(cycles: int) -> Any:
    async def main(process: Any) -> None:
        await process.compute(cycles)

    return main


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("repetition", range(2))
def test_computed_time_is_the_time_of_every_cycle(scheduler: str, repetition: int) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    seen = []
    for kind in (Host, SteppedHost):
        work = Workload(EventTime(HZ), seed, scheduler, kind=kind, steps=15)
        assert work.time.run(lambda work=work: work.over, limit=FOREVER)  # type: ignore[attr-defined]
        seen.append(work.seen())
    assert seen[0] == seen[1]
    assert len(seen[0]["log"]) >= 90


def test_each_thing_takes_its_price() -> None:
    one = host()

    async def main(process: Any) -> None:
        machine, now = one.machine, one.time.cycle
        for request, cycles in (
            (process.compute(123), 123),
            (process.copy(10), 10 * machine.memory_word.cycles),
            (process.copy(10, cached=True), 10 * machine.cache_word.cycles),
            (process.read_card(2), 2 * machine.card_read.cycles),
            (process.write_card(2), 2 * machine.card_write.cycles),
            (process.system_call(50), 50 + machine.system_call.cycles),
            (process.overhead(5000), 5),
        ):
            await request
            assert one.time.cycle - now == cycles, request
            now = one.time.cycle

    (process,) = begin(one, main)
    run(one)
    assert process.ended_at == process.used + one.machine.context_switch.cycles
    assert process.worked == 123


def test_processes_take_turns_and_a_switch_costs() -> None:
    one = host(record=True)
    processes = begin(one, computing(5000), computing(5000))
    run(one)
    assert [process.used for process in processes] == [5000, 5000]
    # Slices of 3, 3 and again 3 ticks; four turns, each with a switch, and nothing else.
    assert [turn[2].name for turn in one.turns or ()] == [f"process {number}" for number in (0, 1, 0, 1)]
    assert one.time.cycle == 10_000 + 4 * 11 == 10_000 + one.processors[0].kernel_cycles


def test_a_process_that_spins_takes_time_from_one_that_computes() -> None:
    def seconds(wait: str) -> int:
        one, signal = host(), Signal()

        async def waits(process: Any) -> None:
            await (process.spin(signal) if wait == "spin" else process.block(signal))

        _, busy = begin(one, waits, computing(9000))
        busy.on_end = signal.set
        run(one)
        return busy.ended_at or 0

    assert seconds("block") == 9000 + 2 * 11
    # The spinning one has every other slice. A switch comes off each: three are too few by 33 cycles.
    assert seconds("spin") == 7 * 3000 + 11 + (9000 - 3 * (3000 - 11))


def test_a_process_that_is_not_scheduled_makes_no_progress() -> None:
    one = host()
    first, second = begin(one, computing(2900), computing(10))
    one.time.run(lambda: one.time.cycle >= 2800, limit=2800)  # type: ignore[attr-defined]
    assert second.state is State.READY and second.used == 0
    run(one)
    assert (first.ended_at, second.ended_at) == (2911, 2911 + 21)


def test_an_interrupt_takes_time_of_the_process_that_runs() -> None:
    one = host()
    (process,) = begin(one, computing(1000))
    taken = []
    for at in (500, 502):
        one.time.call_at(
            at, Rank.OUTSIDE, lambda _: one.interrupt(lambda: taken.append(one.time.cycle), cycles=20), 0
        )
    run(one)
    # The second waits for the first.
    assert taken == [525, 550]
    assert (process.used, process.ended_at) == (1000, 11 + 1000 + 50)


def test_a_spin_ends_at_the_end_of_a_look() -> None:
    one, signal, results = host(), Signal(), []

    async def main(process: Any) -> None:
        results.append((await process.spin(signal, 10), process.used))
        results.append((await process.spin(signal), process.used))

    begin(one, main)
    one.time.call_at(11 + 21, Rank.OUTSIDE, lambda _: signal.set(), 0)
    run(one)
    # A limit is whole looks of 4 cycles: 12. Then it is set after 9 cycles, seen after 12.
    assert results == [(False, 12), (True, 24)]


def test_two_processors_run_two_processes() -> None:
    one = host(processors=2)
    begin(one, computing(5000), computing(5000))
    run(one)
    assert one.time.cycle == 5011


def test_a_foreign_wait_is_refused() -> None:
    class Foreign:
        def __await__(self) -> Any:
            yield "a trigger"

    async def main(process: Any) -> None:
        await Foreign()

    one = host()
    begin(one, main)
    with pytest.raises(TypeError, match=r"process 0 awaits 'a trigger', which is not its host's"):
        run(one)


@pytest.mark.parametrize(
    "make", [lambda: Work(-1), lambda: Spin(Signal(), 0), lambda: Price(-1, "x"), lambda: Price(1, "")]
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize("name", MACHINES)
def test_every_price_has_a_source(name: str) -> None:
    machine = MACHINES[name]
    assert machine.source.startswith("nagar-thesis-2001")
    assert {"nagar-thesis-2001", ASSUMED} >= {
        price.source.replace(":", " ").split()[0] for price in machine.prices().values()
    }
    assert machine.cycles(1000) == machine.hz // 1_000_000
    assert machine.cycles(0) == 0


def test_stretches_of_computing_cost_nothing() -> None:
    """8 hosts with 4 processes that compute for a simulated hour: events follow from slices alone."""
    clock = EventTime(167_000_000)
    hosts = [Host(clock, MACHINES["ultra1"], RoundRobin(1000), node=node) for node in range(8)]
    for one in hosts:
        begin(one, *[computing(167_000_000 * 900)] * 4)
    before = time.process_time()
    assert clock.run(lambda: not any(one.processes for one in hosts), limit=1 << 60)
    assert clock.cycle > 167_000_000 * 3600 and clock.events < 8 * 3600 * 4
    assert time.process_time() - before < 20
