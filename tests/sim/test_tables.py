"""Tables on terminals of any width."""

from __future__ import annotations

import os

import pytest
from lanikai.sim.experiments.framework.display import list_table
from lanikai.sim.experiments.registry import listing
from lanikai.sim.tables import fitted
from rich.console import Console
from rich.table import Table


def shown(table: Table, columns: int) -> list[str]:
    console = Console(record=True, width=columns, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(fitted(table, console))
    return [line.rstrip() for line in console.export_text().splitlines()]


def table() -> Table:
    made = Table(box=None)
    for heading in ("what", "", "where it is"):
        made.add_column(heading)
    made.add_row("a compiler", "[green]found[/]", "/usr/local/bin/a-compiler")
    made.add_row("", "", "and\n  /usr/bin/another-compiler")
    return made


def test_a_wide_terminal_has_the_table():
    assert shown(table(), 60)[0].split() == ["what", "where", "it", "is"]


def test_a_narrow_terminal_has_a_block_a_row():
    assert shown(table(), 30) == [
        "a compiler",
        "  found",
        "  where it is:",
        "  /usr/local/bin/a-compiler",
        "  where it is: and",
        "  /usr/bin/another-compiler",
    ]


@pytest.mark.parametrize("columns", [30, 40, 59, 60, 80, 200])
def test_the_list_of_experiments_has_every_word_at_any_width(columns):
    lines = shown(list_table(listing()), columns)
    words = " ".join(lines).split()
    assert max(map(len, lines)) <= columns
    assert all(row.name in words for row in listing()) and "…" not in "".join(lines)
