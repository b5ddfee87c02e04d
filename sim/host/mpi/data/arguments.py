"""Python types of arguments: numbers are whole numbers, whatever Python would make of others later."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import MpiError

__all__ = ["several", "whole"]


def whole(given: Any, what: str, kind: type[MpiError]) -> int:
    """`given` as an int: an int, or a value that has `__index__`, as numpy's integers. Raises `kind` with a line that
    begins with `what`."""
    try:
        return operator.index(given)
    except TypeError:
        raise kind(f"{what} = {given!r}: a whole number") from None


def several(given: Any, what: str, kind: type[MpiError]) -> list[int]:
    """`given` as a list of ints: whole numbers, or one of them. Raises `kind`."""
    many = list(given) if hasattr(given, "__iter__") and not isinstance(given, str | bytes) else [given]
    return [whole(one, what, kind) for one in many]
