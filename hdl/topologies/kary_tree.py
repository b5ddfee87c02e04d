"""k-ary n-trees (Petrini and Vanneschi 1997): fat trees of equal routers."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from .shape import Links, Places, Shape

__all__ = ["KaryTree"]

MOST_NODES = 1024
MOST_ROUTERS = 4096


class KaryTree(Shape):
    """n levels of k^(n-1) routers each, which have k links down and, but for the top level's, k links up.

    The digits of a number have base k, the first one is the highest. Router w of level l (0 is the top) has number
    l * k^(n-1) + w. Its port d leads down to the router of level l + 1 that differs from w in digit l, which is d
    there. Port k + d leads up to the one that differs in digit l - 1. Node p is at port `p mod k` of router `p / k` of
    the last level.
    """

    label: ClassVar[str] = "kary_tree"
    ranges: ClassVar[str] = "kary_tree(2,2) to kary_tree(2,9) or kary_tree(31,2)"
    routing: ClassVar[str] = "kary_tree"

    k: int = Field(ge=2, le=31, description="links of a router down, and up")
    n: int = Field(ge=2, le=9, description="levels")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.k**self.n > MOST_NODES:
            raise ValueError(f"{self.k}^{self.n} nodes: at most {MOST_NODES}")
        if self.router_count > MOST_ROUTERS:
            raise ValueError(f"{self.router_count} routers: at most {MOST_ROUTERS}")
        return self

    @property
    def ports(self) -> int:
        """k down and k up."""
        return 2 * self.k

    @property
    def row(self) -> int:
        """Routers of a level."""
        return int(self.k ** (self.n - 1))

    @property
    def router_count(self) -> int:
        """Those of all levels."""
        return self.n * self.row

    def homes(self) -> Places:
        """k nodes at each router of the last level."""
        return [((self.n - 1) * self.row + node // self.k, node % self.k) for node in range(self.k**self.n)]

    def joined(self) -> Links:
        """Level by level from the top, each router to its k children."""
        found: Links = []
        for level in range(self.n - 1):
            stride = self.k ** (self.n - 2 - level)
            for w in range(self.row):
                digit = w // stride % self.k
                found += [
                    (
                        (level * self.row + w, child),
                        ((level + 1) * self.row + w + (child - digit) * stride, self.k + digit),
                    )
                    for child in range(self.k)
                ]
        return found

    @property
    def diameter(self) -> int:
        """Up to the top and down again."""
        return 2 * (self.n - 1)

    @property
    def bisection(self) -> int | None:
        """Half as many links as nodes, where k is even: each half can send to the other at the full rate."""
        return int(self.k**self.n) // 2 if self.k % 2 == 0 else None
