"""Groups of ranks (MPI 1.1, 5.3): sets in an order, from which communicators are made. Nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data.arguments import whole
from ..data.status import UNDEFINED
from ..errors import RankError
from ..matching import PROC_NULL

__all__ = ["CONGRUENT", "IDENT", "SIMILAR", "UNEQUAL", "Group"]

IDENT, CONGRUENT, SIMILAR, UNEQUAL = range(4)
"""Results of Compare: the same; the same ranks in the same order; in another order; other ranks."""


class Group:
    """A group. `world_ranks`: the ranks of the world that are its ranks 0, 1, ..., seen from rank `me` of the world."""

    def __init__(self, world_ranks: Sequence[int], me: int) -> None:
        self.world_ranks, self._me = tuple(world_ranks), me

    def __repr__(self) -> str:
        return f"<group of ranks {', '.join(map(str, self.world_ranks)) or 'none'} of the world>"

    @property
    def size(self) -> int:
        """Its number of ranks."""
        return len(self.world_ranks)

    @property
    def rank(self) -> int:
        """This rank in it; UNDEFINED if it is not."""
        return self.world_ranks.index(self._me) if self._me in self.world_ranks else UNDEFINED

    def Get_size(self) -> int:
        """Its number of ranks."""
        return self.size

    def Get_rank(self) -> int:
        """This rank in it; UNDEFINED if it is not."""
        return self.rank

    def Incl(self, ranks: Sequence[int]) -> Group:
        """Its ranks `ranks`, in that order. Raises RankError."""
        return self._made(self.world_ranks[rank] for rank in self._checked(ranks, "Incl"))

    def Excl(self, ranks: Sequence[int]) -> Group:
        """All but its ranks `ranks`. Raises RankError."""
        out = self._checked(ranks, "Excl")
        return self._made(one for rank, one in enumerate(self.world_ranks) if rank not in out)

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Group:
        """Its ranks in ranges (first, last, step). Raises RankError."""
        return self.Incl(self._ranges(ranks, "Range_incl"))

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Group:
        """All but its ranks in ranges (first, last, step). Raises RankError."""
        return self.Excl(self._ranges(ranks, "Range_excl"))

    def Union(self, other: Group) -> Group:
        """Its ranks, then those of the other one that are not in it."""
        return self._made((*self.world_ranks, *(r for r in other.world_ranks if r not in self.world_ranks)))

    def Intersection(self, other: Group) -> Group:
        """Ranks in both, in this one's order."""
        return self._made(r for r in self.world_ranks if r in other.world_ranks)

    def Difference(self, other: Group) -> Group:
        """Ranks that are not in the other one."""
        return self._made(r for r in self.world_ranks if r not in other.world_ranks)

    def Translate_ranks(self, ranks: Sequence[int] | None = None, group: Group | None = None) -> list[int]:
        """The ranks in `group` of its own `ranks` (all, by default): UNDEFINED for one that is not there.

        Without a group they are the ranks in the world. PROC_NULL stays what it is. Raises RankError.
        """
        asked = range(self.size) if ranks is None else ranks
        found = []
        for rank in asked:
            if rank == PROC_NULL:
                found.append(PROC_NULL)
                continue
            (number,) = self._checked([rank], "Translate_ranks")
            one = self.world_ranks[number]
            if group is None:
                found.append(one)
            else:
                found.append(group.world_ranks.index(one) if one in group.world_ranks else UNDEFINED)
        return found

    def Compare(self, other: Group) -> int:
        """IDENT, SIMILAR (in another order) or UNEQUAL."""
        if self.world_ranks == other.world_ranks:
            return IDENT
        return SIMILAR if set(self.world_ranks) == set(other.world_ranks) else UNEQUAL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.world_ranks == other.world_ranks

    def __hash__(self) -> int:
        return hash(self.world_ranks)

    def Free(self) -> None:
        """Do nothing: nothing is held."""

    def _made(self, world_ranks: Any) -> Group:
        return Group(tuple(world_ranks), self._me)

    def _checked(self, ranks: Sequence[int], call: str) -> list[int]:
        found = []
        for rank in ranks:
            number = whole(rank, f"{call}: rank", RankError)
            if not 0 <= number < self.size:
                raise RankError(f"{call}: rank {number}: the group has ranks 0 to {self.size - 1}")
            if number in found:
                raise RankError(f"{call}: rank {number} is named twice")
            found.append(number)
        return found

    def _ranges(self, ranges: Sequence[tuple[int, int, int]], call: str) -> list[int]:
        found: list[int] = []
        for one in ranges:
            if len(one) != 3 or not one[2]:
                raise RankError(f"{call}: {one!r}: (first, last, step), a step that is not 0")
            first, last, step = (whole(number, f"{call}: range", RankError) for number in one)
            found += range(first, last + (1 if step > 0 else -1), step)
        return found
