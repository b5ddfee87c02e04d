"""Folders that a report is made of: a run's, a sweep's, and those that hold several of either.

Reading checks what the pages rely on. A fault is one line that names the file (`UserError`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..experiments.framework.base import Experiment, Outcome, Point
from ..user_files import read_json

__all__ = ["Collection", "RunData", "SweepData", "read_folder", "read_folders"]

RUN_FILE = "results.json"
SWEEP_FILE = "sweep.json"
TABLE_FILE = "table.parquet"
DEPTH = 2
"""Levels of folders below a named one in which runs and sweeps are looked for."""
MOST_FOLDERS = 10_000
"""Most folders that are looked through. More are no folder of results."""
RUN_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "experiment": str,
    "size": str,
    "seed": int,
    "points": list,
    "claims": list,
}
POINT_KEYS = ("parameters", "results")
SWEEP_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "experiment": str,
    "size": str,
    "seed": int,
    "grid": list,
}


@dataclass(frozen=True)
class RunData:
    """A run as its folder has it: the `path`, and the object of `results.json`."""

    path: Path
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The experiment."""
        return str(self.facts["experiment"])

    @cached_property
    def experiment(self) -> Experiment | None:
        """The experiment of this package, or None where it has none of that name."""
        return find_experiment(self.name)

    @property
    def written(self) -> float:
        """The time at which the results were written, seconds since the epoch."""
        return (self.path / RUN_FILE).stat().st_mtime

    @property
    def points(self) -> Sequence[Mapping[str, Any]]:
        """The points, as `results.json` has them."""
        found: Sequence[Mapping[str, Any]] = self.facts["points"]
        return found

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The points as outcomes. One of several seeds has `intervals` and `repetitions`."""
        return [
            Outcome(
                point=Point(
                    label=f"point {number}",
                    parameters=point["parameters"],
                    spec={},
                    published=point.get("published"),
                    tolerance=point.get("tolerance"),
                ),
                results=point["results"],
                seed=point.get("seed", 0),
                cycles=point.get("cycles", 0),
                wall_seconds=0.0,
                intervals=point.get("intervals", {}),
                repetitions=point.get("repetitions", ()),
            )
            for number, point in enumerate(self.points)
        ]


@dataclass(frozen=True)
class SweepData:
    """A sweep as its folder has it.

    - `path`: the folder.
    - `facts`: the object of `sweep.json`.
    - `rows`: those of its table, a dictionary each.
    - `claims`, `failures`: the rows of `claims.csv` and `failures.csv`.
    """

    path: Path
    facts: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    claims: Sequence[Mapping[str, Any]]
    failures: Sequence[Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The experiment."""
        return str(self.facts["experiment"])

    @cached_property
    def experiment(self) -> Experiment | None:
        """The experiment of this package, or None where it has none of that name."""
        return find_experiment(self.name)

    @property
    def written(self) -> float:
        """The time at which the table was written, seconds since the epoch."""
        return (self.path / TABLE_FILE).stat().st_mtime


@dataclass(frozen=True)
class Collection:
    """Several runs and sweeps: those below `paths`, and a line for each folder that could not be read."""

    paths: Sequence[Path]
    runs: Sequence[RunData]
    sweeps: Sequence[SweepData]
    broken: Sequence[str]


def find_experiment(name: str) -> Experiment | None:
    """The experiment `name`, or None if this package has none."""
    from ..experiments.registry import EXPERIMENTS

    return EXPERIMENTS.get(name)


def read_folders(paths: Sequence[Path]) -> RunData | SweepData | Collection:
    """The run or sweep that the only path names; else everything below the paths. Raises UserError."""
    for path in paths:
        if not path.exists():
            raise UserError(
                f"there is no folder {str(path)!r}: give that of a run or a sweep, or one that holds some"
            )
        if not path.is_dir():
            raise UserError(
                f"{str(path)!r} is a file: give the folder of a run or a sweep, or one that holds some"
            )
    if len(paths) == 1 and (found := read_folder(paths[0])):
        return found
    runs: list[RunData] = []
    sweeps: list[SweepData] = []
    broken: list[str] = []
    for folder in dict.fromkeys(one for path in paths for one in _results_below(path)):
        try:
            one = read_folder(folder)
        except UserError as error:
            broken.append(str(error))
            continue
        if isinstance(one, RunData):
            runs.append(one)
        elif one:
            sweeps.append(one)
    if not runs and not sweeps:
        why = f" ({broken[0]})" if broken else ""
        names = ", ".join(repr(str(path)) for path in paths)
        raise UserError(
            f"no results of a run or a sweep in {names}{why}: make some with `lanikai run NAME` or `lanikai sweep NAME`"
        )
    return Collection(paths, runs, sweeps, broken)


