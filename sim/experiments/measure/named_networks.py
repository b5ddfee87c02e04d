"""Networks by name, `mesh4x4`, or from a file of the user's, as the experiments take them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.hdl.network import Network, chain, mesh, single_router, torus, tree

from ...network_files.registry import FILES, file_format, network_from_file

__all__ = ["MOST_SIDE", "NETWORKS", "named_network"]

NETWORKS = (
    "router2 to router64, mesh1x2 to mesh32x32, torus1x2 to torus32x32, chain2 to chain16, tree2x2 to tree16x2 or "
    f"tree2x10, or {FILES}"
)
"""The names that a user can give. A tree's numbers are its fan-out and its levels, up to 1024 nodes."""
MOST_NODES = 1024
"""Most nodes of a mesh, torus or tree: as many as traffic is made for (`TrafficConfig.nodes`)."""
MOST_SIDE = 32
"""Longest side of a mesh or torus: as far as coordinates reach (`hdl/router/routing/grid.py`)."""


def named_network(name: str, router: RouterConfig) -> Network:
    """The network `name`: `router8`, `mesh4x4`, `torus4x4`, `chain3`, `tree2x3`, or the path of a file.

    `router.ports`, `link.hop_bits` and the rows of tables are replaced by what it needs. A network has a management
    port besides, if its routers are to have one and its file does not name ports itself. Nodes have the routers'
    `input_buffer_flits`. `network_files/registry.py` has the formats of files.

    Raises ConfigError for an unknown name, a file that cannot be read, and whatever `Network` refuses.
    """
    if file_format(name):
        return network_from_file(Path(name), router)
    return _named(name, router)


@lru_cache(maxsize=16)
def _named(name: str, router: RouterConfig) -> Network:
    """A network that is no file. A large one takes seconds to check, and experiments ask for it again and again."""
    buffer = router.input_buffer_flits
    found = re.fullmatch(r"(router|chain)(\d{1,4})|(mesh|torus|tree)(\d{1,4})x(\d{1,4})", name)
    if not found:
        raise ConfigError(f"network = {name!r}: one of {NETWORKS}")
    kind, (first, second) = found[1] or found[3], (int(found[2] or found[4]), int(found[5] or 0))
    nodes = {"tree": first ** min(second, 16)}.get(kind, first * (second or 1))
    longest = {"tree": 16, "mesh": MOST_SIDE, "torus": MOST_SIDE}.get(kind, 64)
    wide = first > longest or (kind != "tree" and second > longest)
    if wide or not 2 <= nodes <= (MOST_NODES if second else 64):
        raise ConfigError(f"network = {name!r}: one of {NETWORKS}")
    ports = {"router": first, "chain": 3, "mesh": 5, "torus": 5, "tree": first + 1}[kind]
    router = _fitting(router, ports + router.management, nodes)
    if kind == "router":
        return single_router(first, router=router, node_buffer_flits=buffer)
    if kind == "chain":
        return chain(first, router=router, node_buffer_flits=buffer)
    make = {"mesh": mesh, "torus": torus, "tree": tree}[kind]
    return make(first, second, router=router, node_buffer_flits=buffer)


def _fitting(router: RouterConfig, ports: int, nodes: int) -> RouterConfig:
    """The router with so many ports and, if it goes by tables, a row for each of the nodes."""
    if router.routing == "table":
        router = router.replace(forwarding_entries=min(MOST_NODES, max(router.forwarding_entries, nodes)))
    link = router.link.replace(hop_bits=max(1, (ports - 1).bit_length()))
    return router.replace(link=link, ports=max(2, ports))
