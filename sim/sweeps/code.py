"""The code that a point's result follows from: its name, and whether a process still runs what it started with."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import SimulationError
from ..experiments.framework.backend import Backend, Built, Job, Measured, Progress, Variant
from ..experiments.framework.results import versions
from ..extensions import outside_roots

__all__ = ["CheckedBackend", "Code", "OtherCode", "check_code", "code_here"]

_PACKAGE = Path(__file__).resolve().parents[2]
_ROOTS = tuple(_PACKAGE / name for name in ("sim", "firmware", "hdl"))
_RECENT_SECONDS = 1.0
"""Age of a look at the files that is good enough before a point. The look after it is always a new one."""
_MADE = (".pyc", ".pyo", ".so", ".swp", "~")
"""Ends of names of files that come and go without the code's being another."""


class OtherCode(SimulationError):
    """A process has other code than the sweep: its results would not be the sweep's."""


@dataclass(frozen=True, kw_only=True)
class Code:
    """The code of a machine: a `digest` of files, and the `versions` of what they are run with.

    The files are those of the package (RTL, firmware, simulation, data that comes along), and of the extensions of
    other distributions.

    Lanikai's own version is none of them. It changes with every commit, the digest with the package's files alone.
    """

    digest: str
    versions: Mapping[str, str]

    @property
    def name(self) -> str:
        """A short name for both."""
        text = f"{self.digest} {sorted(self.versions.items())}"
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def difference(self, other: Code) -> str:
        """The first difference of `other`, in words; empty if the two are the same."""
        for name, mine in self.versions.items():
            if other.versions.get(name) != mine:
                return f"{name} {other.versions.get(name)}, not {mine}"
        return "" if self.digest == other.digest else f"sources {other.digest[:8]}, not {self.digest[:8]}"


class _Files:
    """Every file of the package with its time and size when it was read."""

    def __init__(self) -> None:
        self.folders, self.files = _listed()
        self.digests = {path: _digest(path) for path in self.files}
        # As text: a Path takes as long as asking for its time does, and there are hundreds, for each point.
        self._names = [str(path) for path in (*self.folders, *self.files)]
        self.stamp = self._stamp()
        self._good_at = time.monotonic()

    def digest(self) -> str:
        """A name for all files by path and content."""
        whole = hashlib.blake2b(digest_size=16)
        for path, digest in sorted(self.digests.items()):
            whole.update(f"{_name(path)}\0{digest}\0".encode())
        return whole.hexdigest()

    def _stamp(self) -> list[int]:
        """Time and size of each folder and file, one after the other; -1 for what has gone."""
        stamp = []
        for name in self._names:
            try:
                found = os.stat(name)
            except OSError:
                stamp.append(-1)
            else:
                stamp += (found.st_mtime_ns, found.st_size)
        return stamp

    def changed(self, recent_seconds: float) -> Path | None:
        """A file whose content is not what it was, or that came or went. None if there is none.

        It takes a millisecond or two: files are read again only if a time or size differs. After a look at most
        `recent_seconds` old, at which nothing had changed, there is none.
        """
        now = time.monotonic()
        if now - self._good_at < recent_seconds:
            return None
        stamp = self._stamp()
        if stamp != self.stamp:
            self._good_at = -math.inf
            _, files = _listed()
            for path in sorted({*files, *self.files}):
                if self.digests.get(path) != _digest(path):
                    return path
        self.stamp, self._good_at = stamp, now
        return None


def _listed() -> tuple[list[Path], list[Path]]:
    """Folders and files of the package."""
    folders, files = [], []
    outside = outside_roots()
    files += [root for root in outside if root.is_file()]
    for root in (*_ROOTS, *outside):
        for folder, names, found in os.walk(root):
            names[:] = [name for name in names if name != "__pycache__" and not name.startswith(".")]
            folders.append(Path(folder))
            files += [
                Path(folder, name) for name in found if not name.startswith(".") and not name.endswith(_MADE)
            ]
    return folders, sorted(files)


def _name(path: Path) -> str:
    """A file's name, the same on every machine: from the package on, ours or that of an extension."""
    bases = (_PACKAGE, *(root.parent for root in outside_roots()))
    return next(path.relative_to(base).as_posix() for base in bases if path.is_relative_to(base))


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""  # it has gone


@cache
def _files() -> _Files:
    return _Files()


@cache
def code_here() -> Code:
    """The code of this process, as it was when this was first called."""
    others = {name: number for name, number in versions().items() if name != "lanikai"}
    return Code(digest=_files().digest(), versions=others)


def check_code(wanted: Code, *, recent_seconds: float = 0.0) -> None:
    """Check that this process has `wanted`, and that its files have not been edited since. Raises OtherCode.

    A look at the files that is at most `recent_seconds` old will do.
    """
    if difference := wanted.difference(code_here()):
        raise OtherCode(f"other code: {difference}")
    if path := _files().changed(recent_seconds):
        raise OtherCode(f"other code: {_name(path)} has been edited since the sweep began")


@dataclass(frozen=True, kw_only=True)
class CheckedBackend:
    """`backend` on the sweep's `code` and no other: each point is checked before it runs and when it has run.

    A simulator reads its Python when it starts. So an edit that is made while a sweep runs would get into its later
    points. The look after a point finds every edit but one that is undone before the point ends.
    """

    backend: Backend
    code: Code

    def build(self, system: Any, variant: Variant, progress: Progress) -> Built:
        """As the backend does. Raises OtherCode."""
        check_code(self.code, recent_seconds=_RECENT_SECONDS)
        return self.backend.build(system, variant, progress)

    def run(self, model: Any, job: Job, progress: Progress) -> Measured:
        """As the backend does. Raises OtherCode."""
        check_code(self.code, recent_seconds=_RECENT_SECONDS)
        done = self.backend.run(model, job, progress)
        check_code(self.code)
        return done
