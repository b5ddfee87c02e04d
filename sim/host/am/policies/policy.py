"""The protocol of a policy that chooses the endpoint to leave its frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

__all__ = ["Candidate", "ReplacementPolicy"]


class Candidate(Protocol):
    """A resident endpoint, as a policy sees it.

    - `frame`: its frame.
    - `used_cycle`: when its process last wrote into its page, or when it was loaded.
    - `referenced`: whether that was since somebody cleared it, as the referenced bit of a page table entry.
    """

    frame: int
    used_cycle: int
    referenced: bool


class ReplacementPolicy(ABC):
    """Chooses victims. A subclass is one file, and one line in `POLICIES`.

    Only writes count as uses: a process that polls reads the pages of all its endpoints, those without messages too.
    `seed`: for a policy that draws lots.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @abstractmethod
    def victim(self, candidates: Sequence[Candidate]) -> Candidate:
        """The endpoint that leaves. `candidates`: those that may, at least one, in the order of their frames."""
