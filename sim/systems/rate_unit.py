"""A rate control unit alone in a simulation, with flows that always have a packet (`lanikai.hdl.traffic.rate_server`).

Python gives the flows their rates and reads what they got; in between it sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config, ConfigError, NicConfig
from pydantic import Field

from ..errors import SimulationError

if TYPE_CHECKING:
    from ..build.model import Model, Progress, Variant
    from ..inside.session import Session

__all__ = ["ENTRY", "FlowCounts", "RateBench", "RateBenchConfig", "run_point"]

ENTRY = "lanikai.sim.systems.rate_unit:run_point"
"""The `entry` of `run.run` for a point of a rate bench."""
TOP = "rate_server"
SETUP_CYCLES = 64
"""Longer than a flow's three commands take (a decision each, and a look of the scan)."""
MOST_CYCLES = 1 << 33
"""Longest run: the packets of a flow, 4 cycles each at least, are counted in 32 bits, and cycles in 40."""
SETUP_TRIES = 20
"""So many of them: longer than a tree of 1024 flows takes to clear its memories."""


class RateBenchConfig(Config):
    """The rate control unit of a card."""

    nic: NicConfig = Field(default_factory=NicConfig, description="the card whose unit it is")

    def build(self, variant: Variant = "fast", progress: Progress | None = None) -> Model:
        """The bench's model, from the cache if it was built before. Raises as `build.build` does."""
        from ..build.model import Recipe, block_design, build

        def make() -> Any:
            from lanikai.hdl.traffic.rate_server import RateServer

            return block_design(RateServer(self.nic), name=TOP)

        return build(Recipe(name="rate bench", config=self.model_dump_json(), make=make), variant, progress)

    def job(self, entry: str, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The entry and the spec that `run.run` is given to have `entry` ("module:coroutine") run on the bench with
        `spec`."""
        return ENTRY, {"bench": self.model_dump(mode="json"), "entry": entry, "spec": dict(spec)}


@dataclass(frozen=True, kw_only=True)
class FlowCounts:
    """What a flow got: `packets` dispatched, and the cycles of the `first` and of the `last` of them."""

    packets: int
    first: int
    last: int


class RateBench:
    """The bench inside its simulation: `config`, `clock`, and what a run has (`seed`, `random`, `progress`)."""

    def __init__(self, config: RateBenchConfig, session: Session) -> None:
        from lanikai.hdl.traffic.rate_server import COUNTS, SETUP

        from ..inside.words import Fields

        self.config, self.clock = config, session.clock
        self.seed, self.random, self.progress = session.seed, session.random, session.progress
        self._setup, self._counts = Fields(SETUP), Fields(COUNTS)
        self._toggle = 0

    async def set_flow(self, flow: int, *, idt_ticks: int, ndt_ticks: int) -> None:
        """Give a flow its IDT and first NDT, and packets for ever. Before `measure`."""
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
        """Run for `warmup_cycles`, then count for `window_cycles`; a packet takes the link for `service_cycles`.
        Returns what each of `flows` got, and the cycles in which the link was taken. Raises ConfigError for more
        cycles than the counters of the bench hold."""
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


async def run_point(session: Session) -> Any:
    """Make the bench of a session whose spec is `RateBenchConfig.job`'s, and run the coroutine named there with the
    bench and its spec."""
    from ..inside.session import load_coroutine

    bench = RateBench(RateBenchConfig(**session.spec["bench"]), session)
    coroutine = load_coroutine(session.spec["entry"])
    session.started = time.perf_counter()
    return await coroutine(bench, session.spec["spec"])
