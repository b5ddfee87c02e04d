"""A format of network files, and what is read from a file: routers, places of nodes, links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

__all__ = ["NetworkFormat", "Place", "PortCounter", "Shape"]

Place = tuple[int, int]
"""A router and a port of it."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A network as a file has it.

    - `routers`: how many.
    - `nodes`: the place of each node.
    - `links`: the two places of each link.
    - `tables`: for each router its port for each node; empty: the network finds the routes.
    - `delay_cycles`: extra cycles of every wire, or None where the file does not say.
    - `lines`: the lines of the file by `node 3`, `link 0` and so on, as `Network` names them in errors.
    """

    routers: int
    nodes: tuple[Place, ...]
    links: tuple[tuple[Place, Place], ...]
    tables: tuple[tuple[int, ...], ...] = ()
    delay_cycles: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def ports(self) -> int:
        """Ports that each router needs."""
        places = [*self.nodes, *(place for link in self.links for place in link)]
        return 1 + max((port for _, port in places), default=1)


class NetworkFormat(ABC):
    """One format of network files.

    - `suffix`: the end of a file's name, by which the format is known.
    - `title`: the format's name, for help.
    """

    suffix: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def read(self, path: Path, *, first_port: int) -> Shape:
        """The network in a file. Where the file names no ports, those from `first_port` on are used.

        Raises ConfigError that names file and line.
        """


class PortCounter:
    """Ports of routers, given out in order where a file names none: to nodes first, then to links."""

    def __init__(self, first_port: int) -> None:
        self._first, self._used = first_port, dict[int, int]()

    def next(self, router: int) -> Place:
        """The next free port of `router`."""
        port = self._used.get(router, self._first)
        self._used[router] = port + 1
        return router, port
