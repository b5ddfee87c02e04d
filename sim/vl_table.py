"""Writes of VL arbitration tables, entry by entry, into the registers of a router or an adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["Rows", "entry_writes"]

Rows = tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]
"""Rows of (VL, weight) of the high and of the low table."""
UNUSED = (0, 0)


def entry_writes(tables: Rows, entries: int, before: Rows | None = None) -> Iterator[dict[str, int]]:
    """Fields of each write of VL_TABLE_ENTRY that gives these tables, before their commit.

    - `entries`: of a table; those without a row are written as unused ones. 0: they are left as they are.
    - `before`: the tables that were written last. Entries that are the same are left out.
    """
    for high, rows in zip((1, 0), tables, strict=True):
        old = before[1 - high] if before else None
        for entry in range(max(len(rows), entries)):
            row = rows[entry] if entry < len(rows) else UNUSED
            if old is None or tuple(row) != (tuple(old[entry]) if entry < len(old) else UNUSED):
                vl, weight = row
                yield {"high": high, "entry": entry, "vl": vl, "weight": weight}
