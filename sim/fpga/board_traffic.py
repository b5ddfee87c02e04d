"""A traffic network on a board, measured over its serial line."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lanikai.hdl.traffic.ports import MEASUREMENT, NODE, Phase

from ..systems.traffic_registers import Measured, Place, TrafficRegisters, measurement_place
from .line import BoardLine, LineError

if TYPE_CHECKING:
    from ..systems.traffic_config import TrafficNetworkConfig

__all__ = ["BoardTraffic"]

QUIET_SECONDS = 60.0
"""Longest wait until no packet is under way, and longer than its cycles for a measurement. A board needs milliseconds;
a simulated one is a hundred times slower."""
POLL_SECONDS = 0.02


class BoardTraffic(TrafficRegisters):
    """The traffic network of `config` on the board at `line`, with the random numbers of `seed`. Raises LineError where
    the board does not do what it should."""

    def __init__(self, config: TrafficNetworkConfig, line: BoardLine, *, seed: int, clock_hz: int) -> None:
        self.config, self._line, self._clock_hz = config, line, clock_hz
        self.network, self.traffic, self.traffic_seed = config.network, config.traffic, seed
        self._levels = {}
        self.cycles = 0

    async def write(self, words: Iterable[tuple[Place, int]]) -> None:
        """Write words."""
        for (node, address), word in words:
            self._line.write(node, address, word)

    async def read(self, places: Sequence[Place]) -> list[int]:
        """The words at `places`, in their order."""
        return self._line.read_all(places)

    async def start_nodes(self) -> None:
        """Bring the design to the state after power-on, and start its nodes.

        Memories keep the packets' sequence numbers. So sources are stopped first, and no packet is under way when
        everything is reset.
        """
        stop = MEASUREMENT["CONTROL"].pack(stop=1)
        nodes = range(self.traffic.nodes)
        sent = [(node, NODE["SENT"].offset) for node in nodes]
        received = [(node, NODE["RECEIVED"].offset) for node in nodes]
        ends = time.monotonic() + QUIET_SECONDS
        last: list[int] = []
        while True:
            await self.write([(measurement_place("CONTROL"), stop)])
            now = await self.read([*sent, *received])
            if now == last and sum(now[: len(sent)]) == sum(now[len(sent) :]):
                break
            if time.monotonic() > ends:
                raise LineError(f"packets do not arrive: sent and received by node: {now}; reset the board")
            last = now
        self._line.restart()
        await super().start_nodes()

    async def measure(self, *, warmup_cycles: int, window_cycles: int, limit_cycles: int) -> Measured:
        """Warm up, measure, drain, read out. Raises SimulationError if a sink found an error."""
        await self.start_measurement(
            warmup_cycles=warmup_cycles, window_cycles=window_cycles, limit_cycles=limit_cycles
        )
        whole = self.traffic.clear_cycles + warmup_cycles + window_cycles + limit_cycles
        ends = time.monotonic() + QUIET_SECONDS + whole / self._clock_hz
        while True:
            status, now = await self.read([measurement_place("STATUS"), measurement_place("NOW")])
            if Phase(MEASUREMENT["STATUS"].unpack(status)["phase"]) is Phase.DONE:
                break
            if time.monotonic() > ends:
                raise LineError(f"the measurement does not end; cycle {now} of the board")
            time.sleep(POLL_SECONDS)
        self.cycles = now
        return await self.read_out(window_cycles=window_cycles)
