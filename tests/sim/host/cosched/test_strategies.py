"""Strategies: table 6.1 in full, one file and one line each, and what each does on a message."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from lanikai.sim.host.cosched import strategies
from lanikai.sim.host.cosched.arrival import InterruptAndBoost, NoReschedule, PeriodicBoost
from lanikai.sim.host.cosched.cluster import CoschedCluster
from lanikai.sim.host.cosched.config import CoschedConfig
from lanikai.sim.host.cosched.endpoint import Message
from lanikai.sim.host.cosched.node import Node
from lanikai.sim.host.cosched.programs.life import Life
from lanikai.sim.host.cosched.strategies import STRATEGIES
from lanikai.sim.host.cosched.waiting import BusyWait, SpinBlock, SpinYield
from lanikai.sim.host.cpu.event_time import EventTime
from lanikai.sim.host.cpu.host import Host
from lanikai.sim.host.cpu.machine import MACHINES
from support.sim.cpu_workload import small_machine
from support.sim.stepped_host import SteppedHost

FOLDER = Path(strategies.__file__).parent
MESSAGE = Message(0, 0, b"", 0)


def test_the_table_of_the_thesis_is_whole() -> None:
    """Table 6.1: three ways to wait, three things on arrival; PB and PBT share a place."""
    cells: dict[tuple[type, type], list[str]] = {}
    for name in [name for name in STRATEGIES if name not in ("gang", "pbf")]:
        one = STRATEGIES[name]
        row = next(
            kind for kind in (NoReschedule, InterruptAndBoost, PeriodicBoost) if isinstance(one.arrival, kind)
        )
        cells.setdefault((row, type(one.waiting)), []).append(one.title)
    assert cells == {
        (NoReschedule, BusyWait): ["Local"],
        (NoReschedule, SpinBlock): ["SB"],
        (NoReschedule, SpinYield): ["SY"],
        (InterruptAndBoost, BusyWait): ["DCS"],
        (InterruptAndBoost, SpinBlock): ["DCS-SB"],
        (InterruptAndBoost, SpinYield): ["DCS-SY"],
        (PeriodicBoost, BusyWait): ["PB", "PBT"],
        (PeriodicBoost, SpinBlock): ["PB-SB"],
        (PeriodicBoost, SpinYield): ["PB-SY"],
    }


def test_a_strategy_is_one_file_and_one_line() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    tree = ast.parse((FOLDER / "__init__.py").read_text())
    (table,) = [node.value for node in tree.body if isinstance(node, ast.AnnAssign)]
    assert isinstance(table, ast.Dict)
    assert files == {ast.literal_eval(key) for key in table.keys if key is not None}
    for name, strategy in STRATEGIES.items():
        assert strategy.__module__ == f"{strategies.__name__}.{name}"


def node(strategy: str, processes: int = 3) -> Node:
    """A node whose processes compute for long, and have an endpoint each. The first one runs."""
    chosen = STRATEGIES[strategy]()
    host = Host(EventTime(167_000_000), MACHINES["ultra1"], chosen.scheduler(160_000_000))
    one = Node(host, chosen, CoschedConfig())

    async def main(process) -> None:
        await process.compute(1_000_000_000)

    for number in range(processes):
        endpoint = one.open()
        endpoint.process = host.start(main, name=f"process {number}", job=number)
    chosen.start(one, 1_000_000)
    return one


def runs_at(one: Node, milliseconds: float) -> int:
    host = one.host
    host.time.run(lambda: False, limit=round(milliseconds * 167_000))
    return host.running()[0].job


def test_a_message_for_a_process_that_does_not_run_boosts_it_under_dcs() -> None:
    one = node("dcs")
    assert runs_at(one, 4.5) == 0
    one.card.receive(one.endpoints[2], MESSAGE)
    assert runs_at(one, 5.5) == 2 and one.card.interrupts == 1
    # It runs now, and the card knows from its next question on.
    assert runs_at(one, 7.5) == 2
    one.card.receive(one.endpoints[2], MESSAGE)
    assert runs_at(one, 9.5) == 2 and one.card.interrupts == 1


def test_the_card_knows_late_who_runs_and_the_handler_looks_itself() -> None:
    one = node("dcs")
    assert runs_at(one, 4.5) == 0
    one.card.receive(one.endpoints[2], MESSAGE)
    # The switch is at a tick, 5 ms; the card asks at 5 ms, too, before it.
    assert runs_at(one, 5.2) == 2
    one.card.receive(one.endpoints[2], MESSAGE)
    assert runs_at(one, 5.3) == 2 and one.card.interrupts == 2
    assert one.endpoints[2].process is not None and one.endpoints[2].process.level == 59


@pytest.mark.parametrize(("strategy", "order"), [("pb", [1, 2, 1]), ("pbt", [1, 1, 1])])
def test_a_periodic_boost_takes_turns_or_the_latest(strategy, order) -> None:
    """Both other processes have messages that they do not take, the first of them the latest."""
    one = node(strategy)
    first, second = one.endpoints[1:]
    for at, endpoint in ((1.0, second), (1.1, first)):
        runs_at(one, at)
        one.card.receive(endpoint, MESSAGE)
    assert [runs_at(one, at) for at in (7.5, 17.5, 27.5)] == order
    assert one.card.interrupts == 0


def test_nothing_is_boosted_under_local() -> None:
    one = node("local")
    one.card.receive(one.endpoints[2], MESSAGE)
    assert runs_at(one, 50) == 0 and one.card.interrupts == 0


def played(kind, strategy: str, program, *, seconds: float, **settings) -> tuple[list, float]:
    """Everything that 8 nodes with 4 processes each do: who ran when, and what has arrived; and the processor time."""
    cluster = CoschedCluster(STRATEGIES[strategy](), seed=11, host_class=kind, record=True, **settings)
    for _ in range(4):
        cluster.add(program, 1000, spread_us=100)
    began = time.process_time()
    cluster.run(seconds)
    took = time.process_time() - began
    turns = [[(*turn[:2], turn[2].name) for turn in one.host.turns or ()] for one in cluster.nodes]
    queues = [[(one.last_arrival, len(one.inbox)) for one in node.endpoints] for node in cluster.nodes]
    assert any(last >= 0 for one in queues for last, _ in one)
    return [turns, queues, [node.card.interrupts for node in cluster.nodes]], took


@pytest.mark.parametrize(
    "strategy",
    ["dcs_sb", "pb_sy", *(pytest.param(one, marks=pytest.mark.full) for one in ("pb_sb", "dcs_sy", "pbf"))],
)
def test_cosched_is_the_same_as_cycle_by_cycle(strategy) -> None:
    """On a slow machine, for 60 ticks: a millisecond is 1000 cycles, and an iteration about as long."""
    config = CoschedConfig(send_ns=12_000, card_ns=11_000, driver_cycles=3, handler_cycles=3, boost_cycles=1)
    settings = {"seconds": 0.06, "machine": small_machine(), "config": config}
    computed, stepped = [played(kind, strategy, Life(6), **settings) for kind in (Host, SteppedHost)]
    assert computed[0] == stepped[0]
    assert sum(len(one) for one in computed[0][0]) > 100


def test_cosched_is_50_times_as_fast_as_cycle_by_cycle_with_equal_results() -> None:
    """For 0.3 ms of the machine of the experiment, which are 50,000 cycles of each node."""
    computed, stepped = [played(kind, "dcs", Life(30), seconds=0.0003) for kind in (Host, SteppedHost)]
    assert computed[0] == stepped[0]
    assert stepped[1] >= 50 * computed[1], (stepped[1], computed[1])
