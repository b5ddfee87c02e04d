"""Checks of arguments that every call of the library makes before anything moves."""

from __future__ import annotations

from operator import index

from .errors import ArgumentTypeError

__all__ = ["whole"]


def whole(name: str, value: object) -> int:
    """An argument as a whole number: `int`, or a type that stands for one, as NumPy's integers do. Raises
    ArgumentTypeError for anything else, truth values among them, naming the argument."""
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ArgumentTypeError(f"{name} = {value!r}: a whole number (int), not {type(value).__name__}")
