"""A set of nodes in a header's route, and the ports that a router sends copies to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...config import ConfigError, RouterConfig
from ..routing import routing_class

if TYPE_CHECKING:
    from ..routing import Topology

__all__ = ["check_packet", "copies", "reach_of", "route_to_set", "set_mark", "set_route"]


def set_mark(config: RouterConfig) -> int:
    """The bit of the route that marks a set: the first above the set and above what the routing function looks at."""
    return max(config.multicast_nodes, routing_class(config).route_bits(config))


def set_route(config: RouterConfig, nodes: Iterable[int]) -> int:
    """The header's route field of a packet to a set of nodes: bit n for node n, and the mark.

    Raises ConfigError for routers without multicast, an empty set, or a node that no set names.
    """
    if not config.multicast_nodes:
        raise ConfigError("RouterConfig.multicast_nodes = 0: these routers have no multicast")
    found = 1 << set_mark(config)
    chosen = sorted(set(nodes))
    if not chosen:
        raise ConfigError("multicast: the set of nodes is empty")
    for node in chosen:
        if not 0 <= node < config.multicast_nodes:
            raise ConfigError(
                f"multicast: node {node}: sets name nodes 0 to {config.multicast_nodes - 1} (multicast_nodes)"
            )
        found |= 1 << node
    return found


def route_to_set(network: Topology, nodes: Iterable[int]) -> int:
    """As `set_route`, for nodes of a network. Raises ConfigError for one that it does not have, too."""
    chosen, count = list(nodes), len(network.nodes)
    for node in chosen:
        if not 0 <= node < count:
            raise ConfigError(f"multicast: there is no node {node}; nodes are 0 to {count - 1}")
    return set_route(network.router, chosen)


def check_packet(config: RouterConfig, flits: int) -> None:
    """Raises ConfigError for a packet to a set that is longer than a buffer: it could wait for ever."""
    if flits > config.multicast_flits:
        raise ConfigError(
            f"multicast: a packet of {flits} flits: at most {config.multicast_flits}, as it must fit whole into the "
            f"input buffer ({config.input_buffer_flits} flits) and the output buffer ({config.output_buffer_flits}) of "
            "a VL"
        )


def copies(config: RouterConfig, reach: Sequence[int], route: int) -> dict[int, int]:
    """The twin of the hardware: each port that a packet with `route` leaves by, and the route that its copy has there.

    `reach`: for each port the nodes behind it, bit n for node n. Nodes that no port leads to get no copy.
    """
    chosen = route & (1 << config.multicast_nodes) - 1
    others = route & ~((1 << config.multicast_nodes) - 1)
    return {port: others | chosen & nodes for port, nodes in enumerate(reach) if chosen & nodes}


def reach_of(network: Topology, router: int) -> tuple[int, ...]:
    """For each port of a router the nodes whose packets leave by it, bit n for node n; () without multicast."""
    if not network.router.multicast_nodes:
        return ()
    function, found = routing_class(network.router), [0] * network.router.ports
    for node in range(min(len(network.nodes), network.router.multicast_nodes)):
        port, _ = function.next_port(network, router, 0, 0, node)
        if port is not None:
            found[port] |= 1 << node
    return tuple(found)
