"""Looks at a traffic network while it is measured: flits of links, energy, what comes in each interval, every packet.

All of it is read in the drive phase of a cycle, and takes no simulated time. None of it is on unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

from lanikai.hdl.config import ConfigError
from lanikai.hdl.network import Network
from lanikai.hdl.traffic.arrivals import SUM_BITS, arrival_layout
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.packet import IDENTITY
from lanikai.hdl.traffic.ports import Phase

from ...energy.activity import Activity
from ...energy.meter import ActivityMeter
from ...errors import SimulationError
from ...inside import native_api
from ...inside.clock import Clock
from ...inside.wakes import NativeEvent, Wakes
from .buffer_looks import LOOKS, BufferLooks
from .watching import MOST_LOGGED_PACKETS, Watching

__all__ = ["TrafficWatch", "Watchable"]

_SEEN_CYCLES = 3
"""Cycles from a flit on a sink's link to the registers of `Arrivals` that show it."""
_COUNTED_CYCLES = 1
"""Cycles from a flit that a router sends to the counter that shows it."""
_WORD = (1 << 32) - 1


class Watchable(Protocol):
    """The things of a `TrafficNetwork` that are needed to look at it."""

    clock: Clock
    network: Network
    traffic: TrafficConfig

    @property
    def top(self) -> str:
        """The top module's name."""

    @property
    def wakes(self) -> Wakes:
        """The native events of the simulation."""

    async def until(self, phase: Phase) -> None:
        """Return when a measurement is in `phase`."""

    def activity_meter(self) -> ActivityMeter:
        """A meter of the routers' activity from now on."""


