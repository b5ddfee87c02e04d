"""The coroutine of `power-load`, inside the simulation: routers' activity is read while traffic is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanikai.hdl.traffic.ports import Phase

from ...energy.activity import Activity
from ..measure.traffic_results import measure as measure_traffic

if TYPE_CHECKING:
    from ...systems.traffic_network import TrafficNetwork

__all__ = ["measure"]

SETTLE_INTERVALS = 1000
"""Intervals after the measurement in which packets that were born after its window leave the network."""


async def measure(system: TrafficNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point. To what `traffic_results.measure` returns it adds:

    - `intervals`: the activity of the whole network in each interval of `interval_cycles` of the window.
    - `whole`: the activity from the start until nothing has moved for an interval, of `SETTLE_INTERVALS` at most.
    """
    meter, cycles = system.activity_meter(), spec["interval_cycles"]
    intervals: list[list[int]] = []
    whole = Activity()

    def read() -> Activity:
        nonlocal whole
        activity = Activity.total(meter.read().routers)
        whole += activity
        return activity

    async def watch() -> None:
        await system.until(Phase(Phase.WINDOW))
        read()
        for _ in range(spec["window_cycles"] // cycles):
            await system.clock.sleep(cycles)
            intervals.append(read().as_list())

    system.clock.spawn(watch(), "power meter")
    found = await measure_traffic(system, spec)
    while len(intervals) < spec["window_cycles"] // cycles:
        await system.clock.sleep(1)
    for _ in range(SETTLE_INTERVALS):
        if read() == Activity():
            break
        await system.clock.sleep(cycles)
    return found | {"intervals": intervals, "whole": whole.as_list()}
