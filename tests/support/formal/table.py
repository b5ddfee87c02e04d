"""The table of proofs in `docs/verification.md`: what is declared beside each proof, and what its last run did.

The program `python -m support.formal.table RECORD JSON` puts the runs of a record into the JSON that the table is made
from. Tests that did not run keep their row; a row of a test that is gone goes.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .registry import Declared, declared, gathered

__all__ = ["merged", "table"]


def merged(old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of `old` with those of `new` in their place, of tests that are declared, by file and name."""
    known = {(one.file, one.name) for one in declared()}
    rows = {(row["file"], row["name"]): row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows) if key in known]


def table(rows: Iterable[Mapping[str, Any]], proofs: Iterable[Declared] | None = None) -> str:
    """The table, a line a proof: block, property, how far, mutants that were caught, processor time."""
    every = list(declared() if proofs is None else proofs)
    runs = {(row["file"], row["name"]): row for row in rows}
    stated = {(one.file, one.name): one.states for one in every}
    caught: dict[tuple[str, str], int] = defaultdict(int)
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for one in every:
        row = runs.get((one.file, one.name))
        key = (one.file, one.of or one.name)
        if row is not None:
            seconds[key] += row["seconds"]
            caught[key] += sum(n for kind, n in row["runs"].items() if kind.endswith(" fail"))
    lines = ["| block | property | proved | mutants | s | proof |", "|---|---|---|---|---|---|"]
    for one in every:
        if not one.block:
            continue
        key = (one.file, one.name)
        row = runs.get(key)
        far = "not in the last run" if row is None else how_far(row["runs"])
        mutants = f"those of: {stated[one.file, one.like]}" if one.like else str(caught[key] or "")
        cost = "" if row is None else f"{seconds[key]:.0f}"
        blocks = ", ".join(f"`{block}`" if block[0].isupper() else block for block in one.block.split(", "))
        lines.append(f"| {blocks} | {one.states} | {far} | {mutants} | {cost} | `tests/formal/{one.file}` |")
    return "\n".join(lines) + "\n"


def how_far(runs: Mapping[str, int]) -> str:
    """The modes and depths of runs that hold, in words."""
    depths: dict[str, list[int]] = defaultdict(list)
    for kind in runs:
        mode, depth, expect = kind.split()
        if expect == "pass":
            depths[mode].append(int(depth))

    def span(mode: str) -> str:
        low, high = min(depths[mode]), max(depths[mode])
        return str(low) if low == high else f"{low} to {high}"

    words = {
        "prove": "for ever, by induction over {} cycles",
        "bmc": "{} cycles",
        "cover": "reached in {} cycles",
    }
    return "; ".join(text.format(span(mode)) for mode, text in words.items() if mode in depths)


if __name__ == "__main__":
    record, target = Path(sys.argv[1]), Path(sys.argv[2])
    before = json.loads(target.read_text())["rows"] if target.exists() else []
    rows = merged(before, gathered(record.read_text().splitlines()))
    target.write_text('{"rows": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]}\n")
