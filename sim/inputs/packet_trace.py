"""Packet traces: `cycle source destination flits [class]`, a line a packet, or the same columns in a Parquet file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..user_files import at_line, quoted, read_data_lines, whole
from .errors import InputError
from .packets import CLASSES, MOST_FLITS, MOST_NODES, Numbers, Packets

__all__ = ["COLUMNS", "read_packet_lines", "read_packet_parquet"]

COLUMNS = {
    "cycle": (0, (1 << 62) - 1),
    "source": (0, MOST_NODES - 1),
    "destination": (0, MOST_NODES - 1),
    "flits": (1, MOST_FLITS),
    "class": (0, CLASSES - 1),
}
"""The fields of a packet, in order, with the least and the largest value. The class may be left out: it is then 0."""
_FORM = "cycle source destination flits [class]"


def read_packet_lines(path: Path) -> Packets:
    """The packets in a text file, in any order of lines. Raises InputError: file, line, what is there, what would be
    right."""
    rows: list[list[int]] = []
    for number, text in read_data_lines(path, "packet trace", InputError):
        words = text.split()
        if len(words) not in (4, 5):
            raise at_line(
                path, number, f"{len(words)} fields in {quoted(text)}", f"4 or 5: {_FORM}", InputError
            )
        row = []
        for (name, (low, high)), word in zip(COLUMNS.items(), words, strict=False):
            value = whole(word, low, high)
            if value is None:
                raise at_line(
                    path, number, f"{name} = {quoted(word)}", f"a whole number, {low} to {high}", InputError
                )
            row.append(value)
        rows.append([*row, 0][:5])
    if not rows:
        raise InputError(f"packet trace {str(path)!r} has no packet: a line a packet, {_FORM}")
    return packets_of(np.array(rows, np.int64).T)


def read_packet_parquet(path: Path) -> Packets:
    """The packets in a Parquet file, which has the columns of `COLUMNS`. Raises InputError: file, row (from 0), what is
    there, what would be right."""
    import polars

    try:
        table = polars.read_parquet(path, use_pyarrow=False)
    except OSError as fault:
        raise InputError(f"packet trace {str(path)!r} cannot be read: {fault.strerror or fault}") from None
    except polars.exceptions.PolarsError as fault:
        first = str(fault).partition("\n")[0]
        raise InputError(f"packet trace {str(path)!r}: no Parquet file: {first}") from None
    for name in table.columns:
        if name not in COLUMNS:
            raise InputError(f"{path}: unknown column {quoted(name)}; valid columns: {', '.join(COLUMNS)}")
    columns = []
    for name, (low, high) in COLUMNS.items():
        if name not in table.columns:
            if name == "class":
                columns.append(np.zeros(len(table), np.int64))
                continue
            raise InputError(
                f"{path}: no column {name!r}: a packet trace has {', '.join(COLUMNS)} (class may be left out)"
            )
        column = table[name]
        if not column.dtype.is_integer():
            raise InputError(f"{path}: column {name!r} has the type {column.dtype}: whole numbers, as Int64")
        wrong = (column.is_null() | (column < low) | (column > high)).fill_null(True)
        if wrong.any():
            row = wrong.arg_true()[0]
            found = f"{name} = {column[row]}"
            raise InputError(f"{path}: row {row}: {found}: a whole number, {low} to {high}")
        columns.append(column.cast(polars.Int64).to_numpy())
    if not len(table):
        raise InputError(f"packet trace {str(path)!r} has no packet: a row a packet")
    return packets_of(np.array(columns, np.int64))


def packets_of(columns: Numbers) -> Packets:
    """Packets from the columns of `COLUMNS`. Those of one cycle stay in their order."""
    order = np.argsort(columns[0], kind="stable")
    cycle, source, destination, flits, traffic_class = columns[:, order]
    return Packets(
        cycle=cycle, source=source, destination=destination, flits=flits, traffic_class=traffic_class
    )
