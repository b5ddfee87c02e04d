"""The folder of a sweep: its definition, each point as it ends, the tables made of them.

A point is written when it ends, so a sweep that is interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..errors import UserError
from ..folder_lock import LOCK, lock_folder
from ..input_files import InputFile, InputFolder
from ..user_files import read_json
from ..version import own_version
from .code import code_here
from .work import Done, Failure

__all__ = ["SweepFolder"]


class SweepFolder:
    """The folder `path`, made if need be, of the sweep that `definition` (JSON values) describes.

    - `sweep.json`: the definition.
    - `points/KEY.json`, `points/KEY.log`: a point that has ended well.
    - `inputs`: a folder for each input file as the points have it.
    - `running/`: files of the points that run, on this machine.
    - `table.csv`, `table.parquet`, `claims.csv`, `failures.csv`, `tables/`, `plots/`.

    It is a context manager: the folder is this sweep's until the block ends. `new`: a number is added to the name of a
    folder that is there already.

    Raises UserError if the folder holds something else, another sweep, or one that other code began. Raises it, too, if
    another sweep is writing into the folder.
    """

    NAME = "sweep.json"

    def __init__(self, path: Path, definition: Mapping[str, Any], *, new: bool = False) -> None:
        self.path = path
        self._lock: FileLock | None = None
        code = code_here()
        wanted = dict(definition) | {
            "lanikai": own_version(),  # for the reader: `sources` is what is compared
            "versions": dict(code.versions),
            "sources": code.digest,
        }
        try:
            if new:
                self._make_new()
            self._check_content(wanted)
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.path, "sweep folder")
            # Again, since another sweep may have begun it in between.
            self._check_content(wanted)
            self.points.mkdir(exist_ok=True)
            self._sweep()
            self._write(self.path / self.NAME, json.dumps(wanted, indent=2) + "\n")
        except OSError as error:
            self.__exit__()
            raise UserError(f"sweep folder {str(self.path)!r} cannot be written: {error.strerror}") from None
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> SweepFolder:
        return self

    def __exit__(self, *_: object) -> None:
        """Free the folder for another sweep."""
        if self._lock is not None:
            shutil.rmtree(self.running, ignore_errors=True)
            self._lock.release()
            self._lock = None

    def _make_new(self) -> None:
        """Make a folder that nobody else has: the path, or that with a number. Raises OSError."""
        wanted, number = self.path, 1
        wanted.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                self.path.mkdir()
                return
            except FileExistsError:
                number += 1
                self.path = wanted.with_name(f"{wanted.name}-{number}")

    def _check_content(self, wanted: Mapping[str, Any]) -> None:
        """Raise UserError if the folder holds anything but the beginning of this sweep. Raises OSError."""
        mark = self.path / self.NAME
        if mark.is_file():
            found = read_json(mark, "sweep folder", UserError)
            if not isinstance(found, dict):
                raise UserError(f"sweep folder {str(mark)!r}: no object: name a new folder")
            self._check(found, wanted)
        elif self.path.is_dir() and any(item.name != LOCK for item in self.path.iterdir()):
            raise UserError(
                f"sweep folder {str(self.path)!r} is not empty and holds no sweep: name a new folder or a sweep's"
            )

    def _check(self, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Check that `wanted` is this sweep. A larger grid of the same experiment may follow: it takes over the points
        that it shares."""
        for key in ("experiment", "size"):
            if found.get(key) != wanted.get(key):
                raise UserError(
                    f"sweep folder {str(self.path)!r} holds a sweep with {key} {found.get(key)!r}, not "
                    f"{wanted.get(key)!r}: name a new folder"
                )
        for key in ("sources", "versions"):
            if found.get(key) != wanted[key]:
                raise UserError(
                    f"sweep folder {str(self.path)!r} was begun with other {key}, and no table may mix the "
                    "two: name a new folder"
                )

    @property
    def points(self) -> Path:
        """The folder of the points that have ended."""
        return self.path / "points"

    @property
    def running(self) -> Path:
        """The folder of points that run. Nothing of it is of any use to a later process."""
        return self.path / "running"

    @property
    def inputs(self) -> InputFolder:
        """The input files of the points."""
        return InputFolder(self.path / "inputs")

    def keep_inputs(self, files: Iterable[InputFile]) -> None:
        """Keep input files as they were when the points were made. Raises UserError if one has been edited since."""
        for file in {file.digest: file for file in files}.values():
            try:
                self.inputs.copy(file)
            except OSError as error:
                raise UserError(
                    f"sweep folder {str(self.path)!r} cannot be written: {error.strerror}"
                ) from None

    def _sweep(self) -> None:
        """Remove what a process that was killed has left: half-written files, and those of points that ran."""
        shutil.rmtree(self.running, ignore_errors=True)
        for folder in (self.path, self.points, self.inputs.root):
            for part in folder.glob("*.part"):
                if part.is_dir():
                    shutil.rmtree(part, ignore_errors=True)
                else:
                    part.unlink(missing_ok=True)

    def done(self, key: str) -> Done | None:
        """The measurement of the point, if it has ended well."""
        try:
            return Done(**json.loads((self.points / f"{key}.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None  # not there, or not whole: it is run again

    def keep(self, key: str, what: Done | Failure) -> None:
        """Write the outcome of a point: whole or not at all."""
        self._write(self.points / f"{key}.log", what.log)
        if isinstance(what, Done):
            values = asdict(what) | {"log": ""}
            self._write(self.points / f"{key}.json", json.dumps(values) + "\n")

    def _write(self, path: Path, text: str) -> None:
        part = path.with_suffix(f"{path.suffix}.{os.getpid()}.part")
        part.write_text(text)
        os.replace(part, path)
