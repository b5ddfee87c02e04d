"""The coroutine of `peak-power`, inside the simulation: mixed traffic, and what all do every few cycles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...energy.activity import Activity
from ...energy.adapter import AdapterActivity
from ..qos.mix import Mix
from ..qos.mixed import Prepared, run_mix

if TYPE_CHECKING:
    from ...energy.adapter_meter import AdapterMeter
    from ...energy.meter import ActivityMeter
    from ...systems.adapters.network import AdapterNetwork

__all__ = ["measure"]


async def measure(system: AdapterNetwork, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point. `spec["mix"]` has the fields of a `Mix`.

    It returns what `run_mix` does, but for its samples. Those are `series`. Each is of every `interval_cycles` of the
    window, one after the other:

    - `activity`: the activity of all routers.
    - `adapters`: that of all adapters.
    """
    meters: list[tuple[ActivityMeter, AdapterMeter]] = []

    async def prepare(_prepared: Prepared) -> None:
        meters.append((system.activity_meter(), system.adapter_meter()))

    def sample() -> tuple[list[int], list[int]]:
        routers, adapters = meters[0]
        return Activity.total(routers.read().routers).as_list(), AdapterActivity.total(
            adapters.read()
        ).as_list()

    found = await run_mix(system, Mix(**spec["mix"]), prepare=prepare, sample=sample)
    samples = found.pop("intervals")
    return found | {
        "series": {
            "activity": [routers for routers, _ in samples],
            "adapters": [adapters for _, adapters in samples],
        }
    }
