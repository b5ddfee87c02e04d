"""The lock of an output folder: one run or sweep writes into it at a time."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from .errors import UserError

__all__ = ["LOCK", "lock_folder"]

LOCK = ".lanikai-lock"
"""File in the folder that is locked. It stays there: removing it would let two take different files."""


def lock_folder(folder: Path, what: str) -> FileLock:
    """The lock of `folder`, taken. The system drops it when the process ends, however it ends.

    Raises UserError if another process, or another run of this one, holds it; OSError if it cannot be made.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(
            f"{what} {str(folder)!r} is in use: another run writes into it; wait for its end, or name another folder"
        ) from None
    return lock
