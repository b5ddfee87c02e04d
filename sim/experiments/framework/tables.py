"""Files of the tables that are too long for results: Parquet, and JSON of the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["MOST_JSON_ROWS", "table_rows", "write_tables"]

MOST_JSON_ROWS = 200_000
"""Most rows of a table that is written as JSON, too."""

Row = Mapping[str, Any]


def table_rows(
    points: Iterable[tuple[Row, Mapping[str, Sequence[Row]]]],
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table of several points, each with its point's columns before its own.

    `points`: the columns of a point, and its tables (`Experiment.tables`).
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for columns, tables in points:
        for name, rows in tables.items():
            found.setdefault(name, []).extend({**columns, **row} for row in rows)
    return found


def write_tables(folder: Path, tables: Mapping[str, Sequence[Row]]) -> dict[str, list[str]]:
    """Write each table into `folder` as Parquet, and as JSON if it has `MOST_JSON_ROWS` at most. The JSON
    is an object that has each column's values, a list, by its name. Returns the files by table."""
    import polars

    written: dict[str, list[str]] = {}
    for name, rows in tables.items():
        folder.mkdir(parents=True, exist_ok=True)
        frame = polars.DataFrame(list(rows), infer_schema_length=None)
        files = [folder / f"{name}.parquet"]
        frame.write_parquet(files[0])
        if len(frame) <= MOST_JSON_ROWS:
            files.append(folder / f"{name}.json")
            files[1].write_text(json.dumps(frame.to_dict(as_series=False)) + "\n")
        written[name] = [str(file) for file in files]
    return written
