"""The work queue program as its parts see it: their shared state, and the calls that each has for the others.

`program.WorkQueueProgram` is the one `WorkQueueContext`. The parts import this file and not the program.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from lanikai.hdl.config import NicConfig

from ..processor import Processor
from .config import WorkQueueConfig
from .events import Events
from .layout import Layout
from .state import PostedQueue

__all__ = ["IntakeCalls", "ReceiverCalls", "WorkQueueContext"]


class IntakeCalls(Protocol):
    """The intake of doorbells, for the others."""

    async def take_doorbells(self) -> None:
        """Take all doorbells that have been rung."""


class ReceiverCalls(Protocol):
    """The receiver, for the others."""

    async def receive(self) -> None:
        """Take in the packet that has come."""


class WorkQueueContext(Protocol):
    """The control program of `node`; `program.WorkQueueProgram` describes its attributes.

    - `doing`: its present step in words, nothing while it waits for events.
    """

    node: int
    nic: NicConfig
    config: WorkQueueConfig
    layout: Layout
    processor: Processor
    events: Events
    operations: Counter[str]
    drops: Counter[str]
    sent: int
    received: int
    doing: str

    @property
    def intake(self) -> IntakeCalls:
        """The intake of doorbells."""

    @property
    def receiver(self) -> ReceiverCalls:
        """The receiver."""

    def queue(self, channel: int, *, receive: bool) -> PostedQueue:
        """A queue of a channel, to send or to receive."""

    def may_send(self, queue: PostedQueue) -> None:
        """A queue may have descriptors to send."""

    def advance(self) -> None:
        """Something has moved on."""
