"""Tables on a terminal that may be narrow."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

__all__ = ["fitted"]

NARROW_COLUMNS = 60
"""A terminal of fewer columns shows no table that it would have to squeeze."""
ROOMY_COLUMNS = 10_000
"""The width that a table is measured at: none has so many columns."""


def fitted(table: Table, console: Console) -> RenderableType:
    """The table, or what stands in for it on a console that is narrow and has no room for it.

    That is a block of lines a row: the first cell, and below it each other cell behind the heading of its column. A
    row whose first cell is empty belongs to the row above.
    """
    roomy = console.options.update(max_width=ROOMY_COLUMNS)
    if console.width >= NARROW_COLUMNS or console.measure(table, options=roomy).maximum <= console.width:
        return table
    headings = [str(column.header) for column in table.columns]
    lines: list[RenderableType] = []
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *others = map(_text, row)
        if first:
            lines.append(first)
        for heading, cell in zip(headings[1:], others, strict=True):
            if cell:
                named = Text(f"{heading}: " if heading else "")
                lines.append(Padding(named + cell, (0, 0, 0, 2)))
    return Group(*lines)


def _text(cell: RenderableType) -> Text:
    """A cell's text, without the spaces and line ends that a column has between its lines."""
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return Text(" ").join(one for line in text.split() for one in [Text(line.plain.strip(), line.style)])
