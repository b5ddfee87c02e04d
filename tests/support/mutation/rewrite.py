"""Statements of a module, searched for what can be changed, and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Fragment, Signal, Value
from amaranth.hdl._ast import (
    Assign,
    Concat,
    Operator,
    Part,
    Slice,
    Statement,
    Switch,
    SwitchValue,
    _StatementList,
)

from .changes import CONDITIONS, changed_condition, constant_changes, fitted, value_changes
from .places import Place

__all__ = ["Mutant", "Rewriter"]


@dataclass(frozen=True, order=True)
class Mutant:
    """A change of what comes from one place: `file`, `span` (first line and column, last line and column), `change`.

    A place that is elaborated many times (in a loop, in many instances) is changed in each: a mutant is a change of
    the source.
    """

    file: str
    span: tuple[int, int, int, int]
    change: str


class Rewriter:
    """Goes through statements; `found` is told each mutant that is possible, and `active` is made.

    `applied` counts how often it was made.
    """

    def __init__(self, found: Callable[[Mutant], None] | None = None, active: Mutant | None = None) -> None:
        self._found, self._active = found, active
        self.applied = 0
        self._done: dict[int, tuple[Value, Value]] = {}

    def _is_made(self, place: Any, change: str) -> bool:
        """Tell of a mutant at `place`. Returns whether it is to be made."""
        if not isinstance(place, Place) or place.file is None:
            return False
        active = self._active
        if active is not None:
            if place.span != active.span or change != active.change or place.file != active.file:
                return False
            self.applied += 1
            return True
        if self._found is not None:
            self._found(Mutant(place.file, place.span, change))
        return False

    def fragment(self, fragment: Fragment) -> Fragment:
        """The fragment itself, with its statements changed where the mutant says. Its clock domains stay."""
        for domain, statements in fragment.statements.items():
            new = self.statements(statements)
            fragment.statements[domain] = new or _StatementList([Signal(name="nothing").eq(0)])
        return fragment

    def statements(self, statements: Iterable[Statement]) -> _StatementList:
        """The statements, changed where the mutant says."""
        return _StatementList(new for old in statements for new in self._statement(old))

    def _statement(self, old: Statement) -> Iterator[Statement]:
        if isinstance(old, Assign):
            # Amaranth makes such a signal for every state of a state machine.
            if isinstance(old.lhs, Signal) and not old.lhs.name:
                yield old
                return
            if self._is_made(old.src_loc, "assignment dropped"):
                return
            right = self._operand(old.rhs, old.src_loc)
            yield old if right is old.rhs else _placed(Assign(old.lhs, right), old.src_loc)
        elif isinstance(old, Switch):
            yield self._switch(old)
        else:
            yield old

    def _switch(self, old: Switch) -> Switch:
        test, cases = self.value(old.test), []
        conditions = _conditions(old)
        parts = list(test.parts) if conditions and isinstance(test, Concat) else []
        for number, (patterns, body, place) in enumerate(old.cases):
            if patterns is not None and parts:
                for how in CONDITIONS:
                    if self._is_made(place, f"condition {how}"):
                        parts[number] = changed_condition(parts[number], how)
            elif patterns is not None and self._is_made(place, "case never"):
                continue
            cases.append((patterns, self.statements(body), place))
        return Switch(Concat(parts) if parts else test, cases, src_loc=old.src_loc)

    def value(self, old: Value) -> Value:
        """The value, changed where the mutant says; `old` itself if it says nothing of it."""
        known = self._done.get(id(old))
        if known is None:
            # The old one is kept, so that its id stays its own.
            known = self._done[id(old)] = (old, self._value(old))
        return known[1]

    def _operand(self, old: Value, place: Any) -> Value:
        """An operand of what stands at `place`. A constant has no place of its own."""
        if not isinstance(old, Const):
            return self.value(old)
        for change, other in constant_changes(old):
            if self._is_made(place, change):
                return other
        return old

    def _value(self, old: Value) -> Value:
        new = self._inside(old)
        if new is not old:
            new = _placed(new, old.src_loc)
        for change, make in value_changes(old):
            if self._is_made(old.src_loc, change):
                new = fitted(make(new), old.shape())
        return new

    def _inside(self, old: Value) -> Value:
        """The value with its operands changed."""
        place = getattr(old, "src_loc", None)
        if isinstance(old, Operator):
            operands = [self._operand(one, place) for one in old.operands]
            return old if _same(operands, old.operands) else Operator(old.operator, operands)
        if isinstance(old, Concat):
            parts = [self._operand(one, place) for one in old.parts]
            return old if _same(parts, old.parts) else Concat(parts)
        if isinstance(old, Slice):
            inner = self.value(old.value)
            return old if inner is old.value else Slice(inner, old.start, old.stop)
        if isinstance(old, Part):
            inner, offset = self.value(old.value), self.value(old.offset)
            if inner is old.value and offset is old.offset:
                return old
            return Part(inner, offset, old.width, old.stride)
        if isinstance(old, SwitchValue):
            test = self.value(old.test)
            values = [self._operand(one, place) for _, one in old.cases]
            if test is old.test and _same(values, [one for _, one in old.cases]):
                return old
            return SwitchValue(test, list(zip((patterns for patterns, _ in old.cases), values, strict=True)))
        return old


def _same(some: Iterable[Value], others: Iterable[Value]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))


def _placed(thing: Any, place: Any) -> Any:
    """`thing`, which stands where what it replaces stood."""
    if not isinstance(thing, Const | Signal):
        thing.src_loc = place
    return thing


def _conditions(switch: Switch) -> bool:
    """Whether it is an `If` with its `Elif`s: case n is taken by bit n of the test."""
    if not isinstance(switch.test, Concat) or any(len(part) != 1 for part in switch.test.parts):
        return False
    width = len(switch.test)
    return all(
        patterns is None or patterns == (("1" + "-" * number).rjust(width, "-"),)
        for number, (patterns, _, _) in enumerate(switch.cases)
    )
