"""The drivers of all adapters of a network, started."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from lanikai.hdl.config import HcaConfig
from lanikai.hdl.network import Network
from lanikai.hdl.router.routing import routing_class

from .driver import HcaDriver
from .port import AdapterPort

__all__ = ["Adapters", "routes"]


class _Config(Protocol):
    @property
    def network(self) -> Network: ...
    @property
    def hca(self) -> HcaConfig: ...


class _System(Protocol):
    """The parts of an adapter network that this needs."""

    @property
    def config(self) -> _Config: ...
    @property
    def hosts(self) -> Iterable[AdapterPort]: ...


class Adapters:
    """A driver a host. Attribute `drivers`, by nodes."""

    def __init__(self, system: _System) -> None:
        self._network = system.config.network
        self.drivers = [HcaDriver(port, system.config.hca) for port in system.hosts]

    async def start(self) -> None:
        """Set all routes of all adapters, all adapters at once."""
        ports = [driver.port for driver in self.drivers]
        left, done = [len(ports)], ports[0].flag()

        async def one(node: int) -> None:
            await self.drivers[node].start(routes(self._network, node))
            left[0] -= 1
            if not left[0]:
                done.set()

        for node, port in enumerate(ports):
            port.spawn(one(node), f"driver {node}")
        await done.wait()


def routes(network: Network, node: int) -> dict[int, int]:
    """The route from a node to each node that it can reach, itself left out where routes are source routes."""
    function = routing_class(network.router)
    by_source = function.strips or function.by_source
    return {
        there: network.source_route(node, there)
        for there in range(len(network.nodes))
        if there != node or not by_source
    }
