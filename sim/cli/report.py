"""The command `lanikai report`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from .screen import screen

__all__ = ["report"]

RESULTS = "results"


def report(
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DIR]...",
            help="Folder of a run or of a sweep; or folders that hold some. Without any: results.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="The HTML file; without it report.html in the (first) DIR."
        ),
    ] = None,
) -> None:
    """Make one HTML file of a run, of a sweep, or of everything: the published values beside ours.

    It asks no network for anything. Needs plotly and jinja2: pip install 'lanikai[report]'. Exit status: 0 made;
    1 it could not be written; 2 wrong input; 3 a library is missing.
    """
    from ..experiments.framework.run_folder import check_file
    from ..report.report import NAME, make_report, write_report

    paths = [Path(folder) for folder in folders or [RESULTS]]
    for folder in folders or []:
        if not folder.strip():
            raise UserError(f"{folder!r}: give the name of a folder")
    if out is not None and not out.strip():
        raise UserError(f"--out {out!r}: give the name of a file")
    file = Path(out) if out is not None else paths[0] / NAME
    began = time.monotonic()
    if file.parent.is_dir():
        check_file(file, "--out" if out is not None else "report")
    text = make_report(paths)
    check_file(file, "--out" if out is not None else "report")
    write_report(file, text)
    screen().print(
        f"{file}: {len(text.encode()) / 1e6:.1f} MB in {time.monotonic() - began:.1f} s",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
