"""The coroutine of `power-load`, inside the simulation: routers' activity is read while traffic is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanikai.hdl.traffic.ports import Phase

from ...energy.activity import Activity
from ...inside import native_api
from ..measure.traffic_results import measure as measure_traffic

if TYPE_CHECKING:
    from ...systems.traffic_network import TrafficNetwork

__all__ = ["measure"]

SETTLE_INTERVALS = 1000
"""Intervals after the measurement in which packets that were born after its window leave the network."""


async def measure(system: TrafficNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point. To what `traffic_results.measure` returns it adds:

    - `intervals`: the activity of the whole network in each interval of `interval_cycles` that is inside the window.
    - `whole`: the activity from the start until nothing has moved for an interval, of `SETTLE_INTERVALS` at most.
    """
    meter = system.activity_meter()
    phases = native_api.signal("phase")
    intervals: list[list[int]] = []
    whole = Activity()
    over = False

    def read() -> Activity:
        nonlocal whole
        activity = Activity.total(meter.read().routers)
        whole += activity
        return activity

    async def watch() -> None:
        begins = Phase(phases.get())
        while not over:
            await system.clock.sleep(spec["interval_cycles"])
            if over:
                return
            activity, ends = read(), Phase(phases.get())
            if begins is Phase.WINDOW and ends is Phase.WINDOW:
                intervals.append(activity.as_list())
            begins = ends

    system.clock.spawn(watch(), "power meter")
    found = await measure_traffic(system, spec)
    over = True
    for _ in range(SETTLE_INTERVALS):
        if read() == Activity():
            break
        await system.clock.sleep(spec["interval_cycles"])
    return found | {"intervals": intervals, "whole": whole.as_list()}
