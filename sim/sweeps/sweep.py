"""Runs a sweep: the points that are not done yet, each failure once more, then the tables."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import EXIT_FAILED, EXIT_OK
from ..experiments.framework.backend import Backend
from ..experiments.framework.base import Experiment, Outcome
from ..experiments.framework.plots import save_figure
from ..experiments.framework.results import rows
from ..experiments.framework.tables import table_rows, write_tables
from .code import CheckedBackend, code_here
from .curves import Run, sweep_plots
from .grid import Case, Task
from .store import SweepFolder
from .work import Done, Executor, Failure, Work

__all__ = ["SweepReport", "run_sweep"]

ATTEMPTS = 2
"""Runs of a point that fails: it is run once more, since machines of a cluster do fail."""
SETTING = "set_"
"""Beginning of the names of columns that hold the experiment's parameters, as `--set` takes them."""

Progress = Callable[[float, str], None]
"""A function that is told how many points are done (a fraction for one under way), and a line of text."""


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """A whole sweep.

    - `points`: how many it has.
    - `reused`: how many of them are from before.
    - `failures`: those that are left (label, why).
    - `claims`: those that do not hold (label, text).
    - `outside`: points outside a tolerance.
    - `files`: the files written.
    - `notes`: `Experiment.notes` of all combinations.
    """

    experiment: str
    points: int
    reused: int
    failures: Sequence[tuple[str, str]]
    broken_claims: Sequence[tuple[str, str]]
    outside: int
    files: Mapping[str, str]
    notes: Sequence[str] = ()

    @property
    def exit_status(self) -> int:
        """`EXIT_OK` if every point has a result.

        Tolerances and claims are for the published set-up, and a sweep leaves it. They are reported, and do not count.
        """
        return EXIT_FAILED if self.failures else EXIT_OK

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "experiment": self.experiment,
            "points": self.points,
            "reused": self.reused,
            "failures": [{"point": label, "why": why} for label, why in self.failures],
            "broken_claims": [{"case": label, "text": text} for label, text in self.broken_claims],
            "outside": self.outside,
            "notes": list(self.notes),
            "files": dict(self.files),
        }


def run_sweep(
    experiment: Experiment,
    found: Sequence[Case],
    listed: Sequence[Task],
    *,
    folder: SweepFolder,
    executor: Executor,
    backend: Backend,
    timeout_seconds: float,
    progress: Progress,
    failed: Callable[[str, str, bool], None],
) -> SweepReport:
    """Run the points of `listed` that `folder` does not hold yet.

    `failed` is told of each failure: the point, why, and whether it will be run again. The tables depend on
    neither the executor nor the order in which points end. Raises LanikaiError if nothing can be run.
    """
    folder.keep_inputs(file for case in found for file in case.inputs)
    checked = CheckedBackend(backend=backend, code=code_here())
    results = {task.key: done for task in listed if (done := folder.done(task.key))}
    reused = len(results)
    progress(reused, "")
    failures: dict[str, Failure] = {}
    by_key = {task.key: task for task in listed}
    for attempt in range(ATTEMPTS):
        missing = [
            Work(
                key=task.key,
                system=task.system,
                entry=experiment.entry,
                spec=task.spec,
                seed=task.seed,
                timeout_seconds=timeout_seconds,
                inputs=found[task.case].inputs,
            )
            for task in listed
            if task.key not in results
        ]
        if not missing:
            break

        def tell(fraction: float, text: str) -> None:
            progress(len(results) + fraction, text)

        running = executor.run(checked, missing, tell, scratch=folder.running, inputs=folder.inputs)
        with contextlib.closing(running) as ended:
            for work, what in ended:
                folder.keep(work.key, what)
                if isinstance(what, Failure):
                    failures[work.key] = what
                    failed(by_key[work.key].label, what.why, attempt + 1 < ATTEMPTS)
                else:
                    results[work.key] = what
                    failures.pop(work.key, None)
                progress(len(results), by_key[work.key].label)
    return _tables(experiment, found, listed, results, failures, folder, reused)


def _tables(
    experiment: Experiment,
    found: Sequence[Case],
    listed: Sequence[Task],
    results: Mapping[str, Done],
    failures: Mapping[str, Failure],
    folder: SweepFolder,
    reused: int,
) -> SweepReport:
    """Write the tables of all points that have a result."""
    import polars

    of_case: dict[int, list[Task]] = {}
    for task in listed:
        if task.key in results:
            of_case.setdefault(task.case, []).append(task)
    table: list[dict[str, Any]] = []
    claims: list[dict[str, Any]] = []
    detailed: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
    runs: list[Run] = []
    notes: dict[str, None] = {}
    outside = 0
    for number, case in enumerate(found):
        settings = {SETTING + key: _cell(value) for key, value in case.settings().items()}
        mine = of_case.get(number, [])
        outcomes = [_outcome(experiment, case, task, results[task.key]) for task in mine]
        runs += [Run(settings=case.settings(), outcome=outcome) for outcome in outcomes]
        notes |= dict.fromkeys(experiment.notes(case.parameters, [one.point for one in outcomes]))
        outside += sum(outcome.within is False for outcome in outcomes)
        detailed += [
            (settings | {"point": task.index, "seed": task.seed}, outcome.tables)
            for task, outcome in zip(mine, outcomes, strict=True)
        ]
        for row in rows(outcomes, experiment.by_flow, experiment.element, experiment.first_element):
            row["point"] = mine[row["point"]].index
            table.append(settings | row)
        if len(mine) == len(case.points):
            claims += [
                settings | {"claim": claim.text, "holds": claim.holds, "not_judged": claim.not_judged}
                for claim in experiment.claims(case.parameters, outcomes)
            ]
    names = {
        name: str(folder.path / name) for name in ("table.csv", "table.parquet", "claims.csv", "failures.csv")
    }
    frame = polars.DataFrame(table, infer_schema_length=None)
    frame.write_csv(names["table.csv"])
    frame.write_parquet(names["table.parquet"])
    polars.DataFrame(claims, infer_schema_length=None).write_csv(names["claims.csv"])
    if write_tables(folder.path / "tables", table_rows(detailed)):
        names["tables"] = str(folder.path / "tables")
    plots = sweep_plots(experiment, runs) if runs else {}
    if plots:
        names["plots"] = str(folder.path / "plots")
        Path(names["plots"]).mkdir(exist_ok=True)
        for name, draw in plots.items():
            save_figure(Path(names["plots"]) / f"{name}.png", draw)
    left = [(task.label, failures[task.key].why) for task in listed if task.key in failures]
    polars.DataFrame(left, schema={"point": polars.String, "why": polars.String}, orient="row").write_csv(
        names["failures.csv"]
    )
    broken = [
        (
            " ".join(f"{key.removeprefix(SETTING)}={row[key]}" for key in row if key.startswith(SETTING)),
            row["claim"],
        )
        for row in claims
        if row["holds"] is False
    ]
    return SweepReport(
        experiment=experiment.name,
        points=len(listed),
        reused=reused,
        failures=left,
        broken_claims=broken,
        outside=outside,
        files=names,
        notes=list(notes),
    )


def _outcome(experiment: Experiment, case: Case, task: Task, done: Done) -> Outcome:
    point = case.points[task.index]
    return Outcome(
        point=point,
        results=experiment.results(case.parameters, point, done.values),
        seed=task.seed,
        cycles=done.cycles,
        wall_seconds=done.wall_seconds,
        series=done.values.get("series", {}),
        tables=experiment.tables(case.parameters, point, done.values),
    )


def _cell(value: Any) -> Any:
    """A parameter as a table holds it: a list or an object as JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else value
