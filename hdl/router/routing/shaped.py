"""The base of routing functions of topologies that have a name."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np

from ...config import ConfigError, RouterConfig
from ...topologies import Shape, topology_named
from .function import RoutingFunction
from .topology import Topology

__all__ = ["ShapedRouting"]


class ShapedRouting(RoutingFunction):
    """Base of the functions that route one topology of `lanikai.hdl.topologies` (`Topology.topology`).

    Attributes that a derived class sets:

    - `shape`: the class of the topology. Ports are as its docstring says, one higher each with a management port.
    - `pairs`: VLs are pairs, 2c and 2c + 1, for the packets of class c. Their number must be even, and less than 16:
      the control VL has no second one.
    """

    shape: ClassVar[type[Shape]]
    pairs = False

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError for VLs that are no pairs, where they must be."""
        super().check_config(config)
        if cls.pairs and (config.link.vls % 2 or config.control_vl is not None):
            raise ConfigError(
                f"LinkConfig.vls = {config.link.vls}: {config.routing} routing needs an even number, 2 to 14: "
                "two for each class"
            )

    @staticmethod
    def first_port(config: RouterConfig) -> int:
        """The first port that is not for management."""
        return 1 if config.management else 0

    @classmethod
    def shape_of(cls, network: Topology) -> Any:
        """The network's topology. Raises ValueError if it is another one."""
        found = topology_named(network.topology) if network.topology else None
        if not isinstance(found, cls.shape):
            has = f"this network is {network.topology}" if network.topology else "this network has no name"
            raise ValueError(f"routing {network.router.routing!r} is for a {cls.shape.label}: {has}")
        return found

    @classmethod
    def check(cls, network: Topology) -> None:
        """Routers, nodes and links must be those of the topology."""
        super().check(network)
        shape, base = cls.shape_of(network), cls.first_port(network.router)
        if network.routers != shape.router_count:
            raise ValueError(f"{network.routers} routers: {shape.name} has {shape.router_count}")
        homes = tuple((router, base + port) for router, port in shape.homes())
        if network.nodes != homes:
            raise ValueError(f"nodes are not where {shape.name} has them: it has {len(homes)}")
        for number, link in enumerate(network.links):
            if frozenset(link) not in _links(shape.name, base):
                raise ValueError(f"link {number}: {shape.name} has no such link")
        if len(network.links) != len(_links(shape.name, base)):
            raise ValueError(f"{len(network.links)} links: {shape.name} has {len(_links(shape.name, base))}")

    @staticmethod
    def homes_of(network: Topology) -> tuple[Any, Any]:
        """Router and port of each node, as arrays."""
        homes = np.array(network.nodes, np.int32)
        return homes[:, 0], homes[:, 1]


@cache
def _links(name: str, base: int) -> frozenset[frozenset[tuple[int, int]]]:
    """The links of a topology, each the two places that it joins."""
    return frozenset(
        frozenset((router, base + port) for router, port in link) for link in topology_named(name).joined()
    )
