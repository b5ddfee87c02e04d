"""The map of an unknown network: a search, and what it leaves open told apart."""

from __future__ import annotations

from .kinds import tell_apart
from .network_map import NetworkMap
from .search import Search

__all__ = ["discover"]


async def discover(search: Search) -> NetworkMap:
    """The map of the network that a search looks at.

    Raises MapError if the mapper has no switch, or the network changes meanwhile so that no map can be right.
    """
    await search.begin()
    sizes: tuple[int, ...] | None = None
    while sizes is None:
        while search.exploring:
            await search.go_on()
        sizes = await tell_apart(search)
    ports = range(search.form.ports)
    rows = tuple(tuple(one.row.get(port) for port in ports) for one in search.switches)
    start, port = search.hosts[search.prober.node]
    return NetworkMap(rows, sizes, start, port)
