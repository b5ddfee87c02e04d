"""Maps of a network: what routes can tell of it, and when two of them are the same."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from lanikai.hdl.network import Network, Place

from .words import Word

__all__ = ["BEYOND", "Entry", "Host", "MapError", "NetworkMap", "Switch"]


class MapError(Exception):
    """A map that cannot be: the network has changed while it was looked at, or it is too large for routes."""


@dataclass(frozen=True)
class Host:
    """The far end of a port: host `node`."""

    node: int


@dataclass(frozen=True)
class Switch:
    """The far end of a port: a switch of kind `kind`."""

    kind: int


BEYOND = "beyond"
"""The far end of a port that no probe reaches: the route would be too long."""

Entry = Host | Switch | str | None
"""The far end of a port. None: nothing, or nothing that lives."""


@dataclass(frozen=True)
class NetworkMap:
    """A network as routes show it.

    - `rows`: for each kind of switch the far end of each of its ports.
    - `sizes`: for each kind, how many switches are of it.
    - `start`: the kind of the mapper's own switch, and `port` the port there of the mapper.

    Two switches are of one kind if every route from the one ends at the same host as from the other, or at none. A
    switch with a host is alone in its kind, as a host has one cable. So is every other in a network without twins.
    Twins (equal switches of a regular tree) are told apart by no probe.

    A map of kinds of one switch each has every cable of the network, from port to port, up to one thing. Where two
    switches share several cables, no route tells which of the ports are ends of the same one. `cables` pairs them in
    the order of their ports; so it does with cables from a switch to itself.
    """

    rows: tuple[tuple[Entry, ...], ...]
    sizes: tuple[int, ...]
    start: int
    port: int

    @property
    def hosts(self) -> dict[int, tuple[int, int]]:
        """Kind and port of each host."""
        return {
            entry.node: (kind, port)
            for kind, row in enumerate(self.rows)
            for port, entry in enumerate(row)
            if isinstance(entry, Host)
        }

    @property
    def switches(self) -> int:
        """Switches of the network."""
        return sum(self.sizes)

    @property
    def rigid(self) -> bool:
        """Whether every kind is one switch."""
        return max(self.sizes) == 1

    @property
    def beyond(self) -> int:
        """Ports of which no probe could find the far end."""
        return sum(row.count(BEYOND) for row in self.rows)

    def canonical(self, host: int | None = None) -> NetworkMap:
        """The same map with kinds numbered in the order in which a search by ports finds them, from a host's switch.

        `host`: the host, by default the lowest. Maps of the same network are equal then, whoever has made them. Raises
        MapError without a host.
        """
        hosts = self.hosts
        if not hosts:
            raise MapError("a map without a host")
        start, port = hosts[min(hosts) if host is None else host]
        order, waiting = {start: 0}, deque([start])
        while waiting:
            for entry in self.rows[waiting.popleft()]:
                if isinstance(entry, Switch) and entry.kind not in order:
                    order[entry.kind] = len(order)
                    waiting.append(entry.kind)
        rows = tuple(
            tuple(Switch(order[one.kind]) if isinstance(one, Switch) else one for one in self.rows[kind])
            for kind in order
        )
        return NetworkMap(rows, tuple(self.sizes[kind] for kind in order), 0, port)

    @property
    def tag(self) -> int:
        """16 bits by which maps of different networks differ, but for one chance in 65,534; neither 0 nor 65,535."""
        one = self.canonical()
        return zlib.crc32(repr((one.rows, one.sizes)).encode()) % 0xFFFE + 1

    def cables(self) -> list[tuple[Place, Place]]:
        """The cables between switches of a `rigid` map, in the sense of the class. Raises MapError for another."""
        if not self.rigid:
            raise MapError("twins: their cables are told apart by no route")
        found = []
        for here in range(len(self.rows)):
            for there in range(here, len(self.rows)):
                ends = self._ports(here, there)
                if here == there:
                    found += [((here, a), (here, b)) for a, b in zip(ends[::2], ends[1::2], strict=True)]
                else:
                    others = self._ports(there, here)
                    found += [((here, a), (there, b)) for a, b in zip(ends, others, strict=True)]
        return found

    def _ports(self, here: int, there: int) -> list[int]:
        return [port for port, entry in enumerate(self.rows[here]) if entry == Switch(there)]

    def follow(self, word: Word, kind: int | None = None) -> Entry:
        """The place where a packet stops whose route is `word`, from a kind of switch on (by default the mapper's).

        Whatever hops are left, a host ends the way.
        """
        at: Entry = Switch(self.start if kind is None else kind)
        for port in word:
            if not isinstance(at, Switch):
                break
            at = self.rows[at.kind][port]
        return at

    @classmethod
    def of_network(cls, network: Network, node: int = 0, dead: Sequence[Place] = ()) -> Self:
        """The map that a mapper on `node` should find, by the network's own description.

        `dead`: places whose cable does not work; one end suffices.
        """
        ends: dict[Place, Place | Host] = dict(network.neighbours)
        ends |= {place: Host(number) for number, place in enumerate(network.nodes)}
        for place in dead:
            end = ends.pop(place, None)
            if isinstance(end, tuple):
                ends.pop(end, None)
        return cls.of_ends(ends, network.routers, network.router.ports, network.nodes[node])

    @classmethod
    def of_ends(cls, ends: Mapping[Place, Place | Host], routers: int, ports: int, mapper: Place) -> Self:
        """The map of a network whose ports have the far ends `ends`, for the mapper at place `mapper`.

        Switches that the mapper does not reach are left out.
        """
        reached, waiting = {mapper[0]}, [mapper[0]]
        while waiting:
            here = waiting.pop()
            for port in range(ports):
                end = ends.get((here, port))
                if isinstance(end, tuple) and end[0] not in reached:
                    reached.add(end[0])
                    waiting.append(end[0])
        classes = {router: 0 for router in range(routers) if router in reached}
        while True:
            looks = {
                router: tuple(
                    classes[end[0]] if isinstance(end := ends.get((router, port)), tuple) else repr(end)
                    for port in range(ports)
                )
                for router in classes
            }
            names: dict[object, int] = {}
            finer = {
                router: names.setdefault((classes[router], look), len(names))
                for router, look in looks.items()
            }
            if len(names) == len(set(classes.values())):
                break
            classes = finer
        members = list(classes.values())
        rows = []
        for kind in range(max(members) + 1):
            router = next(one for one, its in classes.items() if its == kind)
            row: list[Entry] = []
            for port in range(ports):
                end = ends.get((router, port))
                row.append(Switch(classes[end[0]]) if isinstance(end, tuple) else end)
            rows.append(tuple(row))
        sizes = tuple(members.count(kind) for kind in range(len(rows)))
        return cls(tuple(rows), sizes, classes[mapper[0]], mapper[1])
