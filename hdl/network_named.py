"""Networks of topologies that have a name (`lanikai.hdl.topologies`)."""

from __future__ import annotations

from functools import lru_cache

from .config import RouterConfig
from .network import Network
from .topologies import Shape, topology_named

__all__ = ["fitting", "network_named", "network_of"]

MOST_NODES = 1024
"""Most rows of a forwarding table."""


def network_named(name: str, router: RouterConfig) -> Network:
    """The network `name`, such as `ring(8)` or `mesh4x4` (`topology_named`), of routers with `router`.

    `router.ports`, `link.hop_bits` and the rows of tables are replaced by what it needs; there is a management port
    besides, if the routers are to have one. Nodes have the routers' `input_buffer_flits`. Raises ConfigError.
    """
    return network_of(topology_named(name), router)


@lru_cache(maxsize=16)
def network_of(shape: Shape, router: RouterConfig) -> Network:
    """The network of a topology, as `network_named`.

    A large one takes seconds to check, and experiments ask for it again and again.
    """
    base = 1 if router.management else 0
    homes = tuple((at, base + port) for at, port in shape.homes())
    joined = tuple(((a, base + p), (b, base + q)) for (a, p), (b, q) in shape.joined())
    return Network(
        router=fitting(router, base + shape.ports, len(homes)),
        routers=shape.router_count,
        nodes=homes,
        links=joined,
        node_buffer_flits=router.input_buffer_flits,
        coordinates=tuple(shape.coordinates()),
        # Grids are known by their coordinates.
        topology="" if shape.coordinates() or not shape.routing else shape.name,
    )


def fitting(router: RouterConfig, ports: int, nodes: int) -> RouterConfig:
    """The router with so many ports and, if it goes by tables, a row for each of the nodes."""
    if router.routing == "table":
        router = router.replace(forwarding_entries=min(MOST_NODES, max(router.forwarding_entries, nodes)))
    link = router.link.replace(hop_bits=max(1, (ports - 1).bit_length()))
    return router.replace(link=link, ports=max(2, ports))
