"""The tables beside a run's results (`tables/NAME.parquet`): latencies, links, time series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import UserError
from .measured import Measured
from .words import number, spoken

__all__ = ["Tables"]

FOLDER = "tables"
MOST_ROWS = 2_000_000
"""Most rows of a table that are read."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """The tables of the folder `path` of a run or a sweep, and words for its points.

    - `measured`: the rows of the points.
    - `raw`: the same rows in the same order, as the folder has them: a sweep's begin with its settings, and so do its
      tables.
    """

    path: Path
    measured: Measured
    raw: Sequence[Mapping[str, Any]]

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
    def _keys(self) -> list[str]:
        """The columns that tell one point from another."""
        first = self.raw[0] if self.raw else {}
        return ["point", *(name for name in first if name.startswith("set_") and name != "set_seed")]

    def key(self, row: Mapping[str, Any]) -> str:
        """The point of a row, whatever its seed."""
        return str([row.get(name) for name in self._keys])

    @cached_property
    def _rows(self) -> dict[str, Mapping[str, Any]]:
        """The first measured row of each point."""
        found: dict[str, Mapping[str, Any]] = {}
        for raw, row in zip(self.raw, self.measured.rows, strict=True):
            found.setdefault(self.key(raw), row)
        return found

    @cached_property
    def saturated(self) -> set[str]:
        """The keys of the points that were saturated with some seed."""
        pairs = zip(self.raw, self.measured.rows, strict=True)
        return {self.key(raw) for raw, row in pairs if row.get("saturated") is True}

    def network(self, row: Mapping[str, Any]) -> str:
        """The name of the network of a row's point; "" if it has none."""
        return str(self._rows.get(self.key(row), {}).get("network", ""))

    def point(self, row: Mapping[str, Any]) -> str:
        """The parameters that tell the point of a row from the others, in words."""
        mine = self._rows.get(self.key(row), {})
        words = ", ".join(f"{spoken(name)} {number(mine.get(name))}" for name in self.measured.of_points())
        return words if mine and words else f"point {row['point']}"
