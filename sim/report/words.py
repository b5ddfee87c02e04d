"""Names and values as a reader sees them, and tables made of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .page import Cell, Column, Table, Tone

__all__ = ["cell", "is_number", "label", "number", "row_table", "same_and_varying", "spoken", "verdict_cell"]

UNITS = {
    "flits_per_node_per_cycle": "flits a node and cycle",
    "flits_per_cycle": "flits a cycle",
    "messages_per_s": "messages/s",
    "mb_per_s": "MB/s",
    "gb_per_s": "GB/s",
    "mbit_per_s": "Mbit/s",
    "gbit_per_s": "Gbit/s",
    "cycles": "cycles",
    "ticks": "ticks",
    "flits": "flits",
    "bytes": "bytes",
    "packets": "packets",
    "us": "µs",
    "ms": "ms",
    "ns": "ns",
    "pct": "%",
    "nj": "nJ",
    "pj": "pJ",
    "s": "s",
    "w": "W",
}
"""Units at the end of a name, longest ones first."""
MOST_LETTERS = 120
"""Most letters of a value in a table. The files have it whole."""
MOST_CELLS = 40_000
"""Most cells of a table: about 3 MB. The rows after them are in the folder's own tables."""


def label(name: str) -> str:
    """A name for reading: `bandwidth_mb_per_s` is `bandwidth (MB/s)`."""
    name = name.removeprefix("set_")
    for ending, unit in UNITS.items():
        if name.endswith(f"_{ending}"):
            return f"{name.removesuffix(f'_{ending}').replace('_', ' ')} ({unit})"
    return name.replace("_", " ")


def spoken(name: str) -> str:
    """A name before its value: `packet_flits` is `packet flits`."""
    return name.removeprefix("set_").replace("_", " ")


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Any) -> str:
    """A value in a few digits; `-` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value == int(value) and abs(value) < 1e6:
            return str(int(value))
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    if isinstance(value, list):
        return "[" + ", ".join(map(number, value)) + "]" if value else "[]"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def cell(value: Any) -> Cell:
    """A value as a cell, sorted as a number if it is one."""
    text = number(value)
    shown = text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
    if value is None:
        return Cell(shown)
    return Cell(shown, float(value) if isinstance(value, int | float) else text[:MOST_LETTERS])


def verdict_cell(within: bool | None, words: tuple[str, str, str] = ("within", "OUT", "-")) -> Cell:
    """A verdict: the first of the words if it is good, the second if it is bad, else the third."""
    tones: tuple[Tone, Tone, Tone] = ("good", "bad", "")
    place = 2 if within is None else 0 if within else 1
    return Cell(words[place], words[place], tones[place])


def same_and_varying(
    rows: Sequence[Mapping[str, Any]], names: Iterable[str]
) -> tuple[dict[str, Any], list[str]]:
    """The names whose value is the same in all rows, with it; and the others."""
    same: dict[str, Any] = {}
    varying: list[str] = []
    for name in names:
        first = rows[0].get(name) if rows else None
        if all(row.get(name) == first for row in rows):
            same[name] = first
        else:
            varying.append(name)
    return same, varying


def row_table(
    caption: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, where: str, note: str = ""
) -> Table:
    """A table of rows. Those beyond `MOST_CELLS` are left out, and the note says `where` they are."""
    most = max(1, MOST_CELLS // max(1, len(names)))
    if len(rows) > most:
        note = f"These are the first {most} of {len(rows)} rows; {where} has all. {note}".strip()
    numeric = [
        any(is_number(row.get(name)) for row in rows)
        and all(row.get(name) is None or is_number(row.get(name)) for row in rows)
        for name in names
    ]
    return Table(
        caption=caption,
        columns=[Column(label(name), kind) for name, kind in zip(names, numeric, strict=True)],
        rows=[
            [verdict_cell(row.get(name)) if name == "within" else cell(row.get(name)) for name in names]
            for row in rows[:most]
        ],
        note=note,
    )
