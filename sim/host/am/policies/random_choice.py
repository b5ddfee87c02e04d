"""Random replacement: any endpoint leaves, each as likely."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .policy import Candidate, ReplacementPolicy

__all__ = ["RandomPolicy"]


class RandomPolicy(ReplacementPolicy):
    """Draws a lot. It needs nothing of the page table."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._random = random.Random(seed)

    def victim(self, candidates: Sequence[Candidate]) -> Candidate:
        """Any one of them."""
        return self._random.choice(candidates)
