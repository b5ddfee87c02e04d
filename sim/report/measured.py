"""The rows of a run or a sweep, one form for both: which columns are parameters, which are results."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import LanikaiError
from ..experiments.framework.base import Experiment
from ..experiments.framework.repetitions import half_width
from ..experiments.framework.results import rows
from .folders import RunData, SweepData
from .words import is_number, same_and_varying

__all__ = ["Line", "Measured", "lines", "of_run", "of_sweep", "student_factors"]

SETTING = "set_"
"""Beginning of a sweep's columns that hold parameters."""
BOOKKEEPING = ("point", "within", "seed", "cycles")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Rows of measurements.

    - `rows`: one for each flow (class, rank, ...) of each point and seed.
    - `parameters`: the names of columns that were set. `element` is one of them where points have several flows.
    - `results`: the names of those that were measured.
    - `element`: what numbers the flows of a point, or "" if no point has several.
    - `first`: the number of the first flow.
    """

    rows: Sequence[Mapping[str, Any]]
    parameters: Sequence[str]
    results: Sequence[str]
    element: str
    first: int

    def varying(self) -> list[str]:
        """The parameters in which points differ, and what numbers the flows of a point."""
        found = same_and_varying(self.together(), self.parameters)[1]
        return [*(name for name in found if name != self.element), *([self.element] if self.element else [])]

    def of_points(self) -> list[str]:
        """The parameters in which points differ."""
        return [name for name in self.varying() if name != self.element]

    def of_flows(self) -> list[str]:
        """The parameters that each flow of a point has for itself."""
        moving = same_and_varying(self.rows, self.parameters)[1]
        return [name for name in moving if name not in self.varying()]

    def numeric(self) -> list[str]:
        """The results that are numbers, in some row at least, and nothing else."""
        return [
            name
            for name in self.results
            if any(is_number(row.get(name)) for row in self.rows)
            and all(row.get(name) is None or is_number(row.get(name)) for row in self.rows)
        ]

    def results_of_flows(self) -> list[str]:
        """The results in which flows of one point and seed differ."""
        if not self.element:
            return []
        firsts: dict[str, Mapping[str, Any]] = {}
        found: dict[str, None] = {}
        for row in self.rows:
            key = str([row.get(name) for name in (*BOOKKEEPING, *self.of_points())])
            first = firsts.setdefault(key, row)
            found |= {name: None for name in self.results if row.get(name) != first.get(name)}
        return list(found)

    def together(self) -> list[Mapping[str, Any]]:
        """One row for each point and seed: that of the first flow."""
        if not self.element:
            return list(self.rows)
        return [row for row in self.rows if row.get(self.element) in (None, self.first)]


def _shape(experiment: Experiment | None) -> tuple[Sequence[str], str, int]:
    """The lists that are dealt out to flows, the flow's name, and the first one's number."""
    if experiment is None:
        return (), "flow", 0
    return experiment.by_flow, experiment.element, experiment.first_element


def of_run(run: RunData) -> Measured:
    """The rows of a run, each seed by itself."""
    by_flow, element, first = _shape(run.experiment)
    single, numbers = [], []
    for number, outcome in enumerate(run.outcomes):
        for one in outcome.repetitions or ({"seed": outcome.seed, "results": outcome.results},):
            single.append(
                replace(outcome, results=one["results"], seed=one["seed"], repetitions=(), intervals={})
            )
            numbers.append(number)
    found = [dict(row) | {"point": numbers[row["point"]]} for row in rows(single, by_flow, element, first)]
    names = list(dict.fromkeys(name for outcome in single for name in outcome.point.parameters))
    return _measured(found, names, element, first)


def of_sweep(sweep: SweepData) -> Measured:
    """The rows of a sweep. A parameter that points have of their own takes the place of the one that was set."""
    _, element, first = _shape(sweep.experiment)
    own = _point_parameters(sweep)
    settings = [name for name in sweep.rows[0] if name.startswith(SETTING) and name != f"{SETTING}seed"]
    renamed = {name: name.removeprefix(SETTING) for name in settings}
    taken = set(sweep.rows[0]) - set(settings)
    found = [
        {renamed.get(key, key): value for key, value in row.items() if renamed.get(key) not in taken}
        for row in sweep.rows
    ]
    names = [renamed[name] for name in settings if renamed[name] not in taken]
    names += [name for name in own if name in found[0] and name not in names]
    return _measured(found, names, element, first)


def _point_parameters(sweep: SweepData) -> list[str]:
    """The names of the parameters of the points, as the experiment has them now; none if it cannot say."""
    if sweep.experiment is None:
        return []
    try:
        points = sweep.experiment.points(sweep.experiment.Parameters(), "quick")
    except (LanikaiError, ValueError):
        return []  # it needs a parameter that has no default
    return list(dict.fromkeys(name for point in points for name in point.parameters))


def _measured(found: list[dict[str, Any]], names: list[str], element: str, first: int) -> Measured:
    several = any(row.get(element) is not None for row in found)
    columns = list(dict.fromkeys(name for row in found for name in row))
    ignored = {*names, *BOOKKEEPING, element, f"{SETTING}seed"}
    return Measured(
        rows=found,
        parameters=[*names, *([element] if several else [])],
        results=[
            name
            for name in columns
            if name not in ignored and not name.startswith(("published_", "interval_"))
        ],
        element=element if several else "",
        first=first,
    )


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a plot: its name, means `y` at each `x`, and half of each mean's 95% interval (None of one value)."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    half: Sequence[float | None]


def lines(found: Sequence[Mapping[str, Any]], x: str, y: str, by: Sequence[str], text: Any) -> list[Line]:
    """A line for each combination of `by`. Rows that differ in no more than the seed are averaged.

    `text`: makes the name of a parameter readable. Rows without a number for `x` and `y` are left out.
    """
    of_line: dict[str, dict[float, list[float]]] = {}
    for row in found:
        if is_number(row.get(x)) and is_number(row.get(y)) and math.isfinite(row[y]):
            name = ", ".join(f"{text(key)} {row.get(key)}" for key in by)
            of_line.setdefault(name, {}).setdefault(row[x], []).append(row[y])
    return [
        Line(
            name=name,
            x=sorted(places),
            y=[statistics.fmean(places[at]) for at in sorted(places)],
            half=[half_width(places[at]) if len(places[at]) > 1 else None for at in sorted(places)],
        )
        for name, places in of_line.items()
    ]


def student_factors(most: int = 32) -> list[float]:
    """The factors of a 95% interval of 2 to `most` values: half its length in standard errors."""
    return [
        half_width(values) * math.sqrt(len(values)) / statistics.stdev(values)
        for values in (list(range(count)) for count in range(2, most + 1))
    ]
