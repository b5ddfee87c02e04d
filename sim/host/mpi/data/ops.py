"""Operations of reductions: element by element of buffers, or on two Python objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OperationError

__all__ = [
    "BAND",
    "BOR",
    "BXOR",
    "LAND",
    "LOR",
    "LXOR",
    "MAX",
    "MAXLOC",
    "MIN",
    "MINLOC",
    "OPS",
    "PROD",
    "SUM",
    "Op",
]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Op:
    """An operation, associative.

    - `name`: its name.
    - `function`: the operation on two arrays.
    - `scalar`: the operation on two Python objects.
    - `kinds`: the kinds of numpy types that it takes (None: all; "pair": a value and an index).
    - `commutes`: whether it commutes.
    """

    name: str
    function: Callable[[Array, Array], Array]
    scalar: Callable[[Any, Any], Any]
    kinds: str | None = None
    commutes: bool = True

    @classmethod
    def Create(cls, function: Callable[[Any, Any, Any], None], commute: bool = False) -> Op:
        """An operation of the user's: `function(a, b, datatype)` combines `a`, of the lower ranks, into `b`, both numpy
        arrays of one dimension.

        Called for objects, it gets two of them and None, and returns the result.
        """
        if not callable(function):
            raise OperationError(f"Op.Create: {function!r} is no function of (a, b, datatype)")

        def combine(first: Array, second: Array) -> Array:
            result = second.copy()
            function(first, result, second.dtype)
            return result

        name = getattr(function, "__name__", "a function")
        return cls(name, combine, lambda one, other: function(one, other, None), None, bool(commute))

    def Is_commutative(self) -> bool:
        """Whether the order of the ranks does not matter."""
        return self.commutes

    def __call__(self, one: Any, other: Any) -> Any:
        """The operation on two objects; on arrays, element by element."""
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and OPS.get(self.name) is self:
            self.check(one.dtype, self.name)
            return self.function(one, other)
        return self.scalar(one, other)

    def check(self, dtype: np.dtype[Any], what: str) -> None:
        """Check a type. Raises OperationError, beginning with `what`, for a type that it has no meaning for."""
        kind = "pair" if dtype.fields is not None and len(dtype.fields) == 2 else dtype.kind
        good = kind == "pair" if self.kinds == "pair" else self.kinds is None or kind in self.kinds
        if not good:
            what_it_takes = {
                "pair": "a value and an index, as MPI.DOUBLE_INT",
                "biu": "whole numbers, truth values",
            }
            takes = what_it_takes.get(self.kinds or "", "numbers that have an order")
            if self.kinds == "biufc":
                takes = "numbers"
            raise OperationError(f"{what}: {self.name} of {dtype.name}: it takes {takes}")

    def apply(self, first: Array, second: Array) -> Array:
        """The result, in the type of `first`, which is from the lower ranks."""
        return np.asarray(self.function(first, second)).astype(first.dtype, copy=False)


def _location(better: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """The better value and its index; of equal values the lower index."""

    def combine(first: Array, second: Array) -> Array:
        assert first.dtype.names is not None
        value, index = first.dtype.names
        take = better(first[value], second[value]) | (
            (first[value] == second[value]) & (first[index] <= second[index])
        )
        return np.where(take, first, second)

    return combine


def _location_of_pairs(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def combine(one: Any, other: Any) -> Any:
        if one[0] == other[0]:
            return one if one[1] <= other[1] else other
        return one if better(one[0], other[0]) else other

    return combine


def _logical(function: Callable[[bool, bool], bool]) -> Callable[[Any, Any], Any]:
    return lambda one, other: function(bool(one), bool(other))


SUM = Op("SUM", np.add, lambda a, b: a + b, "biufc")
PROD = Op("PROD", np.multiply, lambda a, b: a * b, "biufc")
MIN = Op("MIN", np.minimum, min, "biuf")
MAX = Op("MAX", np.maximum, max, "biuf")
LAND = Op("LAND", np.logical_and, _logical(lambda a, b: a and b), "biufc")
LOR = Op("LOR", np.logical_or, _logical(lambda a, b: a or b), "biufc")
LXOR = Op("LXOR", np.logical_xor, _logical(lambda a, b: a != b), "biufc")
BAND = Op("BAND", np.bitwise_and, lambda a, b: a & b, "biu")
BOR = Op("BOR", np.bitwise_or, lambda a, b: a | b, "biu")
BXOR = Op("BXOR", np.bitwise_xor, lambda a, b: a ^ b, "biu")
MINLOC = Op("MINLOC", _location(np.less), _location_of_pairs(lambda a, b: a < b), "pair")
MAXLOC = Op("MAXLOC", _location(np.greater), _location_of_pairs(lambda a, b: a > b), "pair")
OPS = {op.name: op for op in (SUM, PROD, MIN, MAX, LAND, LOR, LXOR, BAND, BOR, BXOR, MINLOC, MAXLOC)}
"""MPI's own operations, by name."""
