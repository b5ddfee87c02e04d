"""Bisections: the fewest links between two halves of a network's nodes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from lanikai.hdl.network import Network
from lanikai.hdl.topologies import Shape

__all__ = ["Bisection", "bisection", "counted", "graph_of"]

Bisection = tuple[int, str]
"""Two-way links, and how they are known: `closed form`, `counted`, `at most`."""
MOST_COUNTED = 16
"""Routers with nodes up to which all halves are tried."""
MOST_WITH_OTHERS = 8
"""The same where other routers may be in either half, which takes a minimum cut for each."""
SEEDS = range(20)
"""Starts of the heuristic."""


def bisection(network: Network, shape: Shape | None) -> Bisection:
    """The bisection by the topology's closed form; else counted, if the network is small.

    Else it is by a heuristic, whose cut may not be the smallest (Kernighan-Lin of networkx).
    """
    if shape is not None and shape.bisection is not None:
        return shape.bisection, "closed form"
    weights = Counter(router for router, _ in network.nodes)
    others = network.routers - len(weights)
    if len(weights) <= (MOST_WITH_OTHERS if others else MOST_COUNTED):
        return counted(network), "counted"
    return _halved(network, weights), "at most"


def graph_of(network: Network) -> Any:
    """The routers and links as a graph of networkx; `weight`: how many links join two routers."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(network.routers))
    for (here, _), (there, _) in network.links:
        if here != there:
            weight = graph.get_edge_data(here, there, {"weight": 0})["weight"]
            graph.add_edge(here, there, weight=weight + 1)
    return graph


def counted(network: Network) -> int:
    """The smallest cut over all halves. Halves differ by the nodes of the router with most at most."""
    import networkx

    graph, weights = graph_of(network), Counter(router for router, _ in network.nodes)
    homes = sorted(weights)
    others = [router for router in graph if router not in weights]
    best: int | None = None
    first, *rest = homes
    for size in range(len(homes)):
        for chosen in combinations(rest, size):
            half = {first, *chosen}
            mine = sum(weights[router] for router in half)
            if abs(2 * mine - len(network.nodes)) > max(weights.values()) or len(half) == len(homes):
                continue
            if others:
                joined = networkx.Graph()
                for here, there, about in graph.edges(data=True):
                    ends = ["a" if end in half else "b" if end in weights else end for end in (here, there)]
                    if ends[0] != ends[1]:
                        old = joined.get_edge_data(*ends, {"capacity": 0})["capacity"]
                        joined.add_edge(*ends, capacity=old + about["weight"])
                cut = int(networkx.minimum_cut_value(joined, "a", "b")) if {"a", "b"} <= set(joined) else 0
            else:
                cut = sum(
                    about["weight"]
                    for here, there, about in graph.edges(data=True)
                    if (here in half) != (there in half)
                )
            best = cut if best is None else min(best, cut)
    return best or 0


def _halved(network: Network, weights: Counter[int]) -> int:
    """A small cut by Kernighan and Lin's exchange, the best of some starts. Routers without nodes count as half a one
    there, so it is for networks whose routers have as many nodes each."""
    import networkx

    graph = graph_of(network)
    best = None
    for seed in SEEDS:
        half, _ = networkx.community.kernighan_lin_bisection(graph, weight="weight", seed=seed)
        mine = sum(weights[router] for router in half)
        if abs(2 * mine - len(network.nodes)) > 2 * max(weights.values()):
            continue
        cut = networkx.cut_size(graph, half, weight="weight")
        best = cut if best is None else min(best, cut)
    return len(network.links) if best is None else int(best)
