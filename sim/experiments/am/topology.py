"""The network of chun-1998 figure 3: 40 switches of 8 ports, three subclusters, "fat tree-like".

The figure is a drawing that does not show each cable. The text says (3.3, 3.4): 40 eight-port switches; three
subclusters, connected "through the use of two switches and 11 cables". All else is chosen here:

- A subcluster has leaves, middles and tops. Nodes are at leaves. Each leaf has 3 cables, to 3 different middles; each
  middle has one to each top.
- Of 40 switches 2 connect the subclusters. The others are 13, 13 and 12: 7, 7 and 6 leaves, 4 middles and 2 tops each.
- 92 nodes: 31, 31 and 30, so 4 or 5 at a leaf.
- The 11 cables go from tops to the two connecting switches: 4, 4 and 3.

A way goes up until it can go down, so it cannot deadlock; the network checks that. Where several ports lead nearer, the
destination's number says which: it has one digit a level, so that destinations spread over the cables. The longest way
has 7 switches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lanikai.hdl.config import RouterConfig
from lanikai.hdl.network import Network, Place

__all__ = ["LARGE", "SMALL", "Shape", "Subcluster", "fat_tree"]


@dataclass(frozen=True)
class Subcluster:
    """A subcluster.

    - `leaves`: nodes at each leaf.
    - `middles`, `tops`: switches. `uplinks`: cables of a leaf.
    - `cables`: (top, connecting switch) of each cable out of it, by their numbers there.
    """

    leaves: tuple[int, ...]
    middles: int
    tops: int
    uplinks: int
    cables: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Shape:
    """A network: its subclusters, and `connecting` switches between them."""

    subclusters: tuple[Subcluster, ...]
    connecting: int

    @property
    def nodes(self) -> int:
        """Nodes of all subclusters."""
        return sum(sum(part.leaves) for part in self.subclusters)


_LEAVES = (5, 5, 5, 4, 4, 4, 4)
_FOUR, _THREE = ((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 0), (0, 1), (1, 1))
LARGE = Shape(
    (
        Subcluster(_LEAVES, middles=4, tops=2, uplinks=3, cables=_FOUR),
        Subcluster(_LEAVES, middles=4, tops=2, uplinks=3, cables=_FOUR),
        Subcluster((5,) * 6, middles=4, tops=2, uplinks=3, cables=_THREE),
    ),
    connecting=2,
)
"""Figure 3: 92 nodes, 40 switches, 11 cables between subclusters."""
SMALL = Shape(
    tuple(Subcluster((2, 2), middles=2, tops=1, uplinks=2, cables=((0, 0),)) for _ in range(3)), connecting=1
)
"""The same in small, for quick runs: 12 nodes, 16 switches, 3 cables between subclusters."""
CONNECTING_LEVEL = 3


class _Switches:
    """Switches of a network that is being built, and the next free port of each."""

    def __init__(self) -> None:
        self.levels: list[int] = []
        self.used: list[int] = []
        self.links: list[tuple[Place, Place]] = []

    def add(self, level: int, count: int) -> list[int]:
        """`count` more switches of a level: leaves 0, middles 1, tops 2, connecting ones 3."""
        first = len(self.levels)
        self.levels += [level] * count
        self.used += [0] * count
        return list(range(first, first + count))

    def port(self, switch: int) -> Place:
        """A port of a switch that nothing is at."""
        self.used[switch] += 1
        return switch, self.used[switch] - 1

    def link(self, one: int, other: int) -> None:
        """A cable between two switches."""
        self.links.append((self.port(one), self.port(other)))


def fat_tree(shape: Shape, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """The network of a shape. Raises ConfigError for a switch with too few ports."""
    switches, nodes = _Switches(), list[Place]()
    tops: list[list[int]] = []
    for part in shape.subclusters:
        leaves, middles = switches.add(0, len(part.leaves)), switches.add(1, part.middles)
        tops.append(switches.add(2, part.tops))
        for place, (leaf, count) in enumerate(zip(leaves, part.leaves, strict=True)):
            nodes += [switches.port(leaf) for _ in range(count)]
            for up in range(part.uplinks):
                switches.link(leaf, middles[(place + up) % part.middles])
        for middle in middles:
            for top in tops[-1]:
                switches.link(middle, top)
    connecting = switches.add(CONNECTING_LEVEL, shape.connecting)
    for part, mine in zip(shape.subclusters, tops, strict=True):
        for top, other in part.cables:
            switches.link(mine[top], connecting[other])
    network = Network(
        router=router.replace(routing="source"),
        routers=len(switches.levels),
        nodes=tuple(nodes),
        links=tuple(switches.links),
        node_buffer_flits=node_buffer_flits,
        tables=tuple(zip(*_columns(nodes, switches), strict=True)),
    )
    network.check_routes()
    return network


def _columns(nodes: list[Place], switches: _Switches) -> Iterator[list[int]]:
    """For each node the port that leads to it at each switch."""
    neighbours: list[list[tuple[int, int]]] = [[] for _ in switches.levels]
    for one, other in switches.links:
        for (here, port), (there, _) in ((one, other), (other, one)):
            neighbours[here].append((port, there))
    for number, (home, home_port) in enumerate(nodes):
        distance = {home: 0}
        front = [home]
        for switch in front:
            for _, there in neighbours[switch]:
                if there not in distance:
                    distance[there] = distance[switch] + 1
                    front.append(there)
        column = [home_port] * len(switches.levels)
        for switch, level in enumerate(switches.levels):
            if switch != home:
                nearer = sorted(p for p, there in neighbours[switch] if distance[there] < distance[switch])
                column[switch] = nearer[(number >> level) % len(nearer)]
        yield column
