"""Grids of ranks (MPI 1.1, 6): who is whose neighbour. The last direction runs fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.arguments import several, whole
from ..errors import CommunicatorError, RankError
from ..process import Process
from .base import PROC_NULL
from .intracomm import Intracomm

__all__ = ["Cartcomm", "Compute_dims", "checked_grid"]


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


class Cartcomm(Intracomm):
    """A communicator whose ranks are a grid: `dims` of the directions, `periods`: whether each is a ring."""

    def __init__(
        self,
        process: Process,
        world_ranks: Sequence[int],
        context: int,
        name: str,
        dims: Sequence[int],
        periods: Sequence[bool],
    ) -> None:
        super().__init__(process, world_ranks, context, name)
        self.dims, self.periods = list(dims), list(periods)

    def _same(self, context: int, name: str) -> Intracomm:
        return Cartcomm(self.process, self.world_ranks, context, name, self.dims, self.periods)

    @property
    def ndim(self) -> int:
        """Its number of directions."""
        return len(self.dims)

    @property
    def dim(self) -> int:
        """Its number of directions."""
        return len(self.dims)

    @property
    def coords(self) -> list[int]:
        """Where this rank is."""
        return self.Get_coords(self.rank)

    def Get_dim(self) -> int:
        """Its number of directions."""
        return len(self.dims)

    def Get_topo(self) -> tuple[list[int], list[bool], list[int]]:
        """Its dims and periods, and where this rank is."""
        return list(self.dims), list(self.periods), self.coords

    def Get_coords(self, rank: int) -> list[int]:
        """Where a rank is. Raises RankError."""
        number = self._check_rank(rank, "Get_coords", "rank")
        return [int(one) for one in np.unravel_index(number, self.dims)] if self.dims else []

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Who is at a place; in a ring it may be outside. Raises RankError."""
        what = f"Get_cart_rank on {self.name}: coords"
        places = several(coords, what, RankError)
        if len(places) != self.dim:
            raise RankError(f"{what} = {places}: {self.dim}, one a direction")
        for direction, (place, size, ring) in enumerate(zip(places, self.dims, self.periods, strict=True)):
            if ring:
                places[direction] = place % size
            elif not 0 <= place < size:
                raise RankError(f"{what} = {places}: direction {direction} has places 0 to {size - 1}")
        return int(np.ravel_multi_index(places, self.dims)) if self.dims else 0

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """Source and destination of a shift by `disp` in a direction: PROC_NULL beyond the edge. Raises RankError."""
        what = f"Shift on {self.name}"
        axis = whole(direction, f"{what}: direction", RankError)
        step = whole(disp, f"{what}: disp", RankError)
        if not 0 <= axis < self.dim:
            raise RankError(f"{what}: direction = {axis}: 0 to {self.dim - 1}")

        def neighbour(offset: int) -> int:
            place = self.coords
            place[axis] += offset
            if not self.periods[axis] and not 0 <= place[axis] < self.dims[axis]:
                return PROC_NULL
            return self.Get_cart_rank(place)

        return neighbour(-step), neighbour(step)

    async def Sub(self, remain_dims: Sequence[bool]) -> Cartcomm:
        """The grid of the ranks that share this one's place in the directions that do not remain. All ranks call
        it."""
        keep = [bool(one) for one in np.atleast_1d(remain_dims)]
        if len(keep) != self.dim:
            raise CommunicatorError(f"Sub of {self.name}: remain_dims = {keep}: {self.dim}, one a direction")
        color = 0
        for place, size, stays in zip(self.coords, self.dims, keep, strict=True):
            color = color * (1 if stays else size) + (0 if stays else place)
        made = await self._split("Sub", color, self.rank)
        assert made is not None
        world_ranks, context, name = made
        dims = [size for size, stays in zip(self.dims, keep, strict=True) if stays]
        rings = [ring for ring, stays in zip(self.periods, keep, strict=True) if stays]
        return Cartcomm(self.process, world_ranks, context, name, dims, rings)


def Compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Sizes of directions, as even as can be and falling, for a grid of `nnodes`; those of `dims` that are not 0 stay.
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
