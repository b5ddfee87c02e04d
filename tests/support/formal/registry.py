"""Declarations of proofs, beside each, and the record of what their runs did: the table of `docs/verification.md`."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "RECORD",
    "Declared",
    "Run",
    "begin_record",
    "declared",
    "gathered",
    "mutants_of",
    "note",
    "proof",
    "write_record",
]

FORMAL = Path(__file__).parents[2] / "formal"
RECORD = "LANIKAI_PROOFS"
"""The environment variable that names the file to which runs are recorded, a line of JSON a test."""
Test = TypeVar("Test", bound=Callable[..., None])


def proof(*, block: str, states: str, like: Callable[..., None] | None = None) -> Callable[[Test], Test]:
    """Declare that a test proves of `block` what `states` says.

    `like`: a proof of the same specification, whose mutants are this one's too.
    """
    return lambda test: test


def mutants_of(proved: Callable[..., None]) -> Callable[[Test], Test]:
    """Declare that a test has mutants, each of which the proof `proved` has to catch."""
    return lambda test: test


@dataclass(frozen=True)
class Declared:
    """A test of proofs as it is declared: its file and name, and either what it proves or the proof `of` which it has
    mutants."""

    file: str
    name: str
    block: str = ""
    states: str = ""
    like: str = ""
    of: str = ""


def declared(folder: Path = FORMAL) -> list[Declared]:
    """Every test of proofs in the folder that is declared, read from the text, in the text's order."""
    found = []
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for call in node.decorator_list:
                if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                    continue
                if call.func.id == "proof":
                    values = {str(keyword.arg): _text(keyword.value) for keyword in call.keywords}
                    found.append(Declared(path.name, node.name, **values))
                elif call.func.id == "mutants_of":
                    found.append(Declared(path.name, node.name, of=_text(call.args[0])))
    return found


def _text(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else str(ast.literal_eval(node))


@dataclass(frozen=True)
class Run:
    """A run of `prove`: its mode, depth and expected end."""

    mode: str
    depth: int
    expect: str


_runs: list[Run] = []


def note(mode: str, depth: int, expect: str) -> None:
    """Note a run of the present test that has ended as expected."""
    _runs.append(Run(mode, depth, expect))


def begin_record() -> None:
    """Forget runs of before: of a test that is not recorded."""
    _runs.clear()


def write_record(file: str, name: str, seconds: float) -> None:
    """Append what has run since `begin_record` to the file that `RECORD` names, if it names one."""
    if path := os.environ.get(RECORD):
        line = {"file": file, "name": name, "seconds": seconds, "runs": [vars(run) for run in _runs]}
        with open(path, "a") as record:
            record.write(json.dumps(line) + "\n")
    _runs.clear()


def gathered(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The records of each test's cases in one row: `file`, `name`, `cases`, `seconds`, and `runs`, how many there were
    of each mode, depth and end."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        one: Mapping[str, Any] = json.loads(line)
        key = (one["file"], one["name"])
        row = rows.setdefault(key, {"file": key[0], "name": key[1], "cases": 0, "seconds": 0.0, "runs": {}})
        row["cases"] += 1
        row["seconds"] = round(row["seconds"] + one["seconds"], 1)
        for run in one["runs"]:
            kind = f"{run['mode']} {run['depth']} {run['expect']}"
            row["runs"][kind] = row["runs"].get(kind, 0) + 1
    return [rows[key] | {"runs": dict(sorted(rows[key]["runs"].items()))} for key in sorted(rows)]
