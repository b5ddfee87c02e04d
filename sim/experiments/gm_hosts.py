"""GM on every node of a cluster: the control program on its card, the library on its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cluster import Cluster
    from ..host.gm import Gm

__all__ = ["NODES", "start_gm"]

NODES = 4
"""Nodes of a cluster that need not have more: experiments that agree on it share one build."""


def start_gm(cluster: Cluster) -> list[Gm]:
    """Start the rate-controlled GM control program on every card; the library of every host, by node."""
    from lanikai.firmware.gm import start

    from ..host.gm import Gm

    nic = cluster.config.nic
    everyone = range(len(cluster.nodes))
    hosts = []
    for node in cluster.nodes:
        others = [other for other in everyone if other != node.number]
        routes = {other: cluster.network.source_route(node.number, other) for other in others}
        start(node.processor, node=node.number, nic=nic, routes=routes)
        hosts.append(Gm(node.host, nic=nic, nodes=others))
    return hosts
