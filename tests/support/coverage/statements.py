"""The lines of a file of the RTL that have a statement of Amaranth's language, elaborated or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["statement_lines"]

_BRANCHES = {"If", "Elif", "Else", "Case", "Default", "State"}


def statement_lines(text: str) -> set[int]:
    """The first lines of assignments (`x.eq(y)`, `m.next = s`) and of branches (`with m.If(x)`) in `text`."""
    return set(_lines(ast.parse(text)))


def _lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eq":
            yield node.lineno
        elif isinstance(node, ast.With):
            heads = [item.context_expr for item in node.items]
            names = [
                h.func.attr for h in heads if isinstance(h, ast.Call) and isinstance(h.func, ast.Attribute)
            ]
            if _BRANCHES.intersection(names):
                yield node.lineno
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Attribute) and target.attr == "next" for target in node.targets
        ):
            yield node.lineno
