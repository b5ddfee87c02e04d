"""The report of folders, as HTML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import LanikaiError
from .folders import Collection, RunData, SweepData, read_folders
from .page import render
from .run_page import run_page
from .sweep_page import sweep_page

__all__ = ["NAME", "make_report", "write_report"]

NAME = "report.html"
"""The file in the folder that a report is of, where the user names none."""


def make_report(paths: Sequence[Path]) -> str:
    """The HTML of a run, a sweep, or of everything below the folders. The same folders give the same bytes.

    Raises UserError for folders that hold no results or broken ones, MissingTool without the extra `report`.
    """
    found = read_folders(paths)
    if isinstance(found, RunData):
        return render(run_page(found))
    if isinstance(found, SweepData):
        return render(sweep_page(found))
    assert isinstance(found, Collection)
    from .everything_page import everything_page

    return render(everything_page(found))


def write_report(file: Path, text: str) -> None:
    """Write the file whole or not at all. A link stays one, and so does a device or a pipe. Raises LanikaiError."""
    place = Path(os.path.realpath(file))
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        if place.exists() and not place.is_file():
            place.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        os.replace(part, place)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise LanikaiError(f"report {str(file)!r} cannot be written: {error.strerror}") from None
