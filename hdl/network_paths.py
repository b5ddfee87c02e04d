"""Shortest paths of a network to all of its nodes at once, in numpy: a thousand routers take a fraction of a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from .router.routing import Place

__all__ = ["NO_WAY", "Paths", "link_ends"]

NO_WAY = -1
"""Distance of a router that cannot reach the node; port of a router that has none for it."""

Array = np.ndarray[tuple[int, ...], np.dtype[np.int32]]


def link_ends(neighbours: Mapping[Place, Place], routers: int, ports: int) -> tuple[Array, Array]:
    """Router and port at the other end of each port's link: arrays of routers x ports, -1 where there is no link."""
    there = np.full((2, routers, ports), NO_WAY, np.int32)
    if neighbours:
        here, ends = np.array(list(neighbours)), np.array(list(neighbours.values()))
        there[:, here[:, 0], here[:, 1]] = ends.T
    return there[0], there[1]


class Paths:
    """The paths of a network, each array made when it is asked for. Fields and arguments: as `Topology` has them."""

    def __init__(
        self,
        neighbours: Mapping[Place, Place],
        routers: int,
        ports: int,
        nodes: Sequence[Place],
        tables: Sequence[Sequence[int]],
    ) -> None:
        self._there = link_ends(neighbours, routers, ports)[0]
        self._nodes, self._tables = np.array(nodes), tables

    @cached_property
    def distances(self) -> Array:
        """Links from each router to the router of each node, -1 without a way: an array of routers x nodes.

        All searches go on at once, one link further in every turn.
        """
        there = self._there
        roots, column = np.unique(self._nodes[:, 0], return_inverse=True)
        routers, ports = there.shape
        distance = np.full((routers, len(roots)), NO_WAY, np.int32)
        front = np.zeros(distance.shape, bool)
        front[roots, np.arange(len(roots))] = True
        linked = [np.nonzero(there[:, port] >= 0)[0] for port in range(ports)]
        steps = 0
        while front.any():
            distance[front] = steps
            following = np.zeros_like(front)
            for port, here in enumerate(linked):
                following[here] |= front[there[here, port]]
            front = following & (distance == NO_WAY)
            steps += 1
        return distance[:, column]

    @cached_property
    def given_ports(self) -> Array:
        """The port at each router on the way to each node: an array of routers x nodes, -1 for none.

        It is that of the tables, or else the lowest that leads nearer.
        """
        if self._tables:
            return np.array(self._tables, np.int32)
        there, distance = self._there, self.distances
        found = np.full(distance.shape, NO_WAY, np.int32)
        for port in reversed(range(there.shape[1])):
            here = np.nonzero(there[:, port] >= 0)[0]
            nearer = distance[there[here, port]] < distance[here]
            found[here] = np.where(nearer, port, found[here])
        found[self._nodes[:, 0], np.arange(len(self._nodes))] = self._nodes[:, 1]
        return found

    @cached_property
    def longest(self) -> int:
        """Routers on the longest way from node to node by `given_ports`, which must lead there."""
        home, last = self._nodes.T
        number = np.arange(len(home))
        at = np.repeat(self._nodes[:, :1], len(home), axis=1)
        for length in range(1, len(self._there) + 2):
            out = self.given_ports[at, number]
            going = (out != NO_WAY) & ~((at == home) & (out == last))
            if not going.any():
                return length
            at = np.where(going, self._there[at, out], home)
        return len(self._there) + 1
