"""Sizes of grids of ranks (MPI 1.1, 6), checked and computed. `intracomm.Cartcomm` is a communicator on one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.arguments import several, whole
from ..errors import CommunicatorError

__all__ = ["Compute_dims", "checked_grid"]


def checked_grid(dims: Any, periods: Any, size: int, what: str) -> tuple[list[int], list[bool]]:
    """Sizes of the directions, and whether each is a ring. Raises CommunicatorError."""
    sizes = several(dims, f"{what}: dims", CommunicatorError)
    rings = [bool(one) for one in np.atleast_1d(False if periods is None else periods)]
    if len(rings) == 1:
        rings *= len(sizes)
    if len(rings) != len(sizes):
        raise CommunicatorError(f"{what}: periods = {rings}: {len(sizes)}, one a direction")
    if any(one < 1 for one in sizes):
        raise CommunicatorError(f"{what}: dims = {sizes}: each 1 or more")
    places = int(np.prod(sizes, dtype=np.int64))
    if places > size:
        raise CommunicatorError(f"{what}: dims = {sizes}: {places} ranks, it has {size}")
    return sizes, rings


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Sizes of directions, as even as can be and falling, for a grid of `nnodes`. Sizes in `dims` that are not 0 stay.
    Raises CommunicatorError if they do not divide it."""
    count = whole(nnodes, "Compute_dims: nnodes", CommunicatorError)
    numbers = several(dims, "Compute_dims: dims", CommunicatorError)
    given = numbers if hasattr(dims, "__iter__") else [0] * numbers[0]
    fixed = int(np.prod([one for one in given if one] or [1]))
    if count < 1 or any(one < 0 for one in given) or count % fixed or (fixed != count and 0 not in given):
        raise CommunicatorError(f"Compute_dims: dims = {given} do not make a grid of {count}")
    free = given.count(0)
    best = _even(count // fixed, free)
    return [one or best.pop(0) for one in given]


def _even(count: int, free: int) -> list[int]:
    """`free` factors of `count`, falling, whose largest is as small as can be."""
    if free <= 1:
        return [count][:free]
    found: list[int] | None = None
    for first in range(1, count + 1):
        if count % first == 0 and first**free >= count:
            rest = _even(count // first, free - 1)
            if rest[0] <= first:
                found = [first, *rest]
                break
    assert found is not None
    return found
