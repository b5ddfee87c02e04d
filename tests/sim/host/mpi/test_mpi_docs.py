"""The table of calls in docs/mpi.md is that of the classes. None is missing, and none is in it that does not exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.data.ops import OPS

DOCS = Path(__file__).parents[4] / "docs" / "mpi.md"
ROWS = dict(
    re.findall(r"^\| ([a-z][^|]*?) \| (.*) \|$", DOCS.read_text().split("## Protocols")[0], re.MULTILINE)
)
NOT_MPI = {"next_collective", "apply", "check", "complete", "result", "take", "fill"}
"""Methods for the modules of the package."""
KINDS = {
    "communicator": [MPI.Intracomm],
    "grid": [MPI.Cartcomm],
    "group": [MPI.Group],
    "request": [MPI.Prequest],
    "message": [MPI.Message],
    "status": [MPI.Status],
    "operation": [MPI.Op],
}


def calls(cls: type) -> dict[str, bool]:
    """The public methods of a class: whether each is a coroutine."""
    return {
        name: inspect.iscoroutinefunction(inspect.unwrap(method))
        for name, method in inspect.getmembers(cls, callable)
        if not name.startswith("_") and name not in NOT_MPI
    }


def told(kind: str) -> dict[str, bool]:
    """The calls in the rows of a kind: whether each is said to be a coroutine."""
    text = " ".join(row for name, row in ROWS.items() if name.split(" (")[0].split(",")[0] == kind)
    found = {name: False for name in re.findall(r"\*`(\w+)`\*", text)}
    return found | {name: True for name in re.findall(r"(?<!\*)`(\w+)`(?!\*)", text)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_names_every_call_and_no_other(kind) -> None:
    (cls,) = KINDS[kind]
    found = told(kind)
    if kind == "operation":
        assert {name for name in found if name.isupper()} | {"SUM"} == set(OPS) and "`MPI.SUM`" in ROWS[kind]
        found = {name: waits for name, waits in found.items() if not name.isupper()}
    expected = calls(cls)
    if kind == "grid":
        expected = {name: waits for name, waits in expected.items() if name not in calls(MPI.Intracomm)}
    assert found == expected


def test_every_non_blocking_collective_has_its_blocking_one() -> None:
    row = ROWS["communicator, collective"]
    blocking, begun = row.split("; each with an I in front: ")
    names = re.findall(r"`(\w+)`", blocking)
    assert re.findall(r"`(\w+)`", begun) == ["I" + name[0].lower() + name[1:] for name in names]
