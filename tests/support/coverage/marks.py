"""Marks in the RTL that say which branch of the source a piece of Verilog comes from.

Verilog keeps the source line of a signal, but not that of a branch. So every body of an `If`, a `Case` or a state gets
a statement more: a signal whose name says the place is set to 1. Nothing reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.hdl import Const, Module, Signal
from amaranth.hdl._ast import Assign, Statement, Switch, _StatementList

from ..mutation.places import ROOT, Place

__all__ = ["MARKS_FILE", "PREFIX", "Marks"]

MARKS_FILE = "marks.json"
"""File of the build cache that says which branches there are."""

PREFIX = "branch_at_"
"""Beginning of the names of marks; 12 hexadecimal digits follow."""


class Marks:
    """Branches that were elaborated, by the names of their marks, and statements that are in none.

    - `branches`: for each name the file and the lines of the branch: that of its head, and those of the statements in
      its body that are in no other branch.
    - `always`: the lines by their files of statements that are evaluated in every cycle.
    """

    def __init__(self) -> None:
        self.branches: dict[str, tuple[str, set[int]]] = {}
        self.always: dict[str, set[int]] = {}

    def install(self) -> None:
        """Mark every module that is elaborated from now on in this process."""
        elaborate, marks = Module.elaborate, self

        def marked(module: Module, platform: object) -> Any:
            fragment = elaborate(module, platform)
            signals: dict[str, Signal] = {}
            added = _StatementList()
            for statements in fragment.statements.values():
                for one in statements:
                    place = _place(one)
                    if place:
                        marks.always.setdefault(place.file, set()).add(place[1])
                added += marks._mirrored(statements, signals)
            if added:
                fragment.add_statements("comb", added)
            return fragment

        Module.elaborate = marked

    def _mirrored(self, statements: Iterable[Statement], signals: dict[str, Signal]) -> Iterator[Statement]:
        """The branches of `statements` with marks in their place."""
        for one in statements:
            if isinstance(one, Switch):
                cases = [
                    (patterns, [*self._mark(place, body, signals), *self._mirrored(body, signals)], place)
                    for patterns, body, place in one.cases
                ]
                yield Switch(one.test, cases, src_loc=one.src_loc)

    def _mark(self, place: Any, body: Iterable[Statement], signals: dict[str, Signal]) -> Iterator[Statement]:
        if not isinstance(place, Place) or place.file is None:
            return
        text = f"{_contents(place.file)} {place.file} {place.span}"
        name = PREFIX + hashlib.sha256(text.encode()).hexdigest()[:12]
        _, lines = self.branches.setdefault(name, (place.file, {place[1]}))
        for one in body:
            inside = _place(one)
            if inside and inside.file == place.file:
                lines.add(inside[1])
        if name not in signals:
            signals[name] = Signal(name=name)
        yield signals[name].eq(Const(1, 1))

    def keep(self, path: Path) -> None:
        """Add what was seen to the JSON file `path`: a simulator that was built before has marks of that time."""
        old = json.loads(path.read_text()) if path.exists() else {"branches": {}, "always": {}}
        branches = old["branches"]
        for name, (file, lines) in self.branches.items():
            branches[name] = [file, sorted(lines.union(branches.get(name, (file, []))[1]))]
        always = {
            file: [digest, lines]
            for file, (digest, lines) in old["always"].items()
            if digest == _contents(file)
        }
        for file, seen in self.always.items():
            always[file] = [_contents(file), sorted(seen.union(always.get(file, ("", []))[1]))]
        path.write_text(json.dumps({"branches": branches, "always": always}))


def _place(statement: Statement) -> Any:
    """The place of an assignment in a file of the RTL, or None."""
    place = statement.src_loc if isinstance(statement, Assign) else None
    return place if isinstance(place, Place) and place.file else None


@cache
def _contents(file: str) -> str:
    path = ROOT / file
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else ""
