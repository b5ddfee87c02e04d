"""The bench of threads: one simulation on several threads and on one, in turns."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import UserError
from ..experiments.framework.results import versions
from ..machine import Threads
from ..run import run
from .cases import BenchCase
from .report import machine

__all__ = ["ThreadsResult", "measure_threads", "threads_json", "threads_table"]


@dataclass(frozen=True, kw_only=True)
class ThreadsResult:
    """A case, as a row of the report. Speeds are of wall-clock time, medians of `samples`. They are of the model alone,
    or of adapters with their hosts in Python.

    - `threads`: how many there were.
    - `cycles_per_second`: on all of them. `one_thread_cycles_per_second`: on one.
    - `ratio`: of the one to the other, the median of neighbouring stretches.
    - `load_average`: processes that wanted to run, of the whole machine, before it began: above 0.5 it was not at rest.
    - `samples`: of each run the two speeds.
    """

    case: str
    threads: int
    cycles_per_second: float
    one_thread_cycles_per_second: float
    ratio: float
    load_average: float
    peak_memory_mb: float
    samples: Sequence[Sequence[float]]


def measure_threads(
    cases: Sequence[BenchCase], threads: int, runs: int, scratch: Path, tell: Callable[[str], None]
) -> list[ThreadsResult]:
    """Measure networks under load. Raises UserError for a case that has no threads."""
    for case in cases:
        if case.load is None or case.hosts:
            raise UserError(
                f"--threads: {case.name} is not measured on threads; give networks under load by --case"
            )
    results = []
    for case in cases:
        tell(case.name)
        system, load = case.system(), os.getloadavg()[0]
        spec = case.job(runs)[1]
        entry = "adapter_points:adapters_threads" if case.adapters else "points:threads_rate"
        entry, job = system.job(f"lanikai.sim.speed.{entry}", spec)
        done = run(
            system.build(),
            entry,
            job,
            out_dir=scratch / case.name,
            seed=1,
            threads=Threads(threads, asked=True),
        ).value
        samples = done["samples"]
        results.append(
            ThreadsResult(
                case=case.name,
                threads=done["threads"],
                cycles_per_second=statistics.median(pair[0] for pair in samples),
                one_thread_cycles_per_second=statistics.median(pair[1] for pair in samples),
                ratio=statistics.median(pair[0] / pair[1] for pair in samples),
                load_average=load,
                peak_memory_mb=done["memory_bytes"] / 1e6,
                samples=samples,
            )
        )
    return results


def threads_json(results: Sequence[ThreadsResult]) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {"machine": machine(), "versions": versions(), "threads": [asdict(one) for one in results]}


def threads_table(results: Sequence[ThreadsResult]) -> Table:
    """A row for each case."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("case", "threads", "cycles/s", "on one thread", "ratio", "MB", "load before"):
        table.add_column(heading, justify="left" if heading == "case" else "right", no_wrap=True)
    for one in results:
        speeds = (
            f"{one.cycles_per_second:,.0f}",
            f"{one.one_thread_cycles_per_second:,.0f}",
            f"{one.ratio:.2f}",
        )
        rest = f"{one.peak_memory_mb:.0f}", f"{one.load_average:.1f}"
        table.add_row(one.case, str(one.threads), *speeds, *rest)
    return table
