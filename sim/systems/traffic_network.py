"""The traffic network inside its simulation: set up, run a measurement, read out.

Python works while classes are set up and statistics read; in between it sleeps from phase to phase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.measurement import MOST_MEASURED_CYCLES, MOST_WARMUP_CYCLES
from lanikai.hdl.traffic.ports import (
    MEASUREMENT,
    MEASUREMENT_NODE,
    NODE,
    READ_CYCLES,
    REQUEST,
    STATISTICS,
    Phase,
    Verdict,
    class_address,
    histogram_address,
    statistics_address,
)
from lanikai.hdl.traffic.setup import ClassSetup, class_seeds
from lanikai.hdl.traffic.statistics import bin_of, bin_range

from ..errors import SimulationError
from ..inside import native_api
from ..inside.session import Session
from ..inside.watchdog import Probe
from ..models.router_agent import RouterAgent
from .base import System
from .forwarding import write_forwarding_tables
from .network_blocks import network_probes
from .setup_port import SetupPort, route_words
from .traffic_config import TrafficNetworkConfig

__all__ = ["ClassCounts", "Measured", "TrafficNetwork", "check_measurement"]

Place = tuple[int, int]
"""A node's number, or `MEASUREMENT_NODE`, and an address of its registers."""

_PHASE_NAMES = {
    Phase.CLEAR: "clearing",
    Phase.WARMUP: "warm-up",
    Phase.WINDOW: "window",
    Phase.DRAIN: "drain",
}


@dataclass(frozen=True, kw_only=True)
class ClassCounts:
    """Counts of one node for one class (`hdl/traffic/statistics.rdl`). As a source:

    - `offered_packets`, `offered_flits`: born in the window.
    - `injected_flits`: sent in it.
    - `deferred_cycles`: a birth waited for a full queue.

    As a sink:

    - `accepted_flits`: received in the window.
    - `latency_packets`, `latency_sum_cycles`, `latency_min_cycles`, `latency_max_cycles`: of the packets born in the
      window (None without a packet).
    - `histogram`: of these packets, (last latency of a bin, packets in it), bins without packets left out.
    """

    offered_packets: int
    offered_flits: int
    injected_flits: int
    deferred_cycles: int
    accepted_flits: int
    latency_packets: int
    latency_sum_cycles: int
    latency_min_cycles: int | None
    latency_max_cycles: int | None
    histogram: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measurement.

    - `saturated`: the drain's limit came before the last packet of the window.
    - `window_cycles`: its window.
    - `drain_cycles`: how long the drain took.
    - `counts[node][class]`: the counts.
    """

    saturated: bool
    window_cycles: int
    drain_cycles: int
    counts: tuple[tuple[ClassCounts, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """The measurement as plain JSON."""
        return asdict(self)


def check_measurement(*, warmup_cycles: int, window_cycles: int, limit_cycles: int) -> None:
    """Raise ConfigError for a measurement that the design's counters do not hold (`hdl/traffic/measurement.rdl`)."""
    for name, cycles, least in (
        ("warmup_cycles", warmup_cycles, 0),
        ("window_cycles", window_cycles, 1),
        ("limit_cycles", limit_cycles, 1),
    ):
        if cycles < least:
            raise ConfigError(f"{name} = {cycles}: at least {least}")
    if warmup_cycles > MOST_WARMUP_CYCLES:
        raise ConfigError(f"warmup_cycles = {warmup_cycles}: at most {MOST_WARMUP_CYCLES}")
    if window_cycles + limit_cycles > MOST_MEASURED_CYCLES:
        raise ConfigError(
            f"window_cycles + limit_cycles = {window_cycles} + {limit_cycles}: at most {MOST_MEASURED_CYCLES}, as a "
            "packet carries no more of the time of its birth"
        )


