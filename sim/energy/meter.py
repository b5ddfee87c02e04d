"""Reads the activity counters of all routers in one cycle, inside of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

from lanikai.hdl.network import Network
from lanikai.hdl.router.activity import COUNTED
from lanikai.hdl.router.router import activity_signals

from ..errors import SimulationError
from ..inside import native_api
from ..inside.clock import Clock
from .activity import Activity, router_links

__all__ = ["ActivityMeter", "Reading"]

_MASK = (1 << 32) - 1
_BITS = 32


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The activity of each router since the reading before, and the `cycle` in which it was read."""

    cycle: int
    routers: tuple[Activity, ...]


class ActivityMeter:
    """The activity counters of a network's routers, read in no time.

    `top`: the instance above `network`. Raises SimulationError for routers without `activity_counters`.

    A counter has 32 bits. So at most 2^32 / (4 P) cycles may pass between two readings, for P ports: each takes four
    decisions a cycle at most.
    """

    def __init__(self, network: Network, clock: Clock, *, top: str) -> None:
        if not activity_signals(network.router):
            raise SimulationError(
                "the routers have no activity counters: RouterConfig.activity_counters = False"
            )
        self._clock = clock
        self._most_cycles = (1 << _BITS) // (4 * network.router.ports)
        self._signals = [
            [
                native_api.signal(variable, f"{top}.network.router{router}")
                for _, variable in activity_signals(network.router)
            ]
            for router in range(network.routers)
        ]
        self._links = [router_links(network, router) for router in range(network.routers)]
        self._last = [self._counts(router) for router in range(network.routers)]
        self._read = clock.cycle

    def read(self) -> Reading:
        """The activity since the last call, or since the meter was made. Raises SimulationError if counters may have
        gone round more than once meanwhile."""
        passed = self._clock.cycle - self._read
        if passed > self._most_cycles:
            raise SimulationError(
                f"an activity meter was read after {passed} cycles: at most {self._most_cycles}, as counters go round"
            )
        self._read = self._clock.cycle
        found = []
        for router, before in enumerate(self._last):
            now = self._last[router] = self._counts(router)
            steps = [(new - old) & _MASK for new, old in zip(now, before, strict=True)]
            found.append(Activity.from_list([*steps[: len(COUNTED)], sum(steps[len(COUNTED) :])]))
        return Reading(cycle=self._read, routers=tuple(found))

    def _counts(self, router: int) -> list[int]:
        """The counters of a router: `COUNTED`, and the flits of each link to another router."""
        *whole, ports = (signal.get() for signal in self._signals[router])
        return [*whole, *(ports >> _BITS * port & _MASK for port in self._links[router])]
