"""The parts of a cluster that starting hosts needs, on plain Python cards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lanikai.hdl.config import NicConfig

from support.firmware.python_card import Card, Host, Network
from support.firmware.scheduler import World

__all__ = ["Nodes"]


class Nodes:
    """Two nodes with cards of `nic`, whose configuration names `firmware`. `watched`: what was given to `observe`."""

    def __init__(self, firmware: str | None, nic: NicConfig) -> None:
        self.world = World()
        network = Network(self.world)
        cards = [Card(network, number, nic) for number in range(2)]
        self.nodes = [
            SimpleNamespace(number=card.node, processors=card.processors, host=Host(card)) for card in cards
        ]
        self.config = SimpleNamespace(firmware=firmware, nic=nic)
        self.network = SimpleNamespace(source_route=lambda source, target: target)
        self.watched: list[Any] = []

    def observe(self, part: Any) -> None:
        self.watched.append(part)
