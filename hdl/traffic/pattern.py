"""Destinations: permutations of the nodes in Python, random choices in RTL.

A permutation gives each node one destination, so a source needs no logic for it. The set-up computes it here and
writes it to the class's DESTINATION register with `Choice.FIXED`. A user's own permutation table is written the same
way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from amaranth import Module, Mux, Signal, Value

from ..config import ConfigError
from ..registry import Registry, function_problem
from .config import TrafficConfig

__all__ = ["PERMUTATIONS", "UNIFORM_BITS", "permutation", "uniform", "uniform_value"]

UNIFORM_BITS = 24
"""Random bits of a uniform choice: no node is favoured by more than nodes / 2^24."""


def _transpose(node: int, nodes: int) -> int:
    side = math.isqrt(nodes)
    if side * side != nodes:
        raise ConfigError(f"pattern transpose: nodes = {nodes}: must be a square number")
    row, column = divmod(node, side)
    return column * side + row


def _bits(name: str, nodes: int) -> int:
    if nodes & (nodes - 1):
        raise ConfigError(f"pattern {name}: nodes = {nodes}: a power of two")
    return nodes.bit_length() - 1


def _bit_complement(node: int, nodes: int) -> int:
    _bits("bit_complement", nodes)
    return nodes - 1 - node


def _bit_reverse(node: int, nodes: int) -> int:
    bits = _bits("bit_reverse", nodes)
    return sum((node >> i & 1) << bits - 1 - i for i in range(bits))


def _shuffle(node: int, nodes: int) -> int:
    bits = _bits("shuffle", nodes)
    return (node << 1 | node >> bits - 1) & nodes - 1


def _neighbour(node: int, nodes: int) -> int:
    return (node + 1) % nodes


def _tornado(node: int, nodes: int) -> int:
    return (node + (nodes + 1) // 2 - 1) % nodes


PERMUTATIONS = Registry[Callable[[int, int], int]](
    "patterns", "traffic pattern", function_problem("node", "nodes")
) | {
    "transpose": _transpose,
    "bit_complement": _bit_complement,
    "bit_reverse": _bit_reverse,
    "shuffle": _shuffle,
    "neighbour": _neighbour,
    "tornado": _tornado,
}
"""Destination of a node among so many nodes, by the pattern's name.

`transpose` takes node numbers row by row of a square mesh. A node may be its own destination (the diagonal of a
transpose): such a source stays off.
"""


def permutation(name: str, nodes: int) -> list[int]:
    """The destination of every node.

    Raises ConfigError for an unknown name or a number of nodes that does not suit.
    """
    if name not in PERMUTATIONS:
        raise ConfigError(f"pattern = {name!r}: one of {', '.join(sorted(PERMUTATIONS))}")
    found = [PERMUTATIONS[name](node, nodes) for node in range(nodes)]
    for node, destination in enumerate(found):
        if type(destination) is not int or not 0 <= destination < nodes:
            raise ConfigError(
                f"pattern {name}: node {node} of {nodes} sends to {destination!r}: a node is 0 to {nodes - 1}"
            )
    return found


def uniform_value(random: int, node: int, nodes: int) -> int:
    """The model of `uniform`."""
    other = random * (nodes - 1) >> UNIFORM_BITS
    return other + (other >= node)


def uniform(m: Module, random: Value, node: Value, config: TrafficConfig) -> Signal:
    """Any node but `node`, from `UNIFORM_BITS` uniform bits; combinational, `node_bits` wide."""
    other = Signal(config.node_bits, name="other_node")
    chosen = Signal(config.node_bits, name="uniform_node")
    m.d.comb += [
        other.eq((random * (config.nodes - 1))[UNIFORM_BITS:]),
        chosen.eq(other + Mux(other >= node, 1, 0)),
    ]
    return chosen
