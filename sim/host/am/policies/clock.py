"""The clock: a hand goes round the frames, and takes the first endpoint not used since it last came by."""

from __future__ import annotations

from collections.abc import Sequence

from .policy import Candidate, ReplacementPolicy

__all__ = ["ClockPolicy"]


class ClockPolicy(ReplacementPolicy):
    """Second chance. It needs the referenced bits alone. Two rounds of the hand at most give a victim."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._hand = 0

    def victim(self, candidates: Sequence[Candidate]) -> Candidate:
        """The next one behind the hand whose bit is clear; bits that the hand passes are cleared."""
        while True:
            ahead = [one for one in candidates if one.frame > self._hand]
            for one in ahead:
                self._hand = one.frame
                if not one.referenced:
                    return one
                one.referenced = False
            self._hand = 0
