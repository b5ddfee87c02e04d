"""The ground of a rank's MPI layer: messages to the other ranks, and time, as a protocol.

`gm_transport` provides it over GM; the tests have one in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Incoming", "Transport"]


@dataclass(frozen=True)
class Incoming:
    """A message that has arrived from rank `source` of the world. `data`, header first, stays as it is until it is
    released; `token` is the transport's own."""

    source: int
    data: memoryview
    token: Any


class Transport(Protocol):
    """One rank's messages. Those that are not `control` arrive in the order of their sending from each rank; all of
    them arrive once."""

    @property
    def rank(self) -> int:
        """This rank in the world."""

    @property
    def size(self) -> int:
        """Ranks of the world."""

    @property
    def cycle(self) -> int:
        """NIC clock cycles since reset."""

    @property
    def in_flight(self) -> int:
        """Messages that have been sent and not acknowledged."""

    @property
    def clock_hz(self) -> int:
        """NIC clock cycles a second."""

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way or has happened: no message to be taken, none that is not acknowledged."""

    def room(self, rank: int, *, control: bool) -> bool:
        """Whether a message to `rank` can be sent now, without waiting for a buffer."""

    async def send(self, rank: int, header: bytes, payload: memoryview, *, control: bool) -> None:
        """Send header and payload; there is room. Both are copied (whose time the caller spends). Raises MpiError."""

    def poll(self) -> Incoming | None:
        """The next message that has arrived. Raises TransportError if one was lost."""

    async def release(self, incoming: Incoming) -> None:
        """Give a message's bytes back: they are not needed any more."""

    async def wait(self) -> None:
        """Return when something has happened since the last `wait`: an arrival, room."""

    async def spend(self, nanoseconds: int) -> None:
        """Let the rank's CPU time pass."""

    async def close(self) -> None:
        """End the transport: nothing more is sent or received."""
