"""The folder of a sweep: what it is, each point as it ends, the tables made of them.

A point is written when it ends, so a sweep that is interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..results import versions
from .work import Done, Failure

__all__ = ["SweepFolder", "sources_digest"]


def sources_digest() -> str:
    """A name for the code that results follow from: RTL, firmware and simulation, by content."""
    digest = hashlib.blake2b(digest_size=16)
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parent / "firmware", package.parent / "hdl"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".rdl", ".cpp", ".h", ".toml") and path.is_file():
                digest.update(f"{path.relative_to(package.parent)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


class SweepFolder:
    """The folder `path`, made if need be, of the sweep that `definition` (JSON values) describes.

    `sweep.json`: the definition; `points/KEY.json`, `points/KEY.log`: a point that has ended well;
    `table.csv`, `table.parquet`, `claims.csv`, `failures.csv`.

    Raises UserError if the folder holds something else, another sweep, or one that other code began.
    """

    NAME = "sweep.json"

    def __init__(self, path: Path, definition: Mapping[str, Any]) -> None:
        self.path = path
        wanted = dict(definition) | {"versions": versions(), "sources": sources_digest()}
        mark = path / self.NAME
        try:
            if mark.is_file():
                self._check(json.loads(mark.read_text()), wanted)
            elif path.is_dir() and any(path.iterdir()):
                raise UserError(
                    f"sweep folder {str(path)!r} is not empty and holds no sweep: name a new folder or a "
                    "sweep's"
                )
            self.points.mkdir(parents=True, exist_ok=True)
            self._write(mark, json.dumps(wanted, indent=2) + "\n")
        except OSError as error:
            raise UserError(f"sweep folder {str(path)!r} cannot be written: {error.strerror}") from None
        except ValueError:
            raise UserError(
                f"sweep folder {str(path)!r}: {self.NAME} is no JSON: name a new folder"
            ) from None

    def _check(self, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """A larger grid of the same experiment may follow: it takes over the points that it shares."""
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
        """Where the points that have ended are."""
        return self.path / "points"

    def done(self, key: str) -> Done | None:
        """What the point measured, if it has ended well."""
        try:
            return Done(**json.loads((self.points / f"{key}.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None  # not there, or not whole: it is run again

    def keep(self, key: str, what: Done | Failure) -> None:
        """Write what came of a point: whole or not at all."""
        self._write(self.points / f"{key}.log", what.log)
        if isinstance(what, Done):
            values = asdict(what) | {"log": ""}
            self._write(self.points / f"{key}.json", json.dumps(values) + "\n")

    def _write(self, path: Path, text: str) -> None:
        part = path.with_suffix(f"{path.suffix}.part")
        part.write_text(text)
        os.replace(part, path)
