"""The tables beside a run's results (`tables/NAME.parquet`): latencies, links, time series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import UserError
from .measured import Measured
from .words import label, number

__all__ = ["Tables"]

FOLDER = "tables"
MOST_ROWS = 2_000_000
"""Most rows of a table that are read."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """The tables of the folder `path` of a run, and words for its points, which `measured` has."""

    path: Path
    measured: Measured

    def read(self, name: str, columns: Sequence[str]) -> list[Row] | None:
        """The rows of a table, or None if the folder has none. Raises UserError for one without these `columns`."""
        import polars

        file = self.path / FOLDER / f"{name}.parquet"
        if not file.is_file():
            return None
        try:
            frame = polars.read_parquet(file, n_rows=MOST_ROWS)
        except (polars.exceptions.PolarsError, OSError) as error:
            raise UserError(f"table {str(file)!r} cannot be read: {str(error).splitlines()[0]}") from None
        for column in ("point", *columns):
            if column not in frame.columns:
                raise UserError(f"table {str(file)!r} has no column {column!r}: run it again")
        return frame.to_dicts()

    @cached_property
    def _labels(self) -> dict[Any, str]:
        names = self.measured.of_points()
        found: dict[Any, str] = {}
        for row in self.measured.rows:
            words = ", ".join(f"{label(name)} {number(row.get(name))}" for name in names)
            found.setdefault(row.get("point"), words)
        return found

    def point(self, row: Row) -> str:
        """The parameters that tell the point of a row from the others, in words."""
        words = self._labels.get(row["point"], "")
        return words or f"point {row['point']}"
