"""The formats of network files: a new one is a module beside this one and a line here."""

from __future__ import annotations

from pathlib import Path

from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.hdl.network import Network

from .anynet import Anynet
from .format import NetworkFormat, Shape
from .graphml import GraphMl
from .json_format import JsonFormat

__all__ = ["FILES", "FORMATS", "file_format", "network_from_file", "read_shape"]

FORMATS: dict[str, NetworkFormat] = {
    one.suffix: one
    for one in (
        JsonFormat(),
        Anynet(),
        GraphMl(),
    )
}
"""Every format, by the end of its files' names."""
FILES = ", ".join(f"FILE{suffix}" for suffix in FORMATS)
"""The names of files as help shows them."""
MOST_NODES = 1024
"""Most rows that the tables of a network from a file are made for."""


def file_format(name: str) -> NetworkFormat | None:
    """The format of the file `name`, by its end; None if no format has it."""
    return FORMATS.get(Path(name).suffix.lower()) if "\0" not in name else None


def read_shape(path: Path, *, first_port: int = 0) -> Shape:
    """The network in a file of any format. Raises ConfigError that names file and line."""
    found = file_format(path.name)
    if found is None:
        raise ConfigError(f"network = {str(path)!r}: a name that ends with {', '.join(FORMATS)}")
    return found.read(path, first_port=first_port)


def network_from_file(path: Path, router: RouterConfig) -> Network:
    """The network in a file, of routers like `router` with the ports, hops and rows of tables that it needs.

    Nodes have the routers' `input_buffer_flits`. Raises ConfigError: a fault of the file with its line, and whatever
    `Network` refuses.
    """
    shape = read_shape(path, first_port=1 if router.management else 0)
    ports = max(2, shape.ports)
    link = router.link.replace(hop_bits=max(1, (ports - 1).bit_length()))
    if shape.delay_cycles is not None:
        link = link.replace(delay_cycles=shape.delay_cycles)
    if router.routing == "table":
        rows = min(MOST_NODES, max(router.forwarding_entries, len(shape.nodes)))
        router = router.replace(forwarding_entries=rows)
    router = router.replace(link=link, ports=ports)
    try:
        return Network(
            router=router,
            routers=shape.routers,
            nodes=shape.nodes,
            links=shape.links,
            tables=shape.tables,
            node_buffer_flits=router.input_buffer_flits,
        )
    except ConfigError as error:
        text = str(error).removeprefix("Network: ")
        element = text.partition(":")[0]
        if element in shape.lines:
            raise ConfigError(f"{path}:{shape.lines[element]}: {text}") from None
        raise ConfigError(f"network = {str(path)!r}: {text}") from None
