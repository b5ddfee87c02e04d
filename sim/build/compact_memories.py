"""Verilog as yosys writes it, made shorter: a memory's initial values as loops instead of a line a row.

A quarter megabyte of SRAM is 32,768 such lines in 43,000, which Verilator would turn into as many statements.
"""

from __future__ import annotations

import re
from itertools import groupby

__all__ = ["compact_memories"]

_ROW = re.compile(r"(?P<indent> *)(?P<memory>\S+ ?)\[(?P<row>\d+)\] = (?P<value>[^;]+);")
_SHORTEST_RUN = 4


def compact_memories(text: str) -> str:
    """`text` with runs of rows that get the same initial value written as a loop each. The same design."""
    out: list[str] = []
    rows: list[tuple[str, re.Match[str]]] = []

    def flush() -> None:
        # Consecutive rows of one memory with one value have the same key.
        def key(item: tuple[int, tuple[str, re.Match[str]]]) -> tuple[str, str, int]:
            number, (_, row) = item
            return row["memory"], row["value"], int(row["row"]) - number

        for (memory, value, _), run in groupby(enumerate(rows), key):
            lines = [row for _, row in run]
            if len(lines) < _SHORTEST_RUN:
                out.extend(line for line, _ in lines)
                continue
            first = lines[0][1]
            last = int(lines[-1][1]["row"])
            count = f"for (int i = {first['row']}; i <= {last}; i = i + 1)"
            out.append(f"{first['indent']}{count} {memory}[i] = {value};")
        rows.clear()

    for line in text.split("\n"):
        row = _ROW.fullmatch(line)
        if row:
            rows.append((line, row))
        else:
            flush()
            out.append(line)
    flush()
    return "\n".join(out)
