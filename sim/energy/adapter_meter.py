"""Reads the activity counters of all adapters in one cycle, inside of a simulation."""

from __future__ import annotations

from lanikai.hdl.config import HcaConfig
from lanikai.hdl.hca.activity import adapter_activity_signals

from ..errors import SimulationError
from ..inside import native_api
from ..inside.clock import Clock
from .adapter import AdapterActivity

__all__ = ["AdapterMeter"]

_MASK = (1 << 32) - 1
_MOST_CYCLES = 1 << 31
"""Cycles in which a counter of two events a cycle does not go round."""


class AdapterMeter:
    """The activity counters of `nodes` adapters, read in no time.

    `top`: the instance above the nodes. Raises SimulationError for adapters without `activity_counters`.

    At most 2^31 cycles may pass between two readings: a counter has 32 bits, and two events a cycle at most.
    """

    def __init__(self, config: HcaConfig, clock: Clock, *, nodes: int, top: str) -> None:
        if not config.activity_counters:
            raise SimulationError(
                "the adapters have no activity counters: HcaConfig.activity_counters = False"
            )
        self._clock = clock
        self._signals = [
            [
                native_api.signal(variable, f"{top}.node{node}.hca")
                for _, variable in adapter_activity_signals(counters=True)
            ]
            for node in range(nodes)
        ]
        self._last = [[signal.get() for signal in those] for those in self._signals]
        self._read = clock.cycle

    def read(self) -> tuple[AdapterActivity, ...]:
        """The activity of each adapter since the last call, or since the meter was made. Raises SimulationError if
        counters may have gone round more than once meanwhile."""
        passed = self._clock.cycle - self._read
        if passed > _MOST_CYCLES:
            raise SimulationError(
                f"an adapter meter was read after {passed} cycles: at most {_MOST_CYCLES}, as counters go round"
            )
        self._read = self._clock.cycle
        found = []
        for node, before in enumerate(self._last):
            now = self._last[node] = [signal.get() for signal in self._signals[node]]
            steps = [(new - old) & _MASK for new, old in zip(now, before, strict=True)]
            found.append(AdapterActivity.from_list(steps))
        return tuple(found)
