"""The registers of a traffic network, by whatever way they are reached: set-up, measurement, read-out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.network import Network
from lanikai.hdl.network_waits import in_order
from lanikai.hdl.router.routing import routing_class
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import MOST_MEASURED_CYCLES, MOST_WARMUP_CYCLES
from lanikai.hdl.traffic.ports import (
    ALL_NODES,
    MEASUREMENT,
    MEASUREMENT_NODE,
    NODE,
    STATISTICS,
    Verdict,
    class_address,
    histogram_address,
    route_address,
    statistics_address,
)
from lanikai.hdl.traffic.setup import ClassSetup, class_seeds
from lanikai.hdl.traffic.statistics import bin_of, bin_range

from ..errors import SimulationError

__all__ = [
    "ClassCounts",
    "Measured",
    "Place",
    "TrafficRegisters",
    "check_measurement",
    "measurement_place",
    "route_words",
]

Place = tuple[int, int]
"""A node's number, or `MEASUREMENT_NODE`, and an address of its registers."""
_WORD = (1 << 32) - 1


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


def route_words(network: Network) -> Iterator[tuple[int, int, int]]:
    """Node, or `ALL_NODES`, address and word of each write.

    Source routes differ from node to node. Where routers go by the destination, one write serves all nodes: so a
    network of 1024 has 2048 writes and not two million.
    """
    nodes = range(len(network.nodes))
    function = routing_class(network.router)
    if not (function.strips or function.by_source):
        for destination in nodes:
            yield from _row(ALL_NODES, destination, network.source_route(0, destination))
        return
    for node in nodes:
        for destination in nodes:
            if destination != node:
                yield from _row(node, destination, network.source_route(node, destination))


def _row(node: int, destination: int, route: int) -> Iterator[tuple[int, int, int]]:
    address = route_address(destination)
    yield node, address, route & _WORD
    yield node, address + 4, route >> 32


def measurement_place(register: str) -> Place:
    """The place of a register of the measurement."""
    return MEASUREMENT_NODE, MEASUREMENT[register].offset


class TrafficRegisters(ABC):
    """The set-up port of a traffic network, in a simulation or on a board. A subclass has `write` and `read`.

    `network`, `traffic`: what is behind the port; `traffic_seed`: that of the random numbers.
    """

    network: Network
    traffic: TrafficConfig
    traffic_seed: int
    _levels: dict[int, set[int]]

    @abstractmethod
    async def write(self, words: Iterable[tuple[Place, int]]) -> None:
        """Write words; all have been taken when this returns."""

    @abstractmethod
    async def read(self, places: Sequence[Place]) -> list[int]:
        """The words at `places`, in their order."""

    async def start_nodes(self) -> None:
        """Give every node its random numbers and its routes.

        Where packets may change to any VL of their class, or have several ways, sinks do not look at the order.
        """
        network = self.network
        unordered = NODE["SINK"].pack(
            unordered=int(network.router.vl_selection == "any" or not in_order(network))
        )
        nodes, traffic = range(len(network.nodes)), self.traffic
        words: list[tuple[Place, int]] = []
        for node in nodes:
            words.append(((node, NODE["SINK"].offset), unordered))
            words += [
                ((node, NODE[name].offset), word)
                for name, word in class_seeds(self.traffic_seed, node, traffic)
            ]
        words += [((node, address), word) for node, address, word in route_words(network)]
        await self.write(words)

    async def set_classes(self, classes: Sequence[ClassSetup], nodes: Iterable[int] | None = None) -> None:
        """Set the first classes of `nodes` (default: of all) up. Raises ConfigError.

        A router that chooses VLs by service level keeps the order of a source's VL and level. Sinks look at a
        source's VL alone, so they do not look at the order once two levels may share a VL.
        """
        traffic = self.traffic
        if self.network.router.vl_selection == "service_level" and self._shares_vl(classes):
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
            for vl in range(self.traffic.link.vls) if by_destination else lanes:
                self._levels.setdefault(vl, set()).add(setup.service_level)
        return any(len(levels) > 1 for levels in self._levels.values())

    async def start_measurement(self, *, warmup_cycles: int, window_cycles: int, limit_cycles: int) -> None:
        """Start it. Raises ConfigError (`check_measurement`) before anything is written."""
        check_measurement(warmup_cycles=warmup_cycles, window_cycles=window_cycles, limit_cycles=limit_cycles)
        start = MEASUREMENT["CONTROL"].pack(start=1)
        settings = {"WARMUP": warmup_cycles, "WINDOW": window_cycles, "LIMIT": limit_cycles, "CONTROL": start}
        await self.write((measurement_place(name), word) for name, word in settings.items())

    async def read_out(self, *, window_cycles: int, faults: bool = False) -> Measured:
        """Read the statistics of a measurement that is done. Raises SimulationError if a sink found an error, unless
        there are `faults`."""
        status, drained = await self.read([measurement_place("STATUS"), measurement_place("DRAINED")])
        if not faults:
            await self._look_for_errors()
        traffic = self.traffic
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
            traffic = self.traffic
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

    async def _look_for_errors(self) -> None:
        nodes = range(self.traffic.nodes)
        words = await self.read([(node, NODE["ERRORS"].offset) for node in nodes])
        for node, word in enumerate(words):
            if word:
                kinds = [name for name, value in NODE["ERRORS"].unpack(word).items() if value]
                (cycle,) = await self.read([(node, NODE["FIRST_ERROR_CYCLE"].offset)])
                raise SimulationError(
                    f"the sink of node {node} found errors of {', '.join(kinds)}; the first in cycle {cycle}"
                )
