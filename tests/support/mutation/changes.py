"""Changes of one expression or statement of Amaranth's language, as mutants make them.

A changed expression keeps its width and sign, so that nothing else of the design changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amaranth.hdl import Const, Shape, Value
from amaranth.hdl._ast import Operator, SwitchValue

__all__ = ["CONDITIONS", "changed_condition", "constant_changes", "fitted", "is_mux", "value_changes"]

_OTHER = {
    **{
        "&": ("|",),
        "|": ("&",),
        "^": ("|",),
        "+": ("-",),
        "-": ("+",),
        "*": ("+",),
        "<<": (">>",),
        ">>": ("<<",),
    },
    **{
        "==": ("!=",),
        "!=": ("==",),
        "<": ("<=", ">="),
        "<=": ("<", ">"),
        ">": (">=", "<="),
        ">=": (">", "<"),
    },
}
"""The operators of two operands, and what each is changed to. Of an order there are two: off by one, and negated."""

_REDUCED = {"b": "r&", "r|": "r&", "r&": "r|", "r^": "r|"}
_NAMES = {"b": "bool", "r|": "any", "r&": "all", "r^": "xor"}

CONDITIONS = ("negated", "always", "never")
"""Changes of a condition."""


def fitted(value: Value, shape: Shape) -> Value:
    """`value` cut or extended to `shape`."""
    if value.shape() == shape:
        return value
    wide = value | Const(0, Shape(shape.width, value.shape().signed))
    cut = wide[: shape.width]
    return cut.as_signed() if shape.signed else cut


def changed_condition(test: Value, how: str) -> Value:
    """The condition `test`, one bit, changed."""
    return {"negated": ~test, "always": Const(1, 1), "never": Const(0, 1)}[how]


def is_mux(value: Value) -> bool:
    """Whether `value` is a choice of two."""
    return type(value) is SwitchValue and len(value.cases) == 2 and value.cases[1][0] is None


def constant_changes(value: Const) -> Iterator[tuple[str, Const]]:
    """The next and the last constant of the same width, where they are two: what is said of each, and it.

    The value is not said, as a constant may be another in each instance.
    """
    shape, seen = value.shape(), {value.value}
    for by in (1, -1):
        other = Const(value.value + by, shape) if shape.width else value
        if other.value not in seen:
            seen.add(other.value)
            yield f"constant {'+' if by > 0 else '-'} 1", other


def value_changes(value: Value) -> Iterator[tuple[str, Callable[[Value], Value]]]:
    """The changes of the outermost operation of `value`: what is said of each, and how it is made of `value` or of a
    copy with other operands."""
    if is_mux(value):
        yield (
            "Mux: swapped",
            lambda v: SwitchValue(v.test, [(v.cases[0][0], v.cases[1][1]), (None, v.cases[0][1])]),
        )
        yield "Mux: always the first", lambda v: v.cases[1][1]
        yield "Mux: always the second", lambda v: v.cases[0][1]
    if not isinstance(value, Operator):
        return
    operator, count = value.operator, len(value.operands)
    if count == 2:
        for other in _OTHER.get(operator, ()):
            yield f"{operator} -> {other}", lambda v, other=other: _binary(other, *v.operands)
    elif operator in ("~", "-"):
        yield f"{operator} dropped", lambda v: v.operands[0]
    elif operator in _REDUCED and len(value.operands[0]) > 1:
        other = _REDUCED[operator]
        yield f"{_NAMES[operator]} -> {_NAMES[other]}", lambda v: Operator(other, v.operands)


def _binary(operator: str, left: Value, right: Value) -> Value:
    """An operation. An amount of a shift is cut to 5 bits, beyond which Amaranth has no left shift."""
    if operator in ("<<", ">>"):
        right = right.as_unsigned()[:5]
    return Operator(operator, (left, right))
