"""Expressions of plain Verilog, as Yosys writes them: read, joined, and written again with no change of a width.

In Verilog an operand is as wide as its surroundings. So an expression that takes the place of a wire is put in braces
wherever its surroundings are wider, which keeps it to its own width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

__all__ = ["NAME", "Expression", "names", "parse", "put", "width", "write"]

NAME = re.compile(r"(?<![\w'.$])[A-Za-z_]\w*")
"""An identifier that is no pin of an instance (`.pin(net)`) and no part of a number."""

_TOKEN = re.compile(
    r"\s*(\d+'s?[hdb][0-9a-fA-FxzXZ?]+|[A-Za-z_]\w*|\d+|<<<|>>>|<<|>>|[=!]=|[<>]=|&&|\|\||[-+*/%&|^~!<>?:(){},\[\]])"
)
_COMPARE, _LOGIC, _SHIFT = {"==", "!=", "<", ">", "<=", ">="}, {"&&", "||"}, {"<<", ">>"}
_BITWISE = {"+", "-", "*", "&", "|", "^"}
_LEVELS = (
    *(("||",), ("&&",), ("|",), ("^",), ("&",)),
    *(("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*",)),
)
"""Binary operators, those that bind least first."""
_REDUCE = {"|", "&", "^", "!"}


@dataclass(frozen=True)
class Expression:
    """A node: its `kind`, its `text` (name, number, operator), its `parts`.

    Kinds:

    - "name": a wire, with `high` and `low` if it is a part of one.
    - "number": a sized constant.
    - "unary", "binary", "choice" (`a ? b : c`), "join" (`{a, b}`), "repeat" (`{n{a}}`).
    - "held": an expression in the place of a wire as wide as itself.
    """

    kind: str
    text: str = ""
    parts: tuple[Expression, ...] = ()
    high: int | None = None
    low: int | None = None


def parse(text: str) -> Expression | None:
    """The expression in `text`; None for one that has more than the kinds of `Expression`."""
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            return None
        tokens.append(found[1])
        at = found.end()
    reader = _Reader(tokens)
    try:
        result = reader.choice()
    except (IndexError, ValueError):
        return None
    return result if reader.at == len(tokens) else None


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.tokens[self.at]
        if wanted and token != wanted:
            raise ValueError(token)
        self.at += 1
        return token

    def choice(self) -> Expression:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        first = self.choice()
        self.take(":")
        return Expression("choice", parts=(condition, first, self.choice()))

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            operator = self.take()
            left = Expression("binary", operator, (left, self.binary(level + 1)))
        return left

    def unary(self) -> Expression:
        if self.peek() in {"~", "!", "-", "|", "&", "^"}:
            operator = self.take()
            return Expression("unary", operator, (self.unary(),))
        return self.operand()

    def operand(self) -> Expression:
        token = self.take()
        if token == "(":
            inner = self.choice()
            self.take(")")
            return inner
        if token == "{":
            return self.braces()
        if "'" in token:
            if "'s" in token:
                raise ValueError(token)
            return Expression("number", token)
        if not re.match(r"[A-Za-z_]", token):
            raise ValueError(token)
        if self.peek() != "[":
            return Expression("name", token)
        self.take()
        high = low = int(self.take())
        if self.peek() == ":":
            self.take()
            low = int(self.take())
        self.take("]")
        return Expression("name", token, high=high, low=low)

    def braces(self) -> Expression:
        if self.peek().isdigit() and self.tokens[self.at + 1] == "{":
            count = self.take()
            self.take()
            inner = self.braces()
            self.take("}")
            return Expression("repeat", count, (inner,))
        parts = [self.choice()]
        while self.peek() == ",":
            self.take()
            parts.append(self.choice())
        self.take("}")
        return Expression("join", parts=tuple(parts))


def names(expression: Expression) -> Iterator[str]:
    """Every name in the expression, as often as it is there."""
    if expression.kind == "name":
        yield expression.text
    for part in expression.parts:
        yield from names(part)


def put(expression: Expression, name: str, value: Expression) -> Expression:
    """`expression` with `value` in the place of the whole wire `name`. Raises ValueError where a part of it is used."""
    if expression.kind == "name" and expression.text == name:
        if expression.high is not None:
            raise ValueError(name)
        return value if value.kind in ("name", "number", "held") else Expression("held", parts=(value,))
    return replace(expression, parts=tuple(put(part, name, value) for part in expression.parts))


def width(expression: Expression, widths: Mapping[str, int]) -> int:
    """The bits of the expression by itself. Raises KeyError for a name that is not in `widths` (a memory, say), and
    ValueError for an operator whose width is not plain."""
    kind, parts = expression.kind, expression.parts
    if kind == "name":
        whole = widths[expression.text]
        return (
            whole
            if expression.high is None or expression.low is None
            else expression.high - expression.low + 1
        )
    if kind == "number":
        return int(expression.text.partition("'")[0])
    each = [width(part, widths) for part in parts]
    if kind == "held":
        return each[0]
    if kind == "join":
        return sum(each)
    if kind == "repeat":
        return int(expression.text) * each[0]
    if kind == "choice":
        return max(each[1:])
    if kind == "unary":
        return 1 if expression.text in _REDUCE else each[0]
    if expression.text in _COMPARE | _LOGIC:
        return 1
    if expression.text in _SHIFT:
        return each[0]
    if expression.text in _BITWISE:
        return max(each)
    raise ValueError(expression.text)


def write(expression: Expression, widths: Mapping[str, int], surroundings: int | None = None) -> str:
    """The text of the expression where it is `surroundings` bits wide; None: as wide as itself."""
    return _write(expression, widths, surroundings, top=True)


def _write(
    expression: Expression, widths: Mapping[str, int], surroundings: int | None, *, top: bool = False
) -> str:
    kind, parts = expression.kind, expression.parts

    def inner(part: Expression, bits: int | None) -> str:
        return _write(part, widths, bits)

    if kind == "name":
        if expression.high is None:
            return expression.text
        part = (
            f"{expression.high}"
            if expression.high == expression.low
            else f"{expression.high}:{expression.low}"
        )
        return f"{expression.text}[{part}]"
    if kind == "number":
        return expression.text
    if kind == "join":
        return "{" + ", ".join(_write(part, widths, None, top=True) for part in parts) + "}"
    if kind == "repeat":
        return "{" + expression.text + inner(parts[0], None) + "}"
    if kind == "held":
        own = width(parts[0], widths)
        if parts[0].kind in ("join", "repeat") or surroundings in (None, own):
            return _write(parts[0], widths, None, top=top)
        return "{" + _write(parts[0], widths, None, top=True) + "}"
    bits = max(width(expression, widths), surroundings or 0)
    if kind == "choice":
        text = f"{inner(parts[0], None)} ? {inner(parts[1], bits)} : {inner(parts[2], bits)}"
    elif kind == "unary":
        text = expression.text + inner(parts[0], None if expression.text in _REDUCE else bits)
    elif expression.text in _COMPARE:
        both = max(width(part, widths) for part in parts)
        text = f"{inner(parts[0], both)} {expression.text} {inner(parts[1], both)}"
    elif expression.text in _LOGIC:
        text = f"{inner(parts[0], None)} {expression.text} {inner(parts[1], None)}"
    elif expression.text in _SHIFT:
        text = f"{inner(parts[0], bits)} {expression.text} {inner(parts[1], None)}"
    else:
        text = f"{inner(parts[0], bits)} {expression.text} {inner(parts[1], bits)}"
    return text if top else f"({text})"