class TrafficNetwork(System[TrafficNetworkConfig]):
    """The traffic network inside its simulation. A watchdog ends the simulation with SimulationError when nothing has
    moved for `config.watchdog_cycles` of a measurement. Before, it writes the VL state of all routers into the log."""

    def __init__(self, config: TrafficNetworkConfig, session: Session) -> None:
        super().__init__(config, session)
        self._port = SetupPort(self.clock, response=True)
        self._levels: dict[int, set[int]] = {}
        self.watch()

    async def prepare(self) -> None:
        """Write the routers' forwarding tables, if they go by them."""
        config = self.config
        await write_forwarding_tables(self.clock, config.network, top=self._top, composed=config.composed)

    def probes(self) -> list[Probe]:
        """VL state of all routers."""
        return network_probes(self.config.network)

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
        """Give every node its random numbers and its routes.

        Where packets may change to any VL of their class, sinks do not look at the order.
        """
        network = self.config.network
        self.say(network.by_destination)
        unordered = NODE["SINK"].pack(unordered=int(network.router.vl_selection == "any"))
        nodes, traffic = range(len(network.nodes)), self.config.traffic
        words: list[tuple[Place, int]] = []
        for node in nodes:
            words.append(((node, NODE["SINK"].offset), unordered))
            words += [
                ((node, NODE[name].offset), word) for name, word in class_seeds(self.seed, node, traffic)
            ]
        words += [((node, address), word) for node, address, word in route_words(network)]
        await self.write(words)

    async def set_classes(self, classes: Sequence[ClassSetup], nodes: Iterable[int] | None = None) -> None:
        """Set the first classes of `nodes` (default: of all) up. Raises ConfigError.

        A router that chooses VLs by service level keeps the order of a source's VL and level. Sinks look at a
        source's VL alone, so they do not look at the order once two levels may share a VL.
        """
        traffic = self.config.traffic
        if self.config.network.router.vl_selection == "service_level" and self._shares_vl(classes):
            word = NODE["SINK"].pack(unordered=1)
            await self.write(((node, NODE["SINK"].offset), word) for node in range(traffic.nodes))
        await self.write(
            ((node, class_address(number, register)), word)
            for node in (range(traffic.nodes) if nodes is None else nodes)
            for number, setup in enumerate(classes)
            for register, word in setup.words(node, traffic)
        )

    def _shares_vl(self, classes: Sequence[ClassSetup]) -> bool:
        """Whether a VL of a source carries packets of two service levels, of these classes or of earlier ones."""
        for setup in classes:
            lanes = range(setup.vl_first, setup.vl_first + setup.vl_count)
            by_destination = setup.vl_choice == "by_destination"
            for vl in range(self.config.traffic.link.vls) if by_destination else lanes:
                self._levels.setdefault(vl, set()).add(setup.service_level)
        return any(len(levels) > 1 for levels in self._levels.values())

    async def measure(
        self, *, warmup_cycles: int, window_cycles: int, limit_cycles: int, faults: bool = False
    ) -> Measured:
        """Warm up, measure, drain, read out. Raises SimulationError if a sink found an error, or a router
        dropped a packet, and ConfigError (`check_measurement`) before anything is written. With `faults` errors and
        drops are no reason to end: `errors` has them."""
        check_measurement(warmup_cycles=warmup_cycles, window_cycles=window_cycles, limit_cycles=limit_cycles)
        place = {name: (MEASUREMENT_NODE, register.offset) for name, register in MEASUREMENT.items()}
        start = MEASUREMENT["CONTROL"].pack(start=1)
        settings = {"WARMUP": warmup_cycles, "WINDOW": window_cycles, "LIMIT": limit_cycles, "CONTROL": start}
        self.limit_watchdog(self.config.watchdog_cycles)
        await self.write((place[name], word) for name, word in settings.items())
        phases = native_api.signal("phase")
        whole = self.config.traffic.clear_cycles + warmup_cycles + window_cycles + limit_cycles
        began = self.clock.cycle
        while (phase := Phase(phases.get())) is not Phase.DONE:
            self.progress(min(1.0, (self.clock.cycle - began) / whole), _PHASE_NAMES.get(phase, ""))
            await self.clock.change(self._dut.phase_event)
        self.limit_watchdog(0)
        status, drained = await self.read([place["STATUS"], place["DRAINED"]])
        if not faults:
            await self._look_for_errors()
        traffic = self.config.traffic
        counts = [
            tuple([await self._counts(node, number) for number in range(traffic.classes)])
            for node in range(traffic.nodes)
        ]
        return Measured(
            saturated=Verdict(MEASUREMENT["STATUS"].unpack(status)["verdict"]) is Verdict.SATURATED,
            window_cycles=window_cycles,
            drain_cycles=drained,
            counts=tuple(counts),
        )

    async def _counts(self, node: int, number: int) -> ClassCounts:
        names = list(STATISTICS)
        words = await self.read([(node, statistics_address(number, name)) for name in names])
        found = dict(zip(names, words, strict=True))
        packets = found["LATENCY_PACKETS"]
        histogram: list[tuple[int, int]] = []
        if packets:
            traffic = self.config.traffic
            bins = range(bin_of(found["LATENCY_MIN"], traffic), bin_of(found["LATENCY_MAX"], traffic) + 1)
            counted = await self.read([(node, histogram_address(number, one, traffic)) for one in bins])
            histogram = [
                (bin_range(one, traffic)[1], count) for one, count in zip(bins, counted, strict=True) if count
            ]
        return ClassCounts(
            offered_packets=found["OFFERED_PACKETS"],
            offered_flits=found["OFFERED_FLITS"],
            injected_flits=found["INJECTED_FLITS"],
            deferred_cycles=found["DEFERRED"],
            accepted_flits=found["ACCEPTED_FLITS"],
            latency_packets=packets,
            latency_sum_cycles=found["LATENCY_SUM"] | found["LATENCY_SUM_HIGH"] << 32,
            latency_min_cycles=found["LATENCY_MIN"] if packets else None,
            latency_max_cycles=found["LATENCY_MAX"] if packets else None,
            histogram=tuple(histogram),
        )

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
        nodes = range(self.config.traffic.nodes)
        words = await self.read([(node, NODE["ERRORS"].offset) for node in nodes])
        for node, word in enumerate(words):
            if word:
                kinds = [name for name, value in NODE["ERRORS"].unpack(word).items() if value]
                (cycle,) = await self.read([(node, NODE["FIRST_ERROR_CYCLE"].offset)])
                raise SimulationError(
                    f"the sink of node {node} found errors of {', '.join(kinds)}; the first in cycle {cycle}"
                )
        if dropped := self.dropped:
            raise SimulationError(f"routers dropped {dropped} packets")


def _pack(*, node: int, address: int, data: int = 0, write: int = 0) -> int:
    """A word of the request port."""
    values = {"valid": 1, "write": write, "node": node, "address": address, "data": data}
    return sum(value << REQUEST[name].offset for name, value in values.items())
