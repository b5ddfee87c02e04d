"""The folder of a run: made, locked, found writable; an earlier run's files set aside until this one has ended."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from filelock import FileLock

from ...errors import UserError
from ...folder_lock import LOCK, lock_folder
from .base import Size

__all__ = ["RunFolder", "check_file"]


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
    NAMES = (
        "results.csv",
        "results.json",
        "plot.png",
        "run.log",
        "points",
        "report.html",
        "tables",
        "plots",
        "inputs",
    )
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
