"""One queue of credits for all destinations."""

from __future__ import annotations

from .policy import CreditPolicy

__all__ = ["GlobalCredits"]


class GlobalCredits(CreditPolicy):
    """The global completion queue of yum-2006 4.2: one for all destinations."""

    def queues(self) -> int:
        """One."""
        return 1

    def queue(self, destination: int) -> int:
        """The only one."""
        return 0
