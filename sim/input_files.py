"""The input files of a sweep's points: found in the parameters, named by content, brought to where a point runs.

A point's spec names an input file by its absolute path. In a sweep a mark stands in its place, which says what the
file holds, and whoever runs the point puts the path of a copy there. So an edit of the file makes other points, and no
machine needs the user's folders.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanikai.hdl.config import Config

from .errors import UserError

__all__ = ["MOST_KEPT_BYTES", "InputFile", "InputFolder", "input_files", "keep_inputs", "marked", "placed"]

MOST_KEPT_BYTES = 100_000_000
"""Largest input file of which a run keeps a copy."""


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file that parameters name: its absolute `path`, its `digest` (name and content)."""

    path: Path
    digest: str

    @property
    def mark(self) -> str:
        """The text that stands for its path."""
        return f"lanikai-input:{self.digest}/{self.path.name}"


def input_files(parameters: Config) -> tuple[InputFile, ...]:
    """Every file that a value of `parameters` names: a path, or a text with the name of a file that is there.

    Raises UserError for a file that cannot be read.
    """
    found: dict[Path, InputFile] = {}
    for value in _leaves(parameters.model_dump()):
        path = Path(value)
        if path.is_file():
            path = path.absolute()
            found[path] = InputFile(path=path, digest=_digest(path, _read(path)))
    return tuple(found.values())


def keep_inputs(parameters: Config, folder: Path) -> dict[str, str]:
    """Copy the files that `parameters` name into `folder`, so that a run can be repeated when they are gone.

    Only files of `MOST_KEPT_BYTES` at most whose names have an ending are taken: `mesh4x4` is a network, whatever lies
    about. Returns the place of each copy by the file's absolute path.
    """
    kept: dict[str, str] = {}
    for file in input_files(parameters):
        if not file.path.suffix or file.path.stat().st_size > MOST_KEPT_BYTES:
            continue
        place = folder / file.path.name
        if place.exists():  # from another folder
            place = folder / f"{file.digest[:8]}-{file.path.name}"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file.path, place)
        kept[str(file.path)] = str(place)
    return kept


def _leaves(value: Any) -> Iterator[str | Path]:
    """The paths and texts in a value of parameters that may be the name of a file."""
    if isinstance(value, Path) or (isinstance(value, str) and 0 < len(value) < 4096 and "\0" not in value):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for one in value:
            yield from _leaves(one)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"input file {str(path)!r} cannot be read: {error.strerror}") from None


def _digest(path: Path, content: bytes) -> str:
    return hashlib.blake2b(
        path.name.encode("utf-8", "surrogateescape") + b"\0" + content, digest_size=16
    ).hexdigest()


def marked(spec: Any, files: Sequence[InputFile]) -> Any:
    """`spec` with a mark in place of every absolute path of a file (links resolved or not)."""
    marks = {str(path): file.mark for file in files for path in (file.path, file.path.resolve())}
    return _replaced(spec, marks) if marks else spec


def placed(spec: Any, places: Mapping[str, Path]) -> Any:
    """`spec` with a path in place of every mark: `places` by mark."""
    return _replaced(spec, {mark: str(path) for mark, path in places.items()}) if places else spec


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {key: _replaced(one, texts) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(one, texts) for one in value]
    return value


class InputFolder:
    """Copies of input files below `root`, a folder each, named by the digest of their content."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def place(self, file: InputFile) -> Path | None:
        """The file's copy, if it is there."""
        path = self.root / file.digest / file.path.name
        return path if path.is_file() else None

    def content(self, file: InputFile) -> bytes:
        """The bytes of the file's copy. Raises OSError."""
        return (self.root / file.digest / file.path.name).read_bytes()

    def copy(self, file: InputFile) -> None:
        """Keep the file as it was when its name was found. Raises UserError if it has been edited since; OSError."""
        content = _read(file.path)
        if _digest(file.path, content) != file.digest:
            raise UserError(
                f"input file {str(file.path)!r} was edited while the sweep began: give the same command again"
            )
        self.keep(file, content)

    def keep(self, file: InputFile, content: bytes) -> Path:
        """Keep `content` as the file's copy, whole or not at all, and return its path. Raises OSError."""
        path = self.root / file.digest / file.path.name
        if not path.is_file():
            part = self.root / f"{file.digest}.{os.getpid()}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            (part / file.path.name).write_bytes(content)
            try:
                part.rename(path.parent)
            except OSError:
                shutil.rmtree(part, ignore_errors=True)
                if not path.is_file():  # or another process was first
                    raise
        return path
