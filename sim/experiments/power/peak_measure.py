"""The coroutine of `peak-power`, inside the simulation: mixed traffic, and the routers' activity every few cycles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...energy.activity import Activity
from ..qos.mix import Mix
from ..qos.mixed import Prepared, run_mix

if TYPE_CHECKING:
    from ...systems.adapters.network import AdapterNetwork

__all__ = ["measure"]


async def measure(system: AdapterNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point. `spec["mix"]` has the fields of a `Mix`.

    It returns what `run_mix` does, but for its samples. Those are `series`, as `activity`: the activity of all routers
    in each `interval_cycles` of the window, one after the other.
    """
    meters: list[Any] = []

    async def prepare(_prepared: Prepared) -> None:
        meters.append(system.activity_meter())

    def sample() -> list[int]:
        return Activity.total(meters[0].read().routers).as_list()

    found = await run_mix(system, Mix(**spec["mix"]), prepare=prepare, sample=sample)
    return found | {"series": {"activity": found.pop("intervals")}}
