"""The objects that a GM port gives its caller: messages that arrived, handles of messages on their way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanikai.firmware.gm.layout import Status
from lanikai.firmware.ports import Flag

from ..errors import GmError
from ..memory import Buffer

__all__ = ["Received", "RemoteBuffer", "SendCallback", "SendHandle"]


@dataclass(frozen=True)
class Received:
    """A message that has arrived: its first `length` bytes stand in `buffer`. It came from `port` of `node` at
    `priority`. `cycle`: when the host saw it."""

    buffer: Buffer
    length: int
    node: int
    port: int
    priority: int
    cycle: int

    def read(self) -> bytes:
        """A copy of the message."""
        return self.buffer.read(self.length)


@dataclass(frozen=True)
class RemoteBuffer:
    """Exposed memory of `port` of `node`: `length` bytes from host address `start` there. A program may hand it to
    others in a message."""

    node: int
    port: int
    start: int
    length: int


class SendHandle:
    """A message on its way.

    - `done`: it is acknowledged or has failed.
    - `status`: then says how it ended.
    - `error`: then says why it failed, None if it arrived.
    - `sent_cycle`, `done_cycle`: when the call began, when the host saw the end.
    """

    def __init__(self, description: str, finished: Flag, cycle: int, callback: SendCallback | None) -> None:
        self.description = description
        self.sent_cycle = cycle
        self.done_cycle: int | None = None
        self.error: GmError | None = None
        self.status: Status | None = None
        self._finished = finished
        self._callback = callback

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.done_cycle is not None

    async def wait(self) -> None:
        """Return once the other side has acknowledged all of it. Raises the GmError that it failed with."""
        await self._finished.wait()
        if self.error is not None:
            raise self.error

    def finish(self, error: GmError | None, cycle: int, status: Status = Status.OK) -> None:
        """Note that the event has come."""
        self.error, self.done_cycle, self.status = error, cycle, status
        self._finished.set()
        if self._callback is not None:
            self._callback(self)


SendCallback = Callable[[SendHandle], None]
"""A function that is called with the handle when a message has ended."""
