"""Coverage of a set of runs, a row a file of the RTL."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..mutation.own_tests import rtl_files
from ..mutation.places import ROOT
from .counted import Toggle, branches_run, kept_sources, toggles
from .statements import statement_lines

__all__ = ["not_taken", "report", "table"]


def report(data: Path, models: Path, marks: Path) -> dict[str, Any]:
    """The coverage of the runs whose counts are in `data`, of simulators in `models`, by file of the RTL.

    - `lines`, `lines_run`: lines with a statement, and how many of them ran; `not_run`: the others.
    - `not_built`: those of the others that are in no simulator of these runs.
    - `toggles`, `toggled`: directions of bits of signals in these simulators, and how many happened; `still`: for
      signals of which not all happened, their line, name and how many did not.
    """
    seen = json.loads(marks.read_text())
    taken: dict[str, bool] = {}
    bits: dict[Toggle, bool] = {}
    for run in sorted(data.glob("*.dat")):
        sources = kept_sources(models / run.name.partition("-")[0])
        for mark, is_taken in branches_run(run, sources).items():
            taken[mark] = taken.get(mark, False) or is_taken
        for toggle, happened in toggles(run, sources):
            bits[toggle] = bits.get(toggle, False) or happened
    built, run_lines = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    for file, (_, lines) in seen["always"].items():
        built[file] |= set(lines)
        run_lines[file] |= set(lines)
    for mark, is_taken in taken.items():
        file, lines = seen["branches"][mark]
        built[file] |= set(lines)
        if is_taken:
            run_lines[file] |= set(lines)
    return {
        file: row
        for file in rtl_files()
        if (
            row := _row(file, built[file], run_lines[file], {t: h for t, h in bits.items() if t.file == file})
        )
    }


def _row(file: str, built: set[int], run: set[int], bits: dict[Toggle, bool]) -> dict[str, Any]:
    lines = statement_lines((ROOT / file).read_text()) | built
    if not lines and not bits:
        return {}
    still: dict[tuple[int, str], int] = defaultdict(int)
    for toggle, happened in bits.items():
        if not happened:
            still[toggle.line, toggle.name] += 1
    return {
        "lines": len(lines),
        "lines_run": len(run & lines),
        "not_run": sorted(lines - run),
        "not_built": sorted(lines - built),
        "toggles": len(bits),
        "toggled": sum(bits.values()),
        "still": [[line, name, count] for (line, name), count in sorted(still.items())],
    }


def table(files: dict[str, Any]) -> str:
    """The coverage of each file that is in a simulator, and of all, as a table of Markdown.

    The lines that ran are given in parts of all lines, and of those that are in a simulator.
    """
    lines = [
        "| file | lines | run | built | run of those | toggles | happened |",
        "|---|---|---|---|---|---|---|",
    ]
    counts = {
        file: {key: row[key] for key in ("lines", "lines_run", "toggles", "toggled")}
        | {"built": row["lines"] - len(row["not_built"])}
        for file, row in files.items()
    }
    named = [(f"`{file}`", row) for file, row in counts.items() if row["built"] or row["toggles"]]
    others = [row for row in counts.values() if not (row["built"] or row["toggles"])]
    named += [(f"{len(others)} files that are in no simulator", _sum(others)), ("all", _sum(counts.values()))]
    for name, row in named:
        cells = [name, f"{row['lines']:,}", _share(row["lines_run"], row["lines"])]
        cells += [f"{row['built']:,}", _share(row["lines_run"], row["built"])]
        cells += [f"{row['toggles']:,}", _share(row["toggled"], row["toggles"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def not_taken(files: dict[str, Any]) -> str:
    """The lines that are in a simulator and did not run, a list of Markdown."""
    found = [(file, sorted(set(row["not_run"]) - set(row["not_built"]))) for file, row in files.items()]
    return "\n".join(f"- `{file}`: `{_ranges(lines)}`" for file, lines in found if lines)


def _ranges(lines: list[int]) -> str:
    """Numbers in order, those that follow each other as `first-last`."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and runs[-1][-1] == line - 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _sum(rows: Iterable[dict[str, int]]) -> Counter[str]:
    return sum((Counter(row) for row in rows), Counter())


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""
