"""All that is known of a network without simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lanikai.hdl.config import ConfigError
from lanikai.hdl.network import Network
from lanikai.hdl.network_checks import channel_needs
from lanikai.hdl.network_paths import Paths
from lanikai.hdl.network_waits import in_order
from lanikai.hdl.router.routing import choices, routing_class
from lanikai.hdl.topologies import Shape

from .bisection import bisection
from .loads import PATTERNS, Loads, loads_of, senders

__all__ = ["Analysis", "Pattern", "analyse"]


@dataclass(kw_only=True)
class Pattern:
    """A traffic pattern on a network: `loads`, or `refused`, why there are none; `accepted` by the RTL if measured.

    Where packets have a choice of ways, loads are None too: they depend on what routers choose.
    """

    name: str
    loads: Loads | None = None
    refused: str = ""
    measured: dict[str, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Values for JSON; loads in flits a cycle, rates in flits a sending node and cycle."""
        if self.refused:
            return {"pattern": self.name, "refused": self.refused}
        loads = self.loads
        return {
            "pattern": self.name,
            "senders": loads and loads.senders,
            "mean_hops": loads and loads.mean_hops,
            "largest_channel_load": loads and loads.largest,
            "ideal_flits_per_sender_per_cycle": loads and loads.ideal,
            "bound_flits_per_sender_per_cycle": loads and loads.most,
        } | (self.measured or {})


@dataclass(kw_only=True)
class Analysis:
    """The facts of a network.

    - `diameter`: most links between routers of two nodes on the graph's shortest ways; `routed_diameter`: by the
      routes; `mean_hops`: by the routes, over all pairs of nodes.
    - `bisection`: two-way links between two halves, and how it is known.
    - `channels`, `dependencies`: those of the deadlock check, which found no cycle: a `Network` with one is not made.
    - `others`: names of routing functions with a choice of ways that the topology has besides.

    Where packets have a choice of ways (`chooses`), what routes make of it is None: routed diameter, mean hops, loads,
    dependencies. The check is then that of `hdl/network_waits.py`.
    """

    name: str
    network: Network
    diameter: int
    routed_diameter: int | None
    mean_hops: float | None
    bisection: tuple[int, str]
    channels: int | None
    dependencies: int | None
    chooses: bool
    by_vl: bool
    others: list[str]
    patterns: list[Pattern] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Values for JSON."""
        network, router = self.network, self.network.router
        return {
            "topology": self.name,
            "nodes": len(network.nodes),
            "routers": network.routers,
            "ports": router.ports,
            "links": len(network.links),
            "routing": router.routing,
            "other_routing": self.others,
            "vls": router.link.vls,
            "why_routing": network.by_destination,
            "diameter": self.diameter,
            "routed_diameter": self.routed_diameter,
            "mean_hops": self.mean_hops,
            "bisection_links": self.bisection[0],
            "bisection_known": self.bisection[1],
            "deadlock_cycle": None,
            "deadlock_channels": self.channels,
            "deadlock_dependencies": self.dependencies,
            "patterns": [pattern.as_json() for pattern in self.patterns],
        }


def analyse(name: str, network: Network, shape: Shape | None) -> Analysis:
    """The facts of `network`, whose `shape` is None if it comes from a file."""
    paths = Paths(network.neighbours, network.routers, network.router.ports, network.nodes, ())
    homes = [router for router, _ in network.nodes]
    chooses = not in_order(network)
    needs = {} if chooses else channel_needs(network)
    patterns = []
    for pattern in PATTERNS:
        one = Pattern(name=pattern)
        try:
            if senders(pattern, len(homes)) == []:
                one.refused = "every node's packets would go to itself"
            elif not chooses:
                one.loads = loads_of(network, pattern)
        except ConfigError as error:
            one.refused = str(error).removeprefix(f"pattern {pattern}: ")
        patterns.append(one)
    uniform = patterns[0].loads
    return Analysis(
        name=name,
        network=network,
        diameter=int(paths.distances[homes].max()),
        routed_diameter=uniform.most_hops if uniform else None,
        mean_hops=uniform.mean_hops if uniform else None,
        bisection=bisection(network, shape),
        channels=None if chooses else len(set(needs).union(*needs.values())),
        dependencies=None if chooses else sum(map(len, needs.values())),
        chooses=chooses,
        others=choices(shape.label) if shape else [],
        by_vl=routing_class(network.router).depends_on_vl(),
        patterns=patterns,
    )
