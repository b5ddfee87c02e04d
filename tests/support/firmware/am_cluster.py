"""Nodes with the program of virtual networks on plain Python cards, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.program import AmProgram
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.packet import Header

from support.firmware.am_host import AmHost
from support.firmware.python_card import Card, Delays, Host, Network
from support.firmware.scheduler import World

SMALL = {"doorbell": "polled", "sram_bytes": 16384, "mtu_bytes": 128}


class AmNode(AmHost):
    """A node: its card, its program, its host and its driver."""

    def __init__(
        self,
        network: Network,
        number: int,
        nic: NicConfig,
        config: VirtualNetworkConfig,
        routes: dict[int, int],
        delays: Delays | None,
        incarnation: int = 1,
    ) -> None:
        self.world, self.nic = network.world, nic
        self.card = Card(network, number, nic, delays)
        self.program = AmProgram(
            self.card, node=number, nic=nic, routes=routes, config=config, incarnation=incarnation
        )
        super().__init__(Host(self.card), number, self.program.layout)
        self.program.start()


class AmCluster:
    """A cluster of `nodes` nodes. `run(main)` runs a coroutine."""

    def __init__(
        self,
        nodes: int = 2,
        *,
        nic: dict[str, Any] | None = None,
        drop: Callable[[Header], bool] | None = None,
        fate: Callable[[Header], list[int]] | None = None,
        delays: Delays | None = None,
        **config: Any,
    ) -> None:
        self.nic = preset(NicConfig, "tiny", **(SMALL | (nic or {})))
        self.config = VirtualNetworkConfig.for_nic(self.nic, **({"scan_us": 50} | config))
        self.world = World()
        self.network = Network(self.world, drop, fate)
        routes = {node: node for node in range(nodes)}
        self.nodes = [
            AmNode(
                self.network,
                node,
                self.nic,
                self.config,
                {other: other for other in routes if other != node},
                delays,
            )
            for node in range(nodes)
        ]

    def run(self, main: Any, limit: int = 500_000_000) -> Any:
        return self.world.run(main, limit)
