"""Stimuli for monitors: cycle by cycle, with the rules that are told to be broken in each."""

from __future__ import annotations

from typing import Any

from amaranth import Value
from amaranth.lib import data
from amaranth.sim import Simulator

__all__ = ["broken_rules"]


def _set(context: Any, monitor: Any, path: str, value: Any) -> None:
    member = monitor
    for step in path.split("."):
        member = member[step] if isinstance(member, data.View) else getattr(member, step)
    context.set(Value.cast(member), value)


def broken_rules(monitor: Any, cycles: list[dict[str, int]]) -> list[tuple[int, str]]:
    """The (cycle, rule) pairs that `monitor` tells, when its inputs have the values of `cycles`.

    A name is that of a member, or `member.field` of one that is a struct. All others are 0 in that cycle.
    """
    found: list[tuple[int, str]] = []

    async def bench(context: Any) -> None:
        used: set[str] = set()
        for number, values in enumerate(cycles):
            used |= values.keys()
            for path in used:
                _set(context, monitor, path, values.get(path, 0))
            await context.delay(1e-9)
            found.extend((number, rule) for rule in monitor.rules if context.get(monitor.violation[rule]))
            await context.tick()

    simulator = Simulator(monitor)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found
