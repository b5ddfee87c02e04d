"""A rate control unit alone in a simulation, with flows that always have a packet (`lanikai.hdl.traffic.rate_server`).

Python gives the flows their rates and reads their counts; in between it sleeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lanikai.hdl.config import ConfigError, NicConfig
from pydantic import Field

from ..errors import SimulationError
from .base import System, SystemConfig

if TYPE_CHECKING:
    from ..build.model import Design, Variant
    from ..inside.session import Session

__all__ = ["FlowCounts", "RateUnit", "RateUnitConfig"]

TOP = "rate_server"
SETUP_CYCLES = 64
"""Cycles of a flow's set-up: longer than its three commands take (a decision each, and a look of the scan)."""
MOST_CYCLES = 1 << 33
"""Longest run: the packets of a flow, 4 cycles each at least, are counted in 32 bits, and cycles in 40."""
SETUP_TRIES = 20
"""Times of `SETUP_CYCLES` until a set-up fails: longer than a tree of 1024 flows takes to clear its memories."""


class RateUnitConfig(SystemConfig):
    """The rate control unit of a card."""

    title = "rate unit"
    inside = "lanikai.sim.systems.rate_unit:RateUnit"

    nic: NicConfig = Field(default_factory=NicConfig, description="the card whose unit it is")

    def design(self, variant: Variant = "fast") -> Design:
        """The unit with its flows, the same for every variant."""
        from lanikai.hdl.traffic.rate_server import RateServer

        from ..build.model import block_design

        return block_design(RateServer(self.nic), name=TOP)


@dataclass(frozen=True, kw_only=True)
class FlowCounts:
    """Counts of a flow: `packets` dispatched, and the cycles of the `first` and of the `last` of them."""

    packets: int
    first: int
    last: int


class RateUnit(System[RateUnitConfig]):
    """The rate control unit inside its simulation. It has no watchdog: every wait below has an end of its own."""

    def __init__(self, config: RateUnitConfig, session: Session) -> None:
        from lanikai.hdl.traffic.rate_server import COUNTS, SETUP

        from ..inside.words import Fields

        super().__init__(config, session)
        self._setup, self._counts = Fields(SETUP), Fields(COUNTS)
        self._toggle = 0

    async def set_flow(self, flow: int, *, idt_ticks: int, ndt_ticks: int) -> None:
        """Give a flow its IDT and first NDT, and packets for ever. It is to be called before `measure`."""
        from ..inside import native_api

        self._toggle ^= 1
        word = self._setup.pack(toggle=self._toggle, flow=flow, idt=idt_ticks, ndt=ndt_ticks)
        native_api.signal("setup").set(word)
        for _ in range(SETUP_TRIES):
            await self.clock.sleep(SETUP_CYCLES)
            if native_api.signal("set_up").get() == self._toggle:
                return
        raise SimulationError(f"flow {flow}: the rate control unit has not taken its IDT")

    async def measure(
        self, flows: Sequence[int], *, service_cycles: int, warmup_cycles: int, window_cycles: int
    ) -> tuple[list[FlowCounts], int]:
        """Run for `warmup_cycles`, then count for `window_cycles`. A packet takes the link for `service_cycles`.

        Returns the counts of each of `flows`, and the cycles in which the link was taken. Raises ConfigError for more
        cycles than the counters of the design hold.
        """
        from ..inside import native_api

        if warmup_cycles + window_cycles > MOST_CYCLES:
            raise ConfigError(
                f"warmup_cycles + window_cycles = {warmup_cycles} + {window_cycles}: at most {MOST_CYCLES}"
            )

        native_api.signal("service").set(service_cycles)
        native_api.signal("run").set(1)
        await self.clock.sleep(warmup_cycles)
        native_api.signal("counting").set(1)
        steps = 20
        for step in range(steps):
            self.progress(step / steps, "counting")
            await self.clock.sleep((window_cycles * (step + 1)) // steps - (window_cycles * step) // steps)
        native_api.signal("counting").set(0)
        await self.clock.sleep(2)
        native_api.signal("run").set(0)
        found = []
        for flow in flows:
            native_api.signal("select").set(flow)
            await self.clock.sleep(3)
            row = native_api.signal("counts").get()
            names = ("packets", "first", "last")
            found.append(FlowCounts(**{name: self._counts.get(row, name) for name in names}))
        return found, native_api.signal("busy_cycles").get()
