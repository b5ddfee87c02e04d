"""A node: a host, its card, and the endpoints of its processes, under one strategy."""

from __future__ import annotations

from ..cpu.host import Host
from .card import Card
from .config import CoschedConfig
from .endpoint import Endpoint
from .strategy import Strategy

__all__ = ["Node"]


class Node:
    """A node of `strategy` on `host`. `endpoints`: those of processes that have not ended."""

    def __init__(self, host: Host, strategy: Strategy, config: CoschedConfig) -> None:
        self.host = host
        self.strategy = strategy
        self.config = config
        self.endpoints: list[Endpoint] = []
        cycles = host.machine.cycles
        added = config.estimate_ns if strategy.arrival.asks_who_runs else 0
        self.way_cycles = host.cycles(cycles(config.card_ns + added))
        self.check_cycles = host.cycles(cycles(config.check_ns))
        self.estimate_cycles = host.microseconds(config.estimate_period_us)
        self.spin_cycles = host.machine.cycles(1000 * config.spin_us)
        self._out_per_byte = host.time.hz / (config.mb_per_s * 1_000_000)
        self.card = Card(self)
        if strategy.arrival.asks_who_runs:
            host.on_dispatch = self.card.ran

    def out_cycles(self, length: int) -> int:
        """Cycles in which the card has sent so many bytes."""
        return round(length * self._out_per_byte)

    def open(self) -> Endpoint:
        """A new endpoint."""
        endpoint = Endpoint(self)
        self.endpoints.append(endpoint)
        return endpoint

    def close(self, endpoint: Endpoint) -> None:
        """Give an endpoint back."""
        self.endpoints.remove(endpoint)
