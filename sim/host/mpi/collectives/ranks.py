"""A communicator as collective operations see it: ranks that exchange messages.

`comm.base.Comm` is `Ranks`. Collective operations import this file and not the communicators, whose calls they are.
"""

from __future__ import annotations

from typing import Protocol

from ..data.buffers import Data
from ..data.request import Request
from ..process import Process

__all__ = ["Ranks"]


class Ranks(Protocol):
    """A communicator; `comm.base.Comm` says what each attribute and call is."""

    process: Process
    rank: int
    name: str

    @property
    def size(self) -> int:
        """Its number of ranks."""

    def next_collective(self) -> int:
        """The number of the next collective operation."""

    async def _isend(
        self,
        data: Data,
        dest: int,
        tag: int,
        what: str,
        *,
        synchronous: bool = False,
        collective: int = 0,
        elements: int = 0,
    ) -> Request:
        """Begin to send to a checked rank."""

    async def _irecv(
        self, data: Data | None, source: int, tag: int, what: str, *, collective: bool = False
    ) -> Request:
        """Begin to receive from a checked rank."""
