"""The traffic network inside its simulation: set up, run a measurement, read out.

Python works while classes are set up and statistics read; in between it sleeps from phase to phase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.ports import NODE, READ_CYCLES, REQUEST, Phase

from ..energy.meter import ActivityMeter
from ..errors import SimulationError
from ..inside import native_api
from ..inside.session import Session
from ..inside.wakes import Wakes
from ..inside.watchdog import Probe
from ..models.router_agent import RouterAgent
from .base import System
from .forwarding import write_forwarding_tables
from .network_blocks import network_probes
from .setup_port import SetupPort
from .traffic_config import TrafficNetworkConfig
from .traffic_registers import ClassCounts, Measured, Place, TrafficRegisters, check_measurement
from .watch.traffic_watch import TrafficWatch
from .watch.watching import Watching

__all__ = ["ClassCounts", "Measured", "TrafficNetwork", "check_measurement"]

_PHASE_NAMES = {
    Phase.CLEAR: "clearing",
    Phase.WARMUP: "warm-up",
    Phase.WINDOW: "window",
    Phase.DRAIN: "drain",
}


class TrafficNetwork(System[TrafficNetworkConfig], TrafficRegisters):
    """The traffic network inside its simulation. A watchdog ends the simulation with SimulationError when nothing has
    moved for `config.watchdog_cycles` of a measurement. Before, it writes the VL state of all routers into the log."""

    def __init__(self, config: TrafficNetworkConfig, session: Session) -> None:
        super().__init__(config, session)
        self._port = SetupPort(self.clock, response=True)
        self.network, self.traffic, self.traffic_seed = config.network, config.traffic, self.seed
        self._levels = {}
        self.watches: list[TrafficWatch] = []
        self.watch()

    async def prepare(self) -> None:
        """Write the routers' forwarding tables, if they go by them."""
        config = self.config
        await write_forwarding_tables(self.clock, config.network, top=self._top, composed=config.composed)

    def probes(self) -> list[Probe]:
        """VL state of all routers."""
        return network_probes(self.config.network)

    @property
    def top(self) -> str:
        """The top module's name."""
        return self._top

    @cached_property
    def wakes(self) -> Wakes:
        """The native events of the simulation. They live as long as it does."""
        return Wakes()

    def watch_traffic(self, watching: Watching, *, warmup_cycles: int, window_cycles: int) -> TrafficWatch:
        """Look at the next measurement, of these cycles; `watches` keeps who looks. Raises as `TrafficWatch`."""
        watch = TrafficWatch(self, watching, warmup_cycles=warmup_cycles, window_cycles=window_cycles)
        self.watches.append(watch)
        return watch

    def activity_meter(self) -> ActivityMeter:
        """A meter of the routers' activity from now on. Raises SimulationError without `activity_counters`."""
        return ActivityMeter(self.config.network, self.clock, top=self._top)

    def agent(self, router: int) -> RouterAgent:
        """The agent's port of a router, to be used by one coroutine at a time. Raises ConfigError unless
        `config.agents`."""
        if not self.config.agents:
            raise ConfigError("TrafficNetworkConfig.agents = False: the agents' ports are not open")
        instance = f"{self._top}.network.router{router}" if self.config.composed else ""
        return RouterAgent(self.clock, self.config.network.router, router, instance=instance)

    async def write(self, words: Iterable[tuple[Place, int]]) -> None:
        """Write words, one a cycle; the last one has been taken when this returns."""
        await self._port.write(
            [_pack(node=node, address=address, data=word, write=1) for (node, address), word in words]
        )

    async def read(self, places: Sequence[Place]) -> list[int]:
        """The words at `places`, in their order, one a cycle."""
        requests = [_pack(node=node, address=address) for node, address in places]
        # The answer of a request set in cycle t is there in t + 1 + READ_CYCLES, by the top's own register.
        words = await self._port.read(requests, more_cycles=READ_CYCLES + 2)
        if len(words) != len(places):
            raise SimulationError(f"{len(places)} words were asked for, {len(words)} came")
        return words

    async def start_nodes(self) -> None:
        """As in any network; and say so where routers choose the way."""
        self.say(self.network.by_destination)
        await super().start_nodes()

    async def measure(
        self, *, warmup_cycles: int, window_cycles: int, limit_cycles: int, faults: bool = False
    ) -> Measured:
        """Warm up, measure, drain, read out. Raises SimulationError if a sink found an error, or a router
        dropped a packet, and ConfigError (`check_measurement`) before anything is written. With `faults` errors and
        drops are no reason to end: `errors` has them."""
        await self.start_measurement(
            warmup_cycles=warmup_cycles, window_cycles=window_cycles, limit_cycles=limit_cycles
        )
        self.limit_watchdog(self.config.watchdog_cycles)
        phases = native_api.signal("phase")
        whole = self.config.traffic.clear_cycles + warmup_cycles + window_cycles + limit_cycles
        began = self.clock.cycle
        while (phase := Phase(phases.get())) is not Phase.DONE:
            self.progress(min(1.0, (self.clock.cycle - began) / whole), _PHASE_NAMES.get(phase, ""))
            await self.clock.change(self._dut.phase_event)
        self.limit_watchdog(0)
        return await self.read_out(window_cycles=window_cycles, faults=faults)

    async def until(self, phase: Phase) -> None:
        """Return when a measurement is in `phase`."""
        phases = native_api.signal("phase")
        while Phase(phases.get()) is not phase:
            await self.clock.change(self._dut.phase_event)

    @property
    def dropped(self) -> int:
        """Packets that routers have dropped since the start."""
        return native_api.signal("dropped").get()

    async def errors(self) -> list[dict[str, int]]:
        """The errors that each node's sink has counted since the last start of a measurement, by kind."""
        kinds = ("framing", "integrity", "order", "destination")
        found = []
        for node in range(self.config.traffic.nodes):
            words = await self.read([(node, NODE[f"{kind.upper()}_ERRORS"].offset) for kind in kinds])
            found.append(dict(zip(kinds, words, strict=True)))
        return found

    async def _look_for_errors(self) -> None:
        await super()._look_for_errors()
        if dropped := self.dropped:
            raise SimulationError(f"routers dropped {dropped} packets")


def _pack(*, node: int, address: int, data: int = 0, write: int = 0) -> int:
    """A word of the request port."""
    values = {"valid": 1, "write": write, "node": node, "address": address, "data": data}
    return sum(value << REQUEST[name].offset for name, value in values.items())
