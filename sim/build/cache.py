"""The build cache: one folder an entry, named by the hash of what went in; whole or absent.

The folder is `lanikai.sim.paths.cache_dir`. An entry is made in a folder beside it and renamed when it is complete,
under a file lock that the system drops with the process. A killed process may leave folders: whoever builds next sweeps
them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import UserError
from ..paths import CACHE_VARIABLE, cache_dir

__all__ = ["Cache", "content_key"]


def content_key(content: Mapping[str, object]) -> str:
    """A name for `content` (JSON values): the same on every machine, different for any difference."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Cache:
    """The cache in `root` (default: `lanikai.sim.paths.cache_dir`)."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_dir()

    def check(self) -> None:
        """Raise UserError unless entries can be written."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.root)
            os.close(handle)
            os.unlink(name)
        except OSError as error:
            raise UserError(
                f"build cache {str(self.root)!r} cannot be written: {error.strerror}; "
                f"set {CACHE_VARIABLE} to a folder that can"
            ) from None

    def find(self, kind: str, key: str) -> Path | None:
        """The entry's folder if it is there, whole."""
        path = self.root / kind / key
        return path if path.is_dir() else None

    def make(
        self, kind: str, key: str, fill: Callable[[Path], None], waiting: Callable[[], None] | None = None
    ) -> tuple[Path, bool]:
        """The entry's folder, and whether it was there already.

        `fill` makes the content in the empty folder that it is given; if it raises, nothing is left. One
        process fills while others that want the same entry wait for it; `waiting` is called once before such
        a wait.
        """
        found = self.find(kind, key)
        if found:
            return found, True
        with self._locked(kind, key, waiting):
            found = self.find(kind, key)
            if found:
                return found, True
            self._sweep(kind, key)
            partial = self.root / kind / f"{key}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                fill(partial)
                path = self.root / kind / key
                partial.rename(path)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
        return path, False

    def _lock(self, kind: str, key: str) -> FileLock:
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{kind}-{key}")

    @contextmanager
    def _locked(self, kind: str, key: str, waiting: Callable[[], None] | None) -> Iterator[None]:
        lock = self._lock(kind, key)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if waiting:
                waiting()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _sweep(self, kind: str, own_key: str) -> None:
        """Remove half entries whose maker is gone: nobody holds their lock."""
        for partial in (self.root / kind).glob("*.partial"):
            key = partial.name.removesuffix(".partial")
            if key == own_key:
                continue
            lock = self._lock(kind, key)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            try:
                shutil.rmtree(partial, ignore_errors=True)
            finally:
                lock.release()