class TrafficWatch:
    """Looks at one measurement of `system`. Make it before the measurement starts, and ask for `found` after its end.

    Raises SimulationError for a list of more than `MOST_LOGGED_PACKETS`, and what `Watching.check` raises.
    """

    def __init__(
        self, system: Watchable, watching: Watching, *, warmup_cycles: int, window_cycles: int
    ) -> None:
        watching.check(warmup_cycles=warmup_cycles, window_cycles=window_cycles)
        if (watching.series_cycles or watching.packets) and not system.traffic.watched:
            raise ConfigError("TrafficNetworkConfig.watched = False: sinks show nothing")
        self._system, self._watching = system, watching
        self._warmup, self._window = warmup_cycles, window_cycles
        self._clock, self._traffic = system.clock, system.traffic
        self._first = 0  # cycle of the window's first flit
        self._found: dict[str, Any] = {}
        self._packets: list[tuple[int, ...]] = []
        if watching.links:
            self._links = [
                native_api.signal("counted_port_flits", f"{system.top}.network.router{router}")
                for router in range(system.network.routers)
            ]
            self._spawn(self._count_links, "links")
            self._buffers = BufferLooks(system.network, system.top)
            self._spawn(self._look_at_buffers, "buffers")
        if watching.series_cycles:
            self._sums = {
                name: [self._sink(node, f"sum_{name}") for node in range(self._traffic.nodes)]
                for name in SUM_BITS
            }
            self._spawn(self._series, "time series")
        if watching.packets:
            layout = arrival_layout(self._traffic)
            self._fields = {name: (field.offset, (1 << field.width) - 1) for name, field in IDENTITY}
            self._latency = layout["latency"].offset, (1 << layout["latency"].width) - 1
            self._length = layout["flits"].offset, (1 << layout["flits"].width) - 1
            self._spawn(self._find_window, "packets")
            for node in range(self._traffic.nodes):
                toggle = self._sink(node, "toggle")
                # Without its owner it is looked at in every cycle, as instances without ports tell of no changes.
                toggle = native_api.Signal(toggle.address, toggle.bits, toggle.size)
                self._log(node, self._sink(node, "last"), system.wakes.change(toggle))

    def _spawn(self, look: Callable[[], Any], name: str) -> None:
        self._clock.spawn(look(), f"watch.{name}")

    def _sink(self, node: int, name: str) -> native_api.Signal:
        return native_api.signal(f"watched_{name}", f"{self._system.top}.node{node}")

    def found(self) -> dict[str, Any]:
        """All that was seen, as plain JSON:

        - `links`: flits of the window of each router's ports, a list a router; `activity`: that of all routers
          (`Activity.as_list`).
        - `buffers`: with the links, what `BufferLooks.found` has.
        - `time_series`: rows of `first_cycle` (from the window's first), `cycles`, and for each class, of all sinks
          together, `flits`, `packets` and `latency` (a sum, cycles).
        - `packets`: rows of `PACKET_COLUMNS`, in the order in which they arrived.
        """
        if self._watching.packets:
            first = self._first
            self._found["packets"] = [
                (*place, arrived - latency - first, arrived - first, latency, tagged)
                for *place, latency, arrived, tagged in self._packets
            ]
        return self._found

    async def _begun(self) -> int:
        """Return when warm-up begins: its first cycle."""
        system = self._system
        await system.until(Phase(Phase.WARMUP if self._warmup else Phase.WINDOW))
        self._first = self._clock.cycle + self._warmup
        return self._clock.cycle

    async def _find_window(self) -> None:
        await self._begun()

    async def _at(self, cycle: int) -> None:
        if cycle > self._clock.cycle:
            await self._clock.sleep(cycle - self._clock.cycle)

    async def _count_links(self) -> None:
        await self._begun()
        meter = self._system.activity_meter()
        await self._at(self._first)
        before = self._port_flits()
        meter.read()
        await self._at(self._first + self._window)
        after = self._port_flits()
        self._found["links"] = [
            [(new - old) & _WORD for new, old in zip(mine, then, strict=True)]
            for mine, then in zip(after, before, strict=True)
        ]
        self._found["activity"] = Activity.total(meter.read().routers).as_list()

    async def _look_at_buffers(self) -> None:
        await self._begun()
        # An odd number of cycles, so that looks do not keep step with packets.
        step = self._window // LOOKS | 1
        for cycle in range(self._first, self._first + self._window, step):
            await self._at(cycle)
            self._buffers.look()
        self._found["buffers"] = self._buffers.found()

    def _port_flits(self) -> list[list[int]]:
        ports = range(self._system.network.router.ports)
        return [[one.get() >> 32 * port & _WORD for port in ports] for one in self._links]

    async def _series(self) -> None:
        begin, step = await self._begun(), self._watching.series_cycles
        end = self._first + self._window
        # Windows begin with the measured one's first cycle, so that its windows add up to it.
        edges = [*range(begin, self._first, step), *range(self._first, end, step), end]
        rows = self._found.setdefault("time_series", [])
        await self._at(begin + _SEEN_CYCLES - 1)
        last = self._sums_now()
        for first, after in pairwise(edges):
            await self._at(after + _SEEN_CYCLES - 1)
            now = self._sums_now()
            rows.append(
                {"first_cycle": first - self._first, "cycles": after - first}
                | {
                    name: [
                        (new - old) % (1 << SUM_BITS[name])
                        for new, old in zip(now[name], last[name], strict=True)
                    ]
                    for name in SUM_BITS
                }
            )
            last = now

    def _sums_now(self) -> dict[str, list[int]]:
        """The sums of all sinks for each class; each sink's is taken modulo its width before it is added."""
        found = {}
        for name, signals in self._sums.items():
            bits, values = SUM_BITS[name], [one.get() for one in signals]
            mask = (1 << bits) - 1
            found[name] = [
                sum(value >> bits * number & mask for value in values)
                for number in range(self._traffic.classes)
            ]
        return found

    def _log(self, node: int, last: native_api.Signal, toggled: NativeEvent) -> None:
        packets, fields = self._packets, self._fields
        (latency_at, latency_mask), (length_at, length_mask) = self._latency, self._length
        names = [fields[name] for name in ("source", "traffic_class", "vl", "tagged")]

        def come() -> None:
            toggled.call(guarded)
            word = last.get()
            source, of_class, vl, tagged = (word >> at & mask for at, mask in names)
            packets.append(
                (
                    source,
                    node,
                    of_class,
                    word >> length_at & length_mask,
                    vl,
                    word >> latency_at & latency_mask,
                    self._clock.cycle - _SEEN_CYCLES,
                    tagged,
                )
            )
            if len(packets) > MOST_LOGGED_PACKETS:
                raise SimulationError(
                    f"packet_list: more than {MOST_LOGGED_PACKETS} packets: choose fewer nodes, a smaller load or "
                    "longer packets"
                )

        guarded = self._clock.guarded(come)
        toggled.call(guarded)
