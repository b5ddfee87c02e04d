"""No congestion control: a message is posted at once."""

from __future__ import annotations

from .policy import CreditPolicy

__all__ = ["NoCredits"]


class NoCredits(CreditPolicy):
    """One queue that never runs out. Its credits may be below 0: it counts all the same."""

    limited = False

    def queues(self) -> int:
        """One."""
        return 1

    def queue(self, destination: int) -> int:
        """The only one."""
        return 0
