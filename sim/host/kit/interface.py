"""The host kit as a host interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanikai.hdl.config import Config, NicConfig

from ..bus import HostBus
from ..config import KitConfig
from ..interface import HostInterface
from .driver import Driver

__all__ = ["KitInterface"]


class KitInterface(HostInterface):
    """The card's driver, `Driver`, which gives processes their pages, queues and regions. The watchdog looks at the
    firmware alone: processes that poll are no progress."""

    speaks = "work queues"
    Costs = KitConfig

    @classmethod
    def on_node(
        cls, bus: HostBus, *, nic: NicConfig, routes: Mapping[int, int], config: Any, costs: Config | None
    ) -> Driver:
        """The driver of a node, started, with the `WorkQueueConfig` of its firmware."""
        assert costs is None or isinstance(costs, KitConfig)
        driver = Driver(bus, nic=nic, routes=routes, config=config, kit=costs)
        driver.start()
        return driver
