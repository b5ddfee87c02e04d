"""The report of a bench: medians, ratios within a run, a comparison with an earlier one; JSON and table."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import UserError
from ..experiments.framework.results import versions
from ..machine import cores
from ..user_files import read_json
from .cases import BenchCase

__all__ = ["BenchReport", "BenchResult", "earlier", "machine", "result"]

HOST_COUNTS = ("messages", "wakeups_per_message", "mean_latency_cycles")
"""The figures that a bench of hosts counts besides (`host_points.hosts_rate`)."""
FORMAT = 2
"""Number of the report's form. A report of another form is not read."""
PARTS = {
    "model": "the model alone",
    "main loop": "main loop, nobody waked",
    "hosts": "hosts' own code",
    "waking": "cocotb and VPI",
}
"""Headings of a profile's parts, in the order in which they add up to a whole cycle."""


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """One case, as a row of the report. Speeds are of processor time.

    - `case`, `load`: its name, and flits a node and cycle (None: a cluster at full rate).
    - `cycles_per_second`: under cocotb, the median of `runs` stretches.
    - `plain_loop_cycles_per_second`: of the model alone, the median (None for a cluster, whose model does nothing by
      itself).
    - `ratio`: of the one to the other, the median of the pairs' ratios.
    - `spread`: of `cycles_per_second`, largest less smallest over the median.
    - `build_seconds`: None if the model came from the cache.
    - `peak_memory_mb`: of the simulator's process, 10^6 bytes.
    - `samples`: of each run the two speeds.
    - `profile`: of hosts in Python (else None), the medians of microseconds a cycle by what took them.
    - `hosts`: of hosts in Python (else None), what else was counted.
    - `traffic`: of a network (else None), `accepted`, flits a node and cycle, and `latency_cycles`, the mean of the
      packets that arrived.
    """

    case: str
    load: float | None
    cycles_per_second: float
    plain_loop_cycles_per_second: float | None
    ratio: float | None
    runs: int
    spread: float
    build_seconds: float | None
    peak_memory_mb: float
    samples: Sequence[Sequence[float]]
    profile: Mapping[str, float] | None = None
    hosts: Mapping[str, float] | None = None
    traffic: Mapping[str, float] | None = None


def result(case: BenchCase, measured: Mapping[str, Any], build_seconds: float | None) -> BenchResult:
    """The medians of what a case measured."""
    samples = measured["samples"]
    speeds = [pair[0] for pair in samples]
    speed = statistics.median(speeds)
    alone = ratio = None
    if all(len(pair) == 2 for pair in samples):
        alone = statistics.median(pair[1] for pair in samples)
        ratio = statistics.median(pair[0] / pair[1] for pair in samples)
    return BenchResult(
        case=case.name,
        load=case.load,
        cycles_per_second=speed,
        plain_loop_cycles_per_second=alone,
        ratio=ratio,
        runs=len(samples),
        spread=(max(speeds) - min(speeds)) / speed,
        build_seconds=build_seconds,
        peak_memory_mb=measured["memory_bytes"] / 1e6,
        samples=samples,
        profile=_profile(case, measured["profile"]) if "profile" in measured else None,
        hosts={name: measured[name] for name in HOST_COUNTS} if "profile" in measured else None,
        traffic=measured.get("traffic"),
    )


def _profile(case: BenchCase, rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Medians of the parts of all rounds, microseconds a cycle."""
    return {name: 1e6 / case.cycles * statistics.median(one[name] for one in rounds) for name in rounds[0]}


def machine() -> dict[str, Any]:
    """The machine that the numbers were measured on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"processor": model, "cores": cores(), "system": platform.system()}


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    """All results; those of an earlier report (`before`, as `earlier` gives it); those with a peer (`beside`, as
    `Beside.as_json` gives them)."""

    results: Sequence[BenchResult]
    before: Mapping[str, Any] | None = None
    beside: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints and `--compare` reads."""
        found: dict[str, Any] = {
            "bench": FORMAT,
            "machine": machine(),
            "versions": versions(),
            "rows": [asdict(one) for one in self.results],
        }
        if self.beside:
            found["beside"] = dict(self.beside)
        if self.before:
            found["compared"] = {
                "machine": self.before["machine"],
                "versions": self.before["versions"],
                "ratios": {
                    one.case: ratio for one in self.results if (ratio := self._ratio(one)) is not None
                },
            }
        return found

    def _ratio(self, one: BenchResult) -> float | None:
        """Speed now over speed before."""
        assert self.before is not None
        for other in self.before["rows"]:
            if other["case"] == one.case:
                return one.cycles_per_second / float(other["cycles_per_second"])
        return None

    def table(self) -> Table:
        """The report as a table, for reading."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("case", no_wrap=True)
        headings = ["cycles/s", "model alone", "ratio", "spread", "build (s)", "MB"]
        for heading in headings + (["than before"] if self.before else []):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in self.results:
            cells = [
                f"{one.cycles_per_second:.0f}",
                _cell(one.plain_loop_cycles_per_second, ".0f"),
                _cell(one.ratio, ".0%"),
                f"{one.spread:.0%}",
                "cached" if one.build_seconds is None else f"{one.build_seconds:.0f}",
                f"{one.peak_memory_mb:.0f}",
            ]
            if self.before:
                cells.append(_cell(self._ratio(one), ".2f"))
            table.add_row(one.case, *cells)
        return table

    def profiles(self) -> Table | None:
        """The time of the parts of a cycle when messages pass through Python: microseconds a cycle; None without such a
        case."""
        shown = [one for one in self.results if one.profile and one.hosts]
        if not shown:
            return None
        table = Table(
            box=None, pad_edge=False, header_style="bold", title="microseconds a cycle", title_justify="left"
        )
        table.add_column("case", no_wrap=True)
        for heading in (*PARTS.values(), "messages", "wake-ups each"):
            table.add_column(heading, justify="right")
        for one in shown:
            assert one.profile and one.hosts
            parts = [f"{one.profile[name]:.2f}" for name in PARTS]
            counts = [f"{one.hosts['messages']:.0f}", f"{one.hosts['wakeups_per_message']:.1f}"]
            table.add_row(one.case, *parts, *counts)
        return table


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def earlier(path: Path) -> Mapping[str, Any]:
    """A report that `--json` wrote. Raises UserError."""
    found = read_json(path, "--compare")
    if not isinstance(found, dict) or found.get("bench") != FORMAT:
        raise UserError(
            f"--compare {str(path)!r}: no report of a bench; give a file that `bench --json` wrote"
        )
    return found
