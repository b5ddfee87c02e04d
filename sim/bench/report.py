"""What came of a bench: medians, ratios within a run, a comparison with an earlier one; JSON and table."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import UserError
from ..machine import cores
from ..results import versions
from ..user_files import read_json
from .cases import BenchCase

__all__ = ["BenchReport", "BenchResult", "earlier", "machine", "result"]

HOST_COUNTS = ("messages", "wakeups_per_message", "mean_latency_cycles")
"""What a bench of hosts counts besides (`host_points.hosts_rate`)."""
PARTS = {
    "model": "the model alone",
    "main loop": "main loop, nobody waked",
    "hosts": "hosts' own code",
    "waking": "cocotb and VPI",
}
"""Headings of a profile's parts, in the order in which they add up to a whole cycle."""


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """One case: medians of cycles a second of processor time under cocotb and of the model alone (None for a cluster,
    whose model does nothing by itself), the median of the pairs' ratios, of each run the two (`samples`), the ratio to
    the reference, the build's seconds (None if it came from the cache), the size of the process. Of hosts in Python
    also (else None): `profile`, the medians of microseconds a cycle by what took them, and `hosts`, what else was
    counted.
    """

    name: str
    cycles_per_second: float
    model_cycles_per_second: float | None
    ratio_to_model: float | None
    reference_cycles_per_second: float | None
    ratio_to_reference: float | None
    build_seconds: float | None
    memory_bytes: int
    samples: Sequence[Sequence[float]]
    profile: Mapping[str, float] | None = None
    hosts: Mapping[str, float] | None = None


def result(case: BenchCase, measured: Mapping[str, Any], build_seconds: float | None) -> BenchResult:
    """The medians of what a case measured."""
    samples = measured["samples"]
    speed = statistics.median(pair[0] for pair in samples)
    alone = ratio = None
    if all(len(pair) == 2 for pair in samples):
        alone = statistics.median(pair[1] for pair in samples)
        ratio = statistics.median(pair[0] / pair[1] for pair in samples)
    return BenchResult(
        name=case.name,
        cycles_per_second=speed,
        model_cycles_per_second=alone,
        ratio_to_model=ratio,
        reference_cycles_per_second=case.reference,
        ratio_to_reference=speed / case.reference if case.reference else None,
        build_seconds=build_seconds,
        memory_bytes=measured["memory_bytes"],
        samples=samples,
        profile=_profile(case, measured["profile"]) if "profile" in measured else None,
        hosts={name: measured[name] for name in HOST_COUNTS} if "profile" in measured else None,
    )


def _profile(case: BenchCase, rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Medians of the parts of all rounds, microseconds a cycle."""
    return {name: 1e6 / case.cycles * statistics.median(one[name] for one in rounds) for name in rounds[0]}


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
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
    """All results, and those of an earlier report (`before`, as `earlier` gives it)."""

    results: Sequence[BenchResult]
    before: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints and `--compare` reads."""
        found: dict[str, Any] = {
            "bench": 1,
            "machine": machine(),
            "versions": versions(),
            "results": [asdict(one) for one in self.results],
        }
        if self.before:
            found["compared"] = {
                "machine": self.before["machine"],
                "versions": self.before["versions"],
                "ratios": {
                    one.name: ratio for one in self.results if (ratio := self._ratio(one)) is not None
                },
            }
        return found

    def _ratio(self, one: BenchResult) -> float | None:
        """Speed now over speed before."""
        assert self.before is not None
        for other in self.before["results"]:
            if other["name"] == one.name:
                return one.cycles_per_second / float(other["cycles_per_second"])
        return None

    def table(self) -> Table:
        """For reading."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("case", no_wrap=True)
        headings = ["cycles/s", "model alone", "ratio", "reference", "faster by", "build (s)", "MB"]
        for heading in headings + (["than before"] if self.before else []):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in self.results:
            cells = [
                f"{one.cycles_per_second:.0f}",
                _cell(one.model_cycles_per_second, ".0f"),
                _cell(one.ratio_to_model, ".0%"),
                _cell(one.reference_cycles_per_second, ".0f"),
                _cell(one.ratio_to_reference, ".2f"),
                "cached" if one.build_seconds is None else f"{one.build_seconds:.0f}",
                f"{one.memory_bytes / 1e6:.0f}",
            ]
            if self.before:
                cells.append(_cell(self._ratio(one), ".2f"))
            table.add_row(one.name, *cells)
        return table

    def profiles(self) -> Table | None:
        """Where time goes when messages pass through Python: microseconds a cycle; None without such a case."""
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
            table.add_row(one.name, *parts, *counts)
        return table


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def earlier(path: Path) -> Mapping[str, Any]:
    """A report that `--json` wrote. Raises UserError."""
    found = read_json(path, "--compare")
    if not isinstance(found, dict) or found.get("bench") != 1:
        raise UserError(
            f"--compare {str(path)!r}: no report of a bench; give a file that `bench --json` wrote"
        )
    return found
