"""VIA as a host interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanikai.hdl.config import Config, NicConfig

from ..bus import HostBus
from ..config import KitConfig
from ..interface import HostInterface
from .agent import Agent

__all__ = ["ViaInterface"]


class ViaInterface(HostInterface):
    """The node's kernel agent, `Agent`, with which a program calls VIPL: `await VipOpenNic(agent)`. The watchdog looks
    at the firmware alone: processes that poll are no progress."""

    speaks = "via"
    Costs = KitConfig

    @classmethod
    def on_node(
        cls, bus: HostBus, *, nic: NicConfig, routes: Mapping[int, int], config: Any, costs: Config | None
    ) -> Agent:
        """The agent of a node, started, with the `ViaConfig` of its firmware."""
        assert costs is None or isinstance(costs, KitConfig)
        agent = Agent(bus, nic=nic, routes=routes, config=config, kit=costs)
        agent.start()
        return agent
