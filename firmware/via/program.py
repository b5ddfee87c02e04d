"""The VIA program of one card: the design that its configuration names, and what a cluster asks of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lanikai.hdl.config import NicConfig

from ..costs import CostTable
from ..ports import CardPorts
from ..processor import Processor
from ..program import FirmwareProgram
from .config import ARRIVAL, ViaConfig
from .costs import SVIA_COSTS
from .ladder_costs import LADDER_COSTS
from .parallel.costs import PVIA_COSTS, QOSVIA_COSTS
from .parallel.events import events
from .parallel.loop import ParallelVia
from .sequential import SequentialVia
from .state import ViaContext
from .trace import STEP_LABELS

__all__ = ["ViaProgram"]


class ViaProgram(FirmwareProgram[ViaConfig]):
    """The control program of `node`; `start` spawns it. The arguments are those of `FirmwareProgram`.

    A packet takes the route of its VI's record, which the agent writes, and none of `routes`. With `costs` None it has
    those of its design.

    - `context`: its state, which tests and experiments read. `trace`: the stages of its messages.
    - `processors`: one, or one that sends and one that receives. `loop`: the design.
    - `drops`: packets and doorbells that were dropped, by the reason (`Receiving`, `Doorbells`).

    Raises ConfigError for a card that lacks something.
    """

    Config = ViaConfig
    default_costs = SVIA_COSTS
    speaks = "via"

    def __init__(
        self,
        card: CardPorts,
        *,
        node: int,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: ViaConfig | None = None,
        costs: CostTable | None = None,
    ) -> None:
        super().__init__(card, node=node, nic=nic, routes=routes, config=config, costs=costs)
        parallel = self.config.design == "parallel"
        ports = tuple(card.processors) if parallel else (self.only_processor(),)
        if costs is None and parallel:
            measured = PVIA_COSTS if self.config.order == ARRIVAL else QOSVIA_COSTS
            self.costs = LADDER_COSTS if self.config.cost_table == "ladder" else measured
        self.context = ViaContext(node=node, nic=nic, config=self.config, clock=lambda: ports[0].cycle)
        self.layout, self.trace, self.drops = self.context.layout, self.context.trace, self.context.drops
        self.processors = tuple(
            Processor(port, self.costs, sources=mine) for port, mine in zip(ports, events(nic), strict=True)
        )
        for processor in self.processors:
            processor.labels = STEP_LABELS
        self.loop: SequentialVia | ParallelVia
        if parallel:
            self.loop = ParallelVia(self.context, self.processors)
        else:
            self.loop = SequentialVia(self.context, self.processors[0])

    @property
    def advanced_cycle(self) -> int:
        """The cycle in which a message last moved on."""
        return self.context.advanced_cycle

    @advanced_cycle.setter
    def advanced_cycle(self, cycle: int) -> None:
        """Nothing: the context knows."""

    @property
    def dropped(self) -> int:
        """Packets and doorbells dropped, whatever the reason."""
        return self.drops.total()

    @property
    def pending(self) -> int:
        """Messages to send that it knows of, those without an answer too, and one more for its present step."""
        waiting = sum(len(vi.under_way) + vi.send.waiting for vi in self.context.vis.values() if vi.record)
        return waiting + (self.context.doing != "")

    def state(self) -> list[str]:
        """Its present step, its VIs and its drops, a line each."""
        lines = [f"via[{self.node}]: {self.context.doing or 'waits for events'}"]
        for vi in self.context.vis.values():
            lines.append(
                f"  channel {vi.channel}: {vi.send.waiting} to send, {len(vi.under_way)} under way, "
                f"{vi.receive.waiting} to receive{', broken' if vi.broken else ''}"
            )
        return (
            lines
            + self.loop.state()
            + [f"  dropped, {reason}: {count}" for reason, count in Counter(self.drops).items()]
        )

    def waiting(self) -> list[str]:
        """Its present step, in a few words; nothing if it waits for events."""
        return [f"node {self.node} {self.context.doing}"] if self.context.doing else []

    def start(self) -> None:
        """Spawn the program."""
        self.loop.start(f"via[{self.node}]")