def _results_below(path: Path) -> Iterator[Path]:
    """Every folder at most `DEPTH` levels below `path`, itself included, that holds a run's or a sweep's results.

    Raises UserError for more folders than those of results.
    """
    level, seen = [path], 0
    for _ in range(DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            seen += 1
            if seen > MOST_FOLDERS:
                raise UserError(
                    f"{str(path)!r} has more than {MOST_FOLDERS} folders: name one that holds results alone"
                )
            if (folder / RUN_FILE).exists() or (folder / SWEEP_FILE).exists():
                yield folder
                continue
            try:
                below += sorted(
                    one for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")
                )
            except OSError:
                continue  # not readable by us, so no results of ours
        level = below


def read_folder(path: Path) -> RunData | SweepData | None:
    """The run or sweep in the folder itself; None if it holds neither. Raises UserError for a broken one."""
    if (path / RUN_FILE).exists():
        return _read_run(path)
    if (path / SWEEP_FILE).exists():
        return _read_sweep(path)
    return None


def _read_run(path: Path) -> RunData:
    file = path / RUN_FILE
    facts = _object(file, RUN_KEYS)
    for number, point in enumerate(facts["points"]):
        if not isinstance(point, dict) or any(not isinstance(point.get(key), dict) for key in POINT_KEYS):
            raise UserError(
                f"results {str(file)!r}: point {number} has no {' and no '.join(POINT_KEYS)}: run it again"
            )
        for key in ("published", "tolerance", "intervals"):
            if not isinstance(point.get(key) or {}, dict):
                raise UserError(f"results {str(file)!r}: {key} of point {number} is no object: run it again")
    for key in ("claims", "claims_not_judged"):
        if not all(isinstance(claim, dict) and "text" in claim for claim in facts.get(key, ())):
            raise UserError(f"results {str(file)!r}: a claim of {key} has no text: run it again")
    return RunData(path, facts)


def _read_sweep(path: Path) -> SweepData:
    facts = _object(path / SWEEP_FILE, SWEEP_KEYS)
    if not (path / TABLE_FILE).exists():
        raise UserError(
            f"sweep {str(path)!r} has no {TABLE_FILE} yet: give the same `lanikai sweep` again, and it goes on"
        )
    rows = _frame(path / TABLE_FILE)
    if not rows:
        raise UserError(
            f"sweep {str(path)!r} has no point with a result: failures.csv says why; the same command runs "
            "them again"
        )
    return SweepData(path, facts, rows, _frame(path / "claims.csv"), _frame(path / "failures.csv"))


def _object(file: Path, keys: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """The object in a JSON file, whose `keys` have values of their types. Raises UserError."""
    facts = read_json(file, "results", UserError)
    if not isinstance(facts, dict):
        raise UserError(f"results {str(file)!r}: no object: run it again")
    for key, kind in keys.items():
        if not isinstance(facts.get(key), kind):
            found = "is missing" if key not in facts else f"is {str(facts[key])[:40]!r}"
            raise UserError(f"results {str(file)!r}: {key} {found}: run it again")
    return facts


def _frame(file: Path) -> list[dict[str, Any]]:
    """The rows of a table; none if there is no such file. Raises UserError."""
    import polars

    if not file.exists() or not file.stat().st_size:
        return []
    try:
        if file.suffix == ".parquet":
            return polars.read_parquet(file).to_dicts()
        return polars.read_csv(file, infer_schema_length=None).to_dicts()
    except polars.exceptions.NoDataError:
        return []
    except (polars.exceptions.PolarsError, OSError) as error:
        raise UserError(f"table {str(file)!r} cannot be read: {str(error).splitlines()[0]}") from None
