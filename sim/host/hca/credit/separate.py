"""A queue of credits for each destination."""

from __future__ import annotations

from .policy import CreditPolicy

__all__ = ["SeparateCredits"]


class SeparateCredits(CreditPolicy):
    """A completion queue for each node (yum-2006 4.3). That of the own node is left out: it would never be used."""

    def queues(self) -> int:
        """One for each other node."""
        return len(self.coordinates) - 1

    def queue(self, destination: int) -> int:
        """The destination's. Raises ValueError for the own node."""
        if destination == self.node:
            raise ValueError(f"destination = {destination}: another node than the own one")
        return destination - (destination > self.node)
