"""The table of which design fits which board, from the committed reports of builds (`measured.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .designs import DESIGNS

__all__ = ["MEASURED", "built", "record", "rows"]

MEASURED = Path(__file__).with_name("measured.json")
"""The reports of builds, by "DESIGN BOARD SETTINGS"."""


def built() -> dict[str, Any]:
    """The reports of builds, by "DESIGN BOARD SETTINGS"."""
    found: dict[str, Any] = json.loads(MEASURED.read_text())
    return found


def _key(report: Mapping[str, Any]) -> str:
    """Design, board and settings of a report."""
    return " ".join([report["design"], report["board"], *report["settings"]])


def record(report: Mapping[str, Any]) -> None:
    """Put a build's report into the file, in the place of an earlier one. Those of designs and boards that there are
    no more go."""
    reports = built() | {_key(report): dict(report)}
    order = [f"{design} {board}" for design, one in DESIGNS.items() for board in one.sizes]
    kept = {
        key: reports[key] for pair in order for key in sorted(reports) if " ".join(key.split(" ")[:2]) == pair
    }
    MEASURED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def rows() -> list[list[str]]:
    """Design, board, settings, device, use of LUTs, block RAM and multipliers, clock and largest clock of each build.
    A pair that has no build has a row that says so."""
    found, reports = [], built()
    for design, one in DESIGNS.items():
        for board in one.sizes:
            mine = [r for r in reports.values() if (r["design"], r["board"]) == (design, board)]
            if not mine:
                found.append([design, board, "", "not built yet", "", "", "", "", ""])
            found += [_row(report) for report in mine]
    return found


def _row(report: Mapping[str, Any]) -> list[str]:
    use = [
        "{} of {} ({:.0%})".format(*cells, cells[0] / cells[1]) if (cells := report["use"].get(kind)) else ""
        for kind in ("LUT", "block RAM", "multipliers")
    ]
    return [
        report["design"],
        report["board"],
        " ".join(report["settings"]),
        report["device"],
        *use,
        f"{report['clock_mhz']:g}",
        f"{report['fmax_mhz']:g} (seed {report['seed']})",
    ]
