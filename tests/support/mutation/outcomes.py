"""The end of one mutant: its tests run in a child of a process that has them collected."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .child import TimedOut, in_child
from .places import text_at
from .plugin import PROOFS, Plugin
from .rewrite import Mutant
from .runs import Baseline, BaselineFailed

__all__ = ["Outcome", "in_order", "outcome"]

_LEAST_SECONDS, _TIMES_SLOWER = 15.0, 5.0
"""A test may take so many times the processor time that it takes without the mutant, and so much in any case."""
_WAITS = 20.0
"""A run that waits for something may take so many times its processor time, and at least ten minutes."""


@dataclass(frozen=True)
class Outcome:
    """`end`: "killed", "timed out", "undecided" or "survived". `by`, `why`: the test that failed and the first line of
    its message. `tests`: how many could run."""

    end: str
    tests: int
    by: str = ""
    why: str = ""


def in_order(tests: Sequence[str], seconds: Mapping[str, float], kills: Mapping[str, int]) -> list[str]:
    """The tests in the order in which they run: first the quickest case of each test, then the other cases.

    A test that killed others of the file comes before one that is as quick.
    """
    cost = {name: (seconds.get(name, 0.0) + 0.05) / (1 + 3 * kills.get(name, 0)) for name in tests}
    by_cost = sorted(tests, key=lambda name: (cost[name], name))
    first = {name.partition("[")[0]: name for name in reversed(by_cost)}
    return sorted(by_cost, key=lambda name: first[name.partition("[")[0]] != name)


def outcome(
    mutant: Mutant, base: Baseline, plugin: Plugin, *, kills: Counter[str], log: Path, budget_s: float | None
) -> Outcome:
    """Run the tests of one mutant until one fails, `plugin` being that of the collected tests.

    `kills` says how many mutants each test killed, and is kept up. `budget_s`: no test begins after so much processor
    time, and the mutant is undecided then.
    """
    order = in_order(base.mutants[mutant], base.seconds, kills)

    def limit(name: str) -> None:
        # A proof ends by itself. Its solver would take the limit for its own.
        most = resource.RLIM_INFINITY
        if not name.startswith(PROOFS):
            used = resource.getrusage(resource.RUSAGE_SELF)
            more = max(_LEAST_SECONDS, _TIMES_SLOWER * base.seconds.get(name, 0.0))
            most = int(used.ru_utime + used.ru_stime + more) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    try:
        told = in_child(
            lambda: plugin.run_mutant(mutant, order, before=limit, budget_s=budget_s),
            log=log,
            timeout_s=max(600.0, _WAITS * sum(base.seconds.get(name, 0.0) for name in order)),
        )
    except TimedOut:
        return Outcome("timed out", len(order))
    if not told["applied"]:
        where = f"{mutant.file}:{mutant.span[0]}: {text_at(mutant.file, mutant.span)}: {mutant.change}"
        raise BaselineFailed(f"{where}: no test made it ({log})")
    for name, why in told["failed"].items():
        kills[name] += 1
        return Outcome("killed", len(order), name, why)
    return Outcome("survived" if told["all"] else "undecided", len(order))
