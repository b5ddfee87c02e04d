"""Places in the source that an expression of the RTL comes from, to the column.

Amaranth notes the file and line in which a value or statement was made, and takes the frame that called it. Here it is
the innermost frame that is not one of Amaranth's own, with the columns that Python keeps for each instruction.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import sys
from pathlib import Path
from types import CodeType

import amaranth
import amaranth.tracer

__all__ = ["ROOT", "Place", "install", "text_at"]

ROOT = Path(__file__).parents[3]
_AMARANTH = str(Path(amaranth.__file__).parent)
_PASSED_OVER = {contextlib.__file__, functools.__file__}
COPIES = "_mutant"
"""End of the names of modules that proofs make of a changed copy of a file: nothing in them is a place in that file."""
_positions: dict[CodeType, list[tuple[int | None, int | None, int | None, int | None]]] = {}


class Place(tuple[str, int]):
    """A file and a line, as Amaranth has them. `span`: first line and column, last line and column."""

    span: tuple[int, int, int, int]

    @property
    def file(self) -> str | None:
        """The file as a path from the root of the tree, None if it is not below `hdl`."""
        inside = self[0].removeprefix(f"{ROOT}/")
        return inside if inside.startswith("hdl/") and inside.endswith(".py") else None


def locate(src_loc_at: int = 0) -> Place:
    """The place that runs, seen from Amaranth. It stands for `amaranth.tracer.get_src_loc`."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_AMARANTH) and name not in _PASSED_OVER:
            break
        frame = frame.f_back
    code = frame.f_code
    known = _positions.get(code)
    if known is None:
        known = _positions[code] = list(code.co_positions())
    line, end_line, column, end_column = known[frame.f_lasti // 2]
    line = line or frame.f_lineno
    name = code.co_filename
    if frame.f_globals.get("__name__", "").endswith(COPIES):
        name += COPIES
    place = Place((name, line))
    place.span = (line, column or 0, end_line or line, end_column or 0)
    return place


def install() -> None:
    """Have Amaranth note places to the column from now on."""
    amaranth.tracer.get_src_loc = locate


def text_at(file: str, span: tuple[int, int, int, int]) -> str:
    """The source text of a span, on one line; of a `with` only its head."""
    first, column, last, end_column = span
    lines = [linecache.getline(str(ROOT / file), number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    if lines[0].startswith(b"with "):
        del lines[1:]
    return " ".join(b" ".join(lines).decode().split())
