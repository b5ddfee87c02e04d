"""The program of virtual networks on one card: a loop that looks at the card's events and serves what has come."""

from __future__ import annotations

from collections.abc import Mapping

from lanikai.hdl.config import NicConfig

from ..costs import CostTable
from ..ports import CardPorts
from ..processor import Processor
from ..program import FirmwareProgram
from .config import VirtualNetworkConfig
from .costs import AM_COSTS
from .delivery import Delivery
from .endpoints import Frame, FrameState, Slot
from .frames import Paging
from .intake import Intake
from .loop import Loop
from .mailbox import Mailbox, Notices
from .receiver import Receiver
from .sender import Sender
from .state import AmState
from .transport import Transport

__all__ = ["AmProgram"]


class AmProgram(FirmwareProgram[VirtualNetworkConfig]):
    """The control program of `node`; `start` spawns it. The arguments are those of `FirmwareProgram`.

    It is one loop (`Loop`), as the paper's firmware is. Nothing in it waits but the loop itself, for events.

    - `incarnation`: how often the card has been started, so that other cards know it anew.
    - `shared`: the state of its parts. `transport`: the protocol's. `layout`: places in its SRAM.

    Raises ConfigError for a card that lacks something, or is too small.
    """

    Config = VirtualNetworkConfig
    default_costs = AM_COSTS
    speaks = "am"

    def __init__(
        self,
        card: CardPorts,
        *,
        node: int,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: VirtualNetworkConfig | None = None,
        costs: CostTable | None = None,
        incarnation: int = 1,
    ) -> None:
        super().__init__(card, node=node, nic=nic, routes=routes, config=config, costs=costs)
        self.processor = Processor(self.only_processor(), self.costs)
        state = self.shared = AmState(self.processor, nic, self.config, node, self.routes)
        self.layout = state.layout
        self.transport = Transport(self.config, node=node, incarnation=incarnation)
        self.notices = Notices(state)
        delivery = Delivery(state, self.notices)
        self.sender = Sender(state, self.transport, delivery, self.notices)
        self.paging = Paging(state, self.sender, self.notices)
        self.receiver = Receiver(state, self.transport, self.sender, delivery, self.notices)
        self.mailbox = Mailbox(state, self.paging, self.notices)
        self._loop = Loop(state, Intake(state, self.mailbox.rung), self.sender, self.receiver)

    @classmethod
    def default_config(cls, nic: NicConfig) -> VirtualNetworkConfig:
        """Sizes that fit the card."""
        return VirtualNetworkConfig.for_nic(nic)

    @property
    def advanced_cycle(self) -> int:
        """The cycle in which a message or a page last moved on."""
        return self.shared.advanced_cycle

    @advanced_cycle.setter
    def advanced_cycle(self, cycle: int) -> None:
        """Nothing: the parts know."""

    @property
    def pending(self) -> int:
        """Messages that have no fate yet, frames that change their endpoint, moves and notices that wait."""
        frames = self.shared.frames.values()
        changing = sum(frame.state not in (FrameState.EMPTY, FrameState.RESIDENT) for frame in frames)
        posted = sum(
            queue.open - queue.slots.count(Slot.DONE)
            for frame in frames
            for queue in frame.sends
            if frame.endpoint
        )
        return posted + changing + self.shared.host_dma.pending + self.notices.waiting

    def state(self) -> list[str]:
        """Its frames, its engines, its channels and its drops, a line each."""
        shared = self.shared
        lines = [f"am[{self.node}]: {self.pending} things to do"]
        lines += [f"  {_describe(frame)}" for frame in shared.frames.values() if frame.endpoint is not None]
        lines += [f"  {line}" for line in self.transport.state()]
        lines.append(
            f"  host DMA {'busy' if shared.host_dma.busy else 'free'}, {shared.host_dma.pending} moves; send engine "
            f"{'busy' if shared.send.busy else 'free'}, {len(shared.send.packets)} packets; "
            f"{len(shared.receive.free)} receive buffers free; {self.notices.waiting} notices wait"
        )
        drops = shared.drops + self.transport.drops
        return lines + [f"  dropped, {reason}: {count}" for reason, count in drops.items()]

    def waiting(self) -> list[str]:
        """Its endpoints that wait for something, a few words each."""
        return [
            f"node {self.node} {_describe(frame)}"
            for frame in self.shared.frames.values()
            if frame.state not in (FrameState.EMPTY, FrameState.RESIDENT)
            or any(queue.open for queue in frame.sends)
        ]

    def start(self) -> None:
        """Spawn the loop."""
        self.processor.port.spawn(self._loop.run(), f"am[{self.node}]")


def _describe(frame: Frame) -> str:
    sends = " and ".join(
        f"{queue.open} {name} ({queue.slots.count(Slot.UNDER_WAY)} under way)"
        for name, queue in zip(("requests", "replies"), frame.sends, strict=False)
    )
    return (
        f"frame {frame.number}: endpoint {frame.endpoint}, {frame.state.name.lower()}; {sends or 'nothing'} to send; "
        f"{frame.moving} moves"
    )
