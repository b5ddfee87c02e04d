"""The tables of adaptive routing in `router.md`, from `adaptive.json` (`tests/support/system/adaptive_load.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["mesh_table", "others_table"]

HERE = Path(__file__).parent
MESH = "mesh8x8"


def _values() -> dict[tuple[str, str, str], float]:
    return {
        (one["network"], one["routing"], one["pattern"]): one["accepted"]
        for one in json.loads((HERE / "adaptive.json").read_text())
    }


def mesh_table() -> str:
    """A row for each function on the mesh, a column for each pattern."""
    values = {key[1:]: value for key, value in _values().items() if key[0] == MESH}
    patterns = list(dict.fromkeys(pattern for _, pattern in values))
    rows = [
        (f"`{name}`", *(f"{values[name, one]:.2f}" if (name, one) in values else "" for one in patterns))
        for name in dict.fromkeys(routing for routing, _ in values)
    ]
    return _table(("`routing`", *patterns), rows)


def others_table() -> str:
    """A row for each pattern on each other network: the direct way, Valiant's, and the choice between the two."""
    return _table(("network", "pattern", "the direct way", "`valiant`", "`ugal`"), _others())


def _others() -> Iterator[tuple[str, ...]]:
    values = _values()
    for network, pattern in dict.fromkeys((key[0], key[2]) for key in values if key[0] != MESH):
        found = {key[1]: value for key, value in values.items() if (key[0], key[2]) == (network, pattern)}
        direct = next(value for name, value in found.items() if name not in ("valiant", "ugal"))
        rest = (f"{found[name]:.2f}" if name in found else "" for name in ("valiant", "ugal"))
        yield f"`{network}`", pattern, f"{direct:.2f}", *rest


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n" + "\n".join(lines) + "\n\n"
