"""Communicators: a group of ranks that exchange messages which no other communicator's calls see (MPI 1.1, 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..collectives import movement
from ..collectives.exchange import Exchange
from ..data.arguments import several, whole
from ..data.buffers import Parts, data_of
from ..data.status import UNDEFINED
from ..envelope import MAX_TAG
from ..errors import ArgumentError, AttributeKeyError, CommunicatorError, RankError
from ..matching import PROC_NULL
from ..process import Process
from .attributes import NOT_COPIED, TAG_UB, Keyval, finished
from .collective_objects import ObjectCollectives
from .grid import checked_grid
from .group import CONGRUENT, IDENT, Group
from .objects import Objects

__all__ = ["Cartcomm", "Intracomm"]


class Intracomm(Objects, ObjectCollectives):
    """A communicator with all its calls."""

    def __init__(self, process: Process, world_ranks: Sequence[int], context: int, name: str) -> None:
        super().__init__(process, world_ranks, context, name)
        self._attributes: dict[Keyval, Any] = {TAG_UB: MAX_TAG}

    # -- new ones ----------------------------------------------------------------------------------------------------

    async def Dup(self) -> Intracomm:
        """A communicator of the same ranks, whose messages do not mix with this one's. All ranks call it. Attributes
        are copied as their keys say."""
        async with self._call("Dup"):
            context = await self._new_context("Dup")
            copy = self._same(context, f"{self.name}.Dup")
        for keyval, value in list(self._attributes.items()):
            copied = await keyval.copied(self, value)
            if copied is not NOT_COPIED:
                copy._attributes[keyval] = copied
        return copy

    def _same(self, context: int, name: str) -> Intracomm:
        return Intracomm(self.process, self.world_ranks, context, name)

    async def Split(self, color: int = 0, key: int = 0) -> Intracomm | None:
        """A communicator for the ranks that give the same `color` (0 or more), in the order of their `key`, then of
        their rank here. All ranks call it; one that gives UNDEFINED gets None. It has no attributes of this one."""
        made = await self._split("Split", color, key)
        return made and Intracomm(self.process, *made)

    async def _split(self, call: str, color: Any, key: Any) -> tuple[list[int], int, str] | None:
        async with self._call(call):
            chosen_color = whole(color, f"{call} of {self.name}: color", CommunicatorError)
            chosen_key = whole(key, f"{call} of {self.name}: key", CommunicatorError)
            if chosen_color < 0 and chosen_color != UNDEFINED:
                raise CommunicatorError(
                    f"{call} of {self.name}: color = {chosen_color}: 0 or more, or UNDEFINED"
                )
            context = await self._new_context(call)
            everybody = await self._tell_all(call, [chosen_color, chosen_key])
        if chosen_color == UNDEFINED:
            return None
        chosen = sorted((int(k), rank) for rank, (c, k) in enumerate(everybody) if c == chosen_color)
        return (
            [self.world_ranks[rank] for _, rank in chosen],
            context,
            f"{self.name}.{call}[{chosen_color}]",
        )

    async def Create(self, group: Group) -> Intracomm | None:
        """A communicator for the ranks of a group, in its order; None at the others. All ranks of this one call it,
        each with the same group. Raises CommunicatorError for ranks that are not in this one."""
        async with self._call("Create"):
            if not isinstance(group, Group):
                raise CommunicatorError(f"Create of {self.name}: {type(group).__name__} is no Group")
            strangers = [rank for rank in group.world_ranks if rank not in self.world_ranks]
            if strangers:
                raise CommunicatorError(
                    f"Create of {self.name}: rank {strangers[0]} of the world is not in it"
                )
            context = await self._new_context("Create")
        if self.process.transport.rank not in group.world_ranks:
            return None
        return Intracomm(self.process, group.world_ranks, context, f"{self.name}.Create")

    async def Create_cart(
        self, dims: Sequence[int], periods: Sequence[bool] | bool | None = None, reorder: bool = False
    ) -> Cartcomm | None:
        """A communicator whose ranks are a grid of `dims`, the last direction running fastest. `periods`: in which
        directions it is a ring.

        Ranks that the grid has no place for get None. `reorder` lets ranks be numbered anew, which this layer has no
        reason to do.
        """
        sizes, rings = checked_grid(dims, periods, self.size, f"Create_cart of {self.name}")
        places = int(np.prod(sizes, dtype=np.int64))
        made = await self._split("Create_cart", 0 if self.rank < places else UNDEFINED, self.rank)
        if made is None:
            return None
        world_ranks, context, _ = made
        return Cartcomm(self.process, world_ranks, context, f"{self.name}.Create_cart", sizes, rings)

    async def Free(self) -> None:
        """Delete its attributes; it cannot be used any more. Raises CommunicatorError for the world.

        It raises any error of a delete function: then the communicator, and the attribute, stay.
        """
        async with self._call("Free"):
            if self.context == 0:
                raise CommunicatorError(
                    f"Free on {self.name}: the world is not to be freed; it ends with the program"
                )
        for keyval in list(self._attributes):
            await keyval.deleted(self, self._attributes[keyval])
            del self._attributes[keyval]
        self._freed = True

    def Compare(self, other: Intracomm) -> int:
        """IDENT, CONGRUENT (the same ranks in the same order), SIMILAR (in another order) or UNEQUAL."""
        if not isinstance(other, Intracomm):
            raise CommunicatorError(f"Compare on {self.name}: {type(other).__name__} is no communicator")
        if self.context == other.context and self.world_ranks == other.world_ranks:
            return IDENT
        found = self.Get_group().Compare(other.Get_group())
        return CONGRUENT if found == IDENT else found

    async def _new_context(self, call: str) -> int:
        """A pair of context numbers that no rank of this communicator has used."""
        context = int((await self._tell_all(call, [self.process.next_context])).max())
        self.process.next_context = context + 2
        return context

    async def _tell_all(self, call: str, numbers: list[int]) -> np.ndarray[Any, Any]:
        """Everybody's numbers, by rank."""
        everybody = np.zeros((self.size, len(numbers)), np.int64)
        everybody[self.rank] = numbers
        count = len(numbers)
        data = data_of(everybody, call, writable=True)
        parts = Parts(data, [count] * self.size, [count * rank for rank in range(self.size)])
        await movement.allgather(Exchange(self, call), parts)
        return everybody

    # -- attributes --------------------------------------------------------------------------------------------------

    @staticmethod
    def Create_keyval(
        copy_fn: Callable[[Any, Any, Any], Any] | bool | None = None,
        delete_fn: Callable[[Any, Any, Any], Any] | None = None,
    ) -> Keyval:
        """A key for attributes; the functions may be coroutines. `copy_fn` True: `Dup` copies the value. Raises
        ArgumentError for an argument that is no function."""
        for name, function in (("copy_fn", copy_fn), ("delete_fn", delete_fn)):
            if (
                not callable(function)
                and function not in (None, True, False)[: 1 if name == "delete_fn" else 3]
            ):
                raise ArgumentError(
                    f"Create_keyval: {name} = {function!r}: a function of (comm, keyval, value), or None"
                )
        return Keyval(copy=copy_fn, delete=delete_fn)

    async def Set_attr(self, keyval: Keyval, attrval: Any) -> None:
        """Set an attribute, once its key has found the value possible; one that it had there is deleted first. With
        the key `qos.QOS` it asks for bandwidth, and returns when the manager has answered. Raises AttributeKeyError."""
        self._check_keyval("Set_attr", keyval)
        if keyval is TAG_UB:
            raise AttributeKeyError(f"Set_attr on {self.name}: TAG_UB is not to be set")
        keyval.check(self, attrval)
        if keyval in self._attributes:
            await self.Delete_attr(keyval)
        self._attributes[keyval] = await finished(keyval.store(self, attrval))

    def Get_attr(self, keyval: Keyval) -> Any:
        """The value of an attribute, None if it is not set. For a QoS key it says whether the request was granted
        (`qos.QosAnswer`)."""
        self._check_keyval("Get_attr", keyval)
        return self._attributes.get(keyval)

    async def Delete_attr(self, keyval: Keyval) -> None:
        """Delete an attribute. With a QoS key its bandwidth goes back. Raises AttributeKeyError if it is not set.

        It raises any error of its delete function: then the attribute stays.
        """
        self._check_keyval("Delete_attr", keyval)
        if keyval is TAG_UB:
            raise AttributeKeyError(f"Delete_attr on {self.name}: TAG_UB is not to be deleted")
        if keyval not in self._attributes:
            raise AttributeKeyError(f"{self.name} has no attribute {keyval.name}: Set_attr first")
        await keyval.deleted(self, self._attributes[keyval])
        del self._attributes[keyval]

    def _check_keyval(self, call: str, keyval: Any) -> None:
        self._check_usable(call)
        if not isinstance(keyval, Keyval):
            raise AttributeKeyError(f"{call} on {self.name}: {keyval!r} is no key; Create_keyval makes one")


class Cartcomm(Intracomm):
    """A communicator whose ranks are a grid (MPI 1.1, 6): `dims` of the directions, the last of which runs fastest;
    `periods`: whether each is a ring. `Intracomm.Create_cart` makes one."""

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
        """The place of this rank."""
        return self.Get_coords(self.rank)

    def Get_dim(self) -> int:
        """Its number of directions."""
        return len(self.dims)

    def Get_topo(self) -> tuple[list[int], list[bool], list[int]]:
        """Its dims and periods, and the place of this rank."""
        return list(self.dims), list(self.periods), self.coords

    def Get_coords(self, rank: int) -> list[int]:
        """The place of a rank. Raises RankError."""
        number = self._check_rank(rank, "Get_coords", "rank")
        return [int(one) for one in np.unravel_index(number, self.dims)] if self.dims else []

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """The rank at a place; in a ring the place may be outside. Raises RankError."""
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
