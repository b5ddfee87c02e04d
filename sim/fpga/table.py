"""The table of which design fits which board, from the committed reports of builds (`measured.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .designs import DESIGNS

__all__ = ["MEASURED", "built", "record", "rows"]

MEASURED = Path(__file__).with_name("measured.json")
"""The reports of builds, by "DESIGN BOARD"."""


def built() -> dict[str, Any]:
    """The reports of builds, by "DESIGN BOARD"."""
    found: dict[str, Any] = json.loads(MEASURED.read_text())
    return found


def record(report: Mapping[str, Any]) -> None:
    """Put a build's report into the file, in the place of an earlier one."""
    reports = built() | {f"{report['design']} {report['board']}": dict(report)}
    order = [f"{design} {board}" for design, one in DESIGNS.items() for board in one.boards]
    kept = {key: reports[key] for key in order if key in reports}
    MEASURED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def rows() -> list[list[str]]:
    """Design, board, device, use of LUTs, block RAM and multipliers, clock and largest clock of each pair."""
    found, reports = [], built()
    for design, one in DESIGNS.items():
        for board in one.boards:
            report = reports.get(f"{design} {board}")
            if report is None:
                found.append([design, board, "not built yet", "", "", "", "", ""])
                continue
            use = [
                "{} of {} ({:.0%})".format(*cells, cells[0] / cells[1])
                if (cells := report["use"].get(kind))
                else ""
                for kind in ("LUT", "block RAM", "multipliers")
            ]
            clock = f"{report['clock_mhz']:g}"
            found.append(
                [
                    design,
                    board,
                    report["device"],
                    *use,
                    clock,
                    f"{report['fmax_mhz']:g} (seed {report['seed']})",
                ]
            )
    return found
