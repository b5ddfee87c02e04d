"""Networks by name, `mesh4x4` or `ring(8)`, or from a file of the user's, as the experiments take them."""

from __future__ import annotations

from pathlib import Path

from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.hdl.network import Network
from lanikai.hdl.network_named import network_of
from lanikai.hdl.topologies import TOPOLOGIES, topology_named, topology_ranges
from lanikai.hdl.topologies.grid import MOST_SIDE

from ...network_files.registry import FILES, file_format, network_from_file

__all__ = ["MOST_SIDE", "NETWORKS", "named_network"]

NETWORKS = f"{topology_ranges()}, or {FILES}"
"""The names that a user can give. A tree's numbers are its fan-out and its levels, up to 1024 nodes."""


def named_network(name: str, router: RouterConfig) -> Network:
    """The network `name`: of `lanikai.hdl.topologies`, as `mesh4x4` or `ring(8)`, or the path of a file.

    `router.ports`, `link.hop_bits` and the rows of tables are replaced by what it needs. A network has a management
    port besides, if its routers are to have one and its file does not name ports itself. Nodes have the routers'
    `input_buffer_flits`. `network_files/registry.py` has the formats of files.

    Raises ConfigError for an unknown name, a file that cannot be read, and whatever `Network` refuses.
    """
    if file_format(name):
        return network_from_file(Path(name), router)
    try:
        shape = topology_named(name)
    except ConfigError as error:
        files = "" if name.startswith(tuple(TOPOLOGIES)) else f", {FILES}"
        raise ConfigError(f"network = {name!r}: {error}{files}") from None
    return network_of(shape, router)
