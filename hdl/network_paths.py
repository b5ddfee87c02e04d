"""Shortest paths of a network to all of its nodes at once, in numpy: a thousand routers take a fraction of a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .router.routing import Place

__all__ = ["NO_WAY", "given_ports", "link_ends", "longest_path", "shortest_distances"]

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


def shortest_distances(there: Array, homes: Sequence[int]) -> Array:
    """Links from each router to the router of each node: an array of routers x nodes. `there`: as `link_ends` has it.

    All searches go on at once, one link further in every turn.
    """
    roots, column = np.unique(np.asarray(homes), return_inverse=True)
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


def given_ports(
    there: Array, nodes: Sequence[Place], distance: Array, tables: Sequence[Sequence[int]]
) -> Array:
    """The port at each router on the way to each node: an array of routers x nodes, -1 for none.

    It is that of `tables`, or else the lowest that leads nearer.
    """
    if tables:
        return np.array(tables, np.int32)
    found = np.full(distance.shape, NO_WAY, np.int32)
    for port in reversed(range(there.shape[1])):
        here = np.nonzero(there[:, port] >= 0)[0]
        nearer = distance[there[here, port]] < distance[here]
        found[here] = np.where(nearer, port, found[here])
    places = np.array(nodes)
    found[places[:, 0], np.arange(len(nodes))] = places[:, 1]
    return found


def longest_path(there: Array, nodes: Sequence[Place], ports: Array) -> int:
    """Routers on the longest way from node to node, by `ports` as `given_ports` has them; those without end not
    counted."""
    places = np.array(nodes)
    number = np.arange(len(nodes))
    at = np.repeat(places[:, :1], len(nodes), axis=1)
    for length in range(1, len(there) + 2):
        out = ports[at, number]
        going = (out != NO_WAY) & ~((at == places[:, 0]) & (out == places[:, 1]))
        if not going.any():
            return length
        at = np.where(going, there[at, out], places[:, 0])
    return len(there) + 1
