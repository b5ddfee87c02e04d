"""Least recently used: the endpoint leaves whose process has not written into its page for the longest time."""

from __future__ import annotations

from collections.abc import Sequence

from .policy import Candidate, ReplacementPolicy

__all__ = ["LeastRecentlyUsed"]


class LeastRecentlyUsed(ReplacementPolicy):
    """The oldest use goes. It needs the time of each use, which a page table does not have: it is an ideal."""

    def victim(self, candidates: Sequence[Candidate]) -> Candidate:
        """The one whose last use is the longest ago; the lowest frame of those that are equal."""
        return min(candidates, key=lambda one: (one.used_cycle, one.frame))
