"""The mutants that survived, and what is said of each."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .places import ROOT

__all__ = ["RESULT", "Explanation", "explanations", "page", "results", "survivors"]

RESULT = ROOT / "docs" / "mutation.json"
_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Explanation:
    """A survivor, by its file, the source text and the change, and why it survived.

    `equivalent`: no test can tell the mutant from the design, for the reason that is given. Otherwise one could.
    """

    file: str
    text: str
    change: str
    equivalent: bool
    reason: str

    @property
    def survivor(self) -> tuple[str, str, str]:
        """The mutant that it is about."""
        return self.file, self.text, self.change


def explanations() -> list[Explanation]:
    """The entries of the file of survivors beside this module."""
    return [Explanation(**entry) for entry in tomllib.loads(_FILE.read_text()).get("survivor", [])]


def results() -> dict[str, Any]:
    """The last run of each file, by file."""
    return json.loads(RESULT.read_text())["files"] if RESULT.exists() else {}


def survivors() -> list[tuple[str, str, str]]:
    """File, source text and change of every survivor of those runs."""
    return [(file, one["text"], one["change"]) for file, row in results().items() for one in row["survivors"]]


def page() -> str:
    """The table of results, and the list of survivors, for a page."""
    explained = {one.survivor: one for one in explanations()}
    rows, left = [], []
    total = dict.fromkeys(("possible", "run", "killed", "timed out", "equivalent", "others"), 0)
    for file, row in results().items():
        here = [explained.get((file, one["text"], one["change"])) for one in row["survivors"]]
        equivalent = sum(1 for one in here if one is not None and one.equivalent)
        counts = {name: row[name] for name in ("possible", "run", "killed", "timed out")}
        counts |= {"equivalent": equivalent, "others": len(here) - equivalent}
        total = {name: total[name] + count for name, count in counts.items()}
        rows.append(_row(f"`{file}`", counts))
        for one, why in zip(row["survivors"], here, strict=True):
            if why is None or not why.equivalent:
                reason = why.reason if why else "not explained yet"
                left.append(f"- `{file}`, line {one['line']}, `{one['text']}`: {one['change']}. {reason}")
    head = "| file | possible | run | killed | timed out | equivalent | other survivors | killed of those that differ |"
    lines = ["", head, "|---|" + "---|" * 7, *rows, _row(f"{len(rows)} files", total), ""]
    return "\n".join([*lines, "Survivors that are not equivalent:", "", *(left or ["- none"]), "", ""])


def _row(name: str, counts: dict[str, int]) -> str:
    killed = counts["killed"] + counts["timed out"]
    different = counts["run"] - counts["equivalent"]
    share = f"{100 * killed / different:.0f}%" if different else ""
    return f"| {name} | {' | '.join(str(count) for count in counts.values())} | {share} |"
