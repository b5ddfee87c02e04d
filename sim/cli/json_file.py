"""`--json FILE`: the option, and what is written for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LanikaiError

__all__ = ["JsonFile", "check_json", "write_json"]

JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the results there; `-`: standard output."),
]
"""The option of a command that writes its results as JSON."""


def check_json(json_file: str | None) -> None:
    """Look whether the file can be written, before there are results. Raises UserError."""
    from ..experiments.framework.run_folder import check_file

    if json_file not in (None, "-"):
        check_file(Path(json_file), "--json")


def write_json(json_file: str | None, text: str) -> None:
    """Write `text` to the file or to standard output; None: nowhere. Raises LanikaiError."""
    if json_file == "-":
        sys.stdout.write(text)
    elif json_file is not None:
        try:
            Path(json_file).write_text(text)
        except OSError as error:
            raise LanikaiError(f"--json {json_file!r} cannot be written: {error.strerror}") from None
