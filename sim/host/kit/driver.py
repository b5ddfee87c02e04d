"""The driver of a card with work queues: the part of the operating system that gives processes their parts of it."""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.firmware.work_queue.config import WorkQueueConfig
from lanikai.firmware.work_queue.layout import ChannelRecord, Layout
from lanikai.firmware.work_queue.program import DRIVER_CHANNEL
from lanikai.hdl.config import NicConfig

from ..bus import HostBus
from ..config import KitConfig
from .card_driver import CardDriver
from .driver_calls import ChannelSetup
from .errors import KitError

__all__ = ["Driver"]


class Driver(CardDriver):
    """The driver of one host's card, whose firmware is a `WorkQueueProgram` with the same `config`.

    It is a `CardDriver` that connects channels, and has `may_stall`: owners whose completion queues may stall, which
    can hold up the whole card. It is empty until whoever runs the host puts one in
    (`driver.may_stall.add(process.owner)`). Raises ConfigError as `Layout` does.
    """

    program = "WorkQueueProgram"

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: WorkQueueConfig | None = None,
        kit: KitConfig | None = None,
    ) -> None:
        self.config = WorkQueueConfig() if config is None else config
        self.layout = Layout(nic, self.config)
        super().__init__(
            bus, nic=nic, routes=routes, kit=kit, mailbox=self.layout.mailbox, broken=self.layout.broken
        )
        self.may_stall: set[int] = set()

    async def connect(self, channel: ChannelSetup, *, node: int, number: int) -> None:
        """Tell firmware and card of a channel that sends to channel `number` of `node`, and hears it alone.

        That card has as many channels as this one. Raises KitError for a node without a route, and for a channel that
        its card does not have.
        """
        if node not in self.routes:
            known = ", ".join(map(str, self.routes)) or "none"
            raise KitError(f"node {self.bus.node} has no route to node {node}; it reaches {known}")
        if not DRIVER_CHANNEL < number < self.nic.channels:
            raise KitError(
                f"node {self.bus.node}: channel {number} of node {node}: its card has 1 to {self.nic.channels - 1}"
            )
        shadows = [queue.shadow for queue in (channel.send, channel.receive)]
        window = self.layout.window(channel.owner)
        record = ChannelRecord(
            send_ring=channel.send.ring.start,
            receive_ring=channel.receive.ring.start,
            send_completions=channel.send_completions.number,
            receive_completions=channel.receive_completions.number,
            send_shadow=0 if shadows[0] is None else window + shadows[0],
            receive_shadow=0 if shadows[1] is None else window + shadows[1],
            route=self.routes[node],
            node=node,
            channel=number,
        ).words()
        # The word that says that the channel is open comes last, and if it was open goes first. So the firmware
        # never sees half of an old peer and half of a new one.
        at = self.layout.record(channel.number)
        order = sorted(range(len(record)), key=lambda i: i == ChannelRecord.OPEN_WORD)
        closed = (at + 4 * ChannelRecord.OPEN_WORD, 0)
        await self.bus.write_all([closed, *((at + 4 * i, record[i]) for i in order)])
        await self.set_up(
            ("DOORBELL_CHANNEL", {"channel": channel.number, "owner": channel.owner, "open": 1})
        )

    async def disconnect(self, channel: ChannelSetup) -> None:
        """Disconnect a channel: it hears nobody any more, and nobody hears it."""
        await self.set_up(("DOORBELL_CHANNEL", {"channel": channel.number}))
        await self.bus.write(self.layout.record(channel.number) + 4 * ChannelRecord.OPEN_WORD, 0)
