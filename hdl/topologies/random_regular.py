"""Random regular graphs: every router has as many links, and a seed says which."""

from __future__ import annotations

import random
from collections import Counter
from typing import ClassVar, Self

from pydantic import Field, model_validator

from ..config import ConfigError
from .shape import Links, Shape

__all__ = ["RandomRegular"]

_TRIES = 1000
"""Graphs that are drawn before a seed is given up: a draw fails seldom, but for graphs that are almost complete."""


class RandomRegular(Shape):
    """Routers with a node each and `degree` links to others, drawn at random; it hangs together.

    Port 0 leads to the node, the ports after it to neighbours, in the order of their numbers. The same name is the same
    graph everywhere. Routes are shortest paths, or up*/down* where these could deadlock.
    """

    label: ClassVar[str] = "random_regular"
    ranges: ClassVar[str] = "random_regular(4,2,seed=1) to random_regular(1024,16,seed=1)"
    lanes: ClassVar[str] = "packets keep their VL"

    routers: int = Field(ge=4, le=1024, description="routers, a node on each")
    degree: int = Field(ge=2, le=16, description="links of a router")
    seed: int = Field(1, ge=0, le=999_999, description="the draw's seed")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.degree >= self.routers:
            raise ValueError(f"degree = {self.degree}: less than the {self.routers} routers")
        if self.routers * self.degree % 2:
            raise ValueError(
                f"{self.routers} routers of {self.degree} links: one of the numbers must be even"
            )
        return self

    @property
    def ports(self) -> int:
        """A node and the neighbours."""
        return 1 + self.degree

    @property
    def router_count(self) -> int:
        """`routers`."""
        return self.routers

    def joined(self) -> Links:
        """The links of the first draw that hangs together. Raises ConfigError if none of `_TRIES` does."""
        chance = random.Random(self.seed)
        for _ in range(_TRIES):
            pairs = self._draw(chance)
            if pairs is not None and self._hangs_together(pairs):
                break
        else:
            raise ConfigError(f"{self.name}: no draw hangs together: give another seed")
        found: Links = []
        taken: Counter[int] = Counter()
        for low, high in sorted(pairs):
            taken.update((low, high))
            found.append(((low, taken[low]), (high, taken[high])))
        return found

    def _draw(self, chance: random.Random) -> set[tuple[int, int]] | None:
        """Pairs of routers, each `degree` times in one; None if those that are left could not be paired.

        Ends of links are shuffled and paired. Pairs that are loops, or there already, are drawn again with the rest.
        """
        pairs: set[tuple[int, int]] = set()
        ends = [router for router in range(self.routers) for _ in range(self.degree)]
        while ends:
            chance.shuffle(ends)
            left: list[int] = []
            for one, other in zip(ends[::2], ends[1::2], strict=True):
                pair = (min(one, other), max(one, other))
                if one == other or pair in pairs:
                    left += [one, other]
                else:
                    pairs.add(pair)
            if len(left) == len(ends) and not self._can_go_on(left, pairs):
                return None
            ends = left
        return pairs

    @staticmethod
    def _can_go_on(left: list[int], pairs: set[tuple[int, int]]) -> bool:
        """Whether two of the ends that are left may still be joined."""
        routers = sorted(set(left))
        return any((a, b) not in pairs for i, a in enumerate(routers) for b in routers[i + 1 :])

    def _hangs_together(self, pairs: set[tuple[int, int]]) -> bool:
        beside: dict[int, list[int]] = {router: [] for router in range(self.routers)}
        for low, high in pairs:
            beside[low].append(high)
            beside[high].append(low)
        reached, front = {0}, [0]
        while front:
            front = [there for here in front for there in beside[here] if there not in reached]
            reached.update(front)
        return len(reached) == self.routers
