"""Virtual networks as a host interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanikai.hdl.config import Config, NicConfig

from ..bus import HostBus
from ..interface import HostInterface
from .config import AmHostConfig
from .driver import SegmentDriver

__all__ = ["AmInterface"]


class AmInterface(HostInterface):
    """The node's segment driver, `SegmentDriver`, with which a program calls `await AM_Init(driver)`. The watchdog
    looks at the firmware alone: processes that poll are no progress."""

    speaks = "am"
    Costs = AmHostConfig

    @classmethod
    def on_node(
        cls, bus: HostBus, *, nic: NicConfig, routes: Mapping[int, int], config: Any, costs: Config | None
    ) -> SegmentDriver:
        """The driver of a node, started, with the `VirtualNetworkConfig` of its firmware."""
        assert costs is None or isinstance(costs, AmHostConfig)
        driver = SegmentDriver(bus, nic=nic, routes=routes, config=config, costs=costs)
        driver.start()
        return driver
