"""Sums and ORs of many signals as trees: a chain of a thousand is deeper than a program may nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["balanced"]


def balanced(operator: Callable[[Any, Any], Any], values: Iterable[Any]) -> Any:
    """`values`, of which there is at least one, joined by an associative operator of two."""
    row = list(values)
    while len(row) > 1:
        pairs = [operator(a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
        row = pairs + row[len(row) & ~1 :]
    return row[0]
