"""Nodes with the program of virtual networks on plain Python cards, and segment drivers on their hosts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.program import AmProgram
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.packet import Header
from lanikai.sim.host.am.config import AmHostConfig
from lanikai.sim.host.am.driver import SegmentDriver

from support.firmware.python_card import Card, Host, Network
from support.firmware.scheduler import World

SMALL = {"channels": 4, "doorbell": "polled", "sram_bytes": 1 << 16, "mtu_bytes": 256}


class AmNodes:
    """As `support.sim.am_card.AmNet`, with the firmware itself. `drop`, `fate`: those of `Network`."""

    def __init__(
        self,
        nodes: int = 2,
        *,
        seed: int = 1,
        memory_bytes: int = 1 << 20,
        config: dict[str, Any] | None = None,
        endpoints: int = 16,
        drop: Callable[[Header], bool] | None = None,
        fate: Callable[[Header], list[int]] | None = None,
        **costs: Any,
    ) -> None:
        self.rng = random.Random(seed)
        self.nic = preset(NicConfig, "tiny", **SMALL)
        self.config = VirtualNetworkConfig.for_nic(
            self.nic, **{"scan_us": 100, "endpoints_max": endpoints} | (config or {})
        )
        self.world = World()
        self.dead: set[int] = set()
        self._drop = drop
        self.network = Network(self.world, self._lost, fate)
        self.cards = [Card(self.network, node, self.nic) for node in range(nodes)]
        self.programs, self.drivers = [], []
        for card in self.cards:
            card.memory = np.zeros(memory_bytes, np.uint8)
            routes = {node: node for node in range(nodes) if node != card.node}
            program = AmProgram(card, node=card.node, nic=self.nic, routes=routes, config=self.config)
            program.start()
            driver = SegmentDriver(
                Host(card),
                nic=self.nic,
                routes=routes,
                config=self.config,
                costs=AmHostConfig(**{"patience_us": 3000} | costs),
            )
            driver.start()
            self.programs.append(program)
            self.drivers.append(driver)
        self.layout = self.programs[0].layout

    def _lost(self, header: Header) -> bool:
        if header.destination in self.dead or header.source in self.dead:
            return True
        return self._drop is not None and self._drop(header)

    def cut(self, node: int) -> None:
        """Let a node give no answer any more."""
        self.dead.add(node)

    def refused(self) -> int:
        """Doorbell words that the cards have refused, of resident endpoints."""
        return sum(frame.refused for program in self.programs for frame in program.shared.frames.values())

    def run(self, main: Any, limit: int = 200_000_000) -> Any:
        """Run a coroutine to its end."""
        return self.world.run(main, limit)
