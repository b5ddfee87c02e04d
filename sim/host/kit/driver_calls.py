"""The driver as queues and regions see it, and a queue and a channel as the driver sees them.

`card_driver.CardDriver` has `DriverCalls`, `driver.Driver` is the one `ChannelCalls`. Queues and regions import this
file and not the driver, and it not them: `process.Process` brings them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lanikai.hdl.config import NicConfig

from ..bus import HostBus
from ..config import KitConfig
from ..memory import Buffer, PageAllocator

__all__ = ["ChannelCalls", "ChannelSetup", "CompletionSetup", "DriverCalls", "QueueSetup"]


class CompletionSetup(Protocol):
    """A completion queue, for the driver; `completion_queue.CompletionQueue` says what each is."""

    number: int
    ring: Buffer
    entries: int
    owner: int
    batch: int
    lag_cycles: int
    stall: bool
    dead: bool

    def restart(self) -> None:
        """Note that it has been made anew."""

    def die(self) -> None:
        """Note that the card could not write the ring."""

    def wake(self) -> None:
        """Note that the card's interrupt was for this queue."""


class QueueSetup(Protocol):
    """A work queue, for the driver; `work_queue.WorkQueue` says what each is."""

    ring: Buffer
    shadow: int | None


class ChannelSetup(Protocol):
    """A channel, for the driver; `work_queue.Channel` says what each is."""

    number: int
    owner: int

    @property
    def send(self) -> QueueSetup:
        """The queue to send."""

    @property
    def receive(self) -> QueueSetup:
        """The queue to receive."""

    @property
    def send_completions(self) -> CompletionSetup:
        """The queue that tells the ends of sent messages."""

    @property
    def receive_completions(self) -> CompletionSetup:
        """The queue that tells the ends of received messages."""


class DriverCalls(Protocol):
    """The driver of one host's card; `card_driver.CardDriver` says what each attribute and call is."""

    bus: HostBus
    nic: NicConfig
    kit: KitConfig
    pages: PageAllocator

    async def spend(self, nanoseconds: int) -> None:
        """Let host CPU time pass."""

    async def set_up(self, *writes: tuple[str, Mapping[str, int]]) -> None:
        """Have the firmware write registers."""

    async def make_queue(self, queue: CompletionSetup) -> None:
        """Make a completion queue on the card, or make it anew."""


class ChannelCalls(DriverCalls, Protocol):
    """A driver that connects channels; `driver.Driver` says what each call is."""

    async def connect(self, channel: ChannelSetup, *, node: int, number: int) -> None:
        """Tell firmware and card of a channel and its peer."""

    async def disconnect(self, channel: ChannelSetup) -> None:
        """Disconnect a channel: it hears nobody any more."""
