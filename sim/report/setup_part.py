"""The part of a page on how its results came to be: command, parameters, versions, files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .folders import RunData, SweepData
from .page import Cell, Column, Command, Fold, Note, Part, Table
from .words import cell, label

__all__ = ["run_setup", "sweep_command", "sweep_setup", "value_table"]

LOG = "run.log"
LOG_MARK = "parameter "
"""Beginning of a line of the log that names a parameter."""


def value_table(
    caption: str, values: Mapping[str, Any], names: tuple[str, str] = ("parameter", "value")
) -> Table:
    """A table of names with values."""
    return Table(
        caption=caption,
        columns=[Column(names[0]), Column(names[1])],
        rows=[[Cell(str(name), str(name)), cell(value)] for name, value in values.items()],
    )


def run_setup(run: RunData) -> list[Part]:
    """The command that repeats a run, its parameters, the versions, its files."""
    facts = run.facts
    found: list[Part] = []
    parameters: Mapping[str, Any] = facts.get("parameters") or _logged(run.path / LOG)
    if facts.get("command"):
        found.append(Command(str(facts["command"]), "The command that repeats this run"))
        found.append(Note("The same seed and versions give the same results, to the byte of results.csv."))
    else:
        found.append(
            Note(
                "This run was written by an earlier version, which did not keep its command. Its parameters are below.",
                "unsure",
            )
        )
    if parameters:
        found.append(value_table("Parameters", parameters))
    else:
        found.append(Note("The folder does not say which parameters the run had.", "unsure"))
    found += _versions(facts)
    files = {
        str(name): str(path) for name, path in (facts.get("files") or {}).items() if isinstance(path, str)
    }
    if files:
        found.append(value_table("Files, as the run named them", files, ("file", "path")))
    return found


def _logged(log: Path) -> dict[str, str]:
    """The parameters that a run's log names; none without a log."""
    if not log.is_file():
        return {}
    found: dict[str, str] = {}
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(LOG_MARK) and " = " in line:
                name, _, value = line.removeprefix(LOG_MARK).rstrip("\n").partition(" = ")
                found[name] = value
            elif line.startswith("point 0"):
                break
    return found


def _versions(facts: Mapping[str, Any]) -> list[Part]:
    versions = facts.get("versions")
    if not isinstance(versions, dict) or not versions:
        return [Note("The folder does not say which versions the results are of.", "unsure")]
    return [value_table("Versions", versions, ("program", "version"))]


def sweep_command(sweep: SweepData) -> str:
    """The command that runs a sweep, or goes on with it."""
    facts = sweep.facts
    words = ["lanikai", "sweep", sweep.name]
    if facts["size"] == "full":
        words.append("--full")
    for option, values in (("--grid", facts["grid"]), ("--set", facts.get("settings") or ())):
        for value in values:
            words += [option, str(value)]
    if not any(str(axis).partition("=")[0].strip() == "seed" for axis in facts["grid"]):
        words += ["--seed", str(facts["seed"])]
    return shlex.join([*words, "--out", str(sweep.path)])


def sweep_setup(sweep: SweepData, same: Mapping[str, Any], names: Sequence[str]) -> list[Part]:
    """The command of a sweep, the parameters that all points share, the versions. `names`: what varies."""
    about = ", ".join(label(name) for name in names)
    return [
        Command(sweep_command(sweep), "The command that repeats this sweep"),
        Note("In the same folder it runs only the points that are missing; name a new one to run all again."),
        value_table("Parameters that are the same in all points", same)
        if same
        else Note(f"All parameters vary: {about}."),
        *_versions(sweep.facts),
        *(
            [
                Fold(
                    name="sources",
                    title="Sources",
                    badge="digest",
                    tone="",
                    parts=[Note(str(sweep.facts["sources"]))],
                )
            ]
            if sweep.facts.get("sources")
            else []
        ),
    ]
