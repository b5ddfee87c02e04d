"""A plain model of a network of routers with nodes that send random packets, and the same inputs for the RTL.

The model is run alone. What it shows at the network's pins is kept, a number a cycle, as is what its nodes put on them.
The RTL is given the same inputs. As long as it shows the same, its nodes would have done the same.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from lanikai.hdl.network import Network

from .plain_router import PlainFlit, PlainRouter, RouterShape

__all__ = ["Load", "Shown", "run_plain", "shapes"]

KIND_BITS = 8
"""Bits of a header flit below its route."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """Random traffic.

    - `send`: the share of cycles in which a node sends if it can.
    - `astray`: the share of packets with a random route.
    - `stall`: the share of cycles in which a sink gives no credit.
    - `flits`: the longest packet.
    - `last_cycle`: no packet begins from then on, and sinks are quick.
    """

    send: float = 0.8
    astray: float = 0.0
    stall: float = 0.3
    flits: int = 12
    last_cycle: int


@dataclass
class Shown:
    """A run at the pins of each node, a row a cycle: what goes into the network, and what comes out of it.

    A row has for each node a flit or None, and the VL of a credit or None.
    """

    inputs: list[list[tuple[PlainFlit | None, int | None]]]
    outputs: list[list[tuple[PlainFlit | None, int | None]]]
    dropped: int
    counts: Counter[str]


def shapes(network: Network) -> list[RouterShape]:
    """The routers' numbers, from the network's configuration. Raises ValueError for a choice that has no model."""
    config, link = network.router, network.router.link
    for name, value, only in (
        ("arbiter", config.arbiter, ("round_robin",)),
        ("allocator", config.allocator, ("separable",)),
        ("vl_arbiter", config.vl_arbiter, ("round_robin",)),
        ("vl_selection", config.vl_selection, ("same",)),
        ("routing", config.routing, ("source", "dimension_order")),
        ("pipelined", config.pipelined, (False,)),
        ("header_lookahead", bool(config.header_lookahead), (False,)),
        ("link.restart", bool(link.restart), (False,)),
        ("control_vl", config.control_vl, (None,)),
    ):
        if value not in only:
            raise ValueError(f"{name} = {value!r}: the plain model has {only[0]!r}")
    found = []
    for router in range(network.routers):
        place = None
        if config.routing == "dimension_order":
            place = (*network.coordinates[router], *map(max, zip(*network.coordinates, strict=True)))
        found.append(
            RouterShape(
                ports=config.ports,
                vls=link.vls,
                input_flits=config.input_buffer_flits,
                output_flits=config.output_buffer_flits,
                credits=network.credit_flits[router],
                flit_bits=link.flit_bits,
                hop_bits=link.hop_bits,
                rate=Fraction(link.rate_num, link.rate_den),
                delay=link.delay_cycles,
                connected=frozenset(p for p in range(config.ports) if network.connected(router) >> p & 1),
                place=place,
            )
        )
    return found


class _Node:
    """Sends packets with credits, one VL at a time or several in turn, and gives credits back late."""

    def __init__(self, network: Network, number: int, rng: random.Random, load: Load) -> None:
        self._network, self._number, self._rng, self._load = network, number, rng, load
        vls = network.router.link.vls
        self._credits = [network.router.input_buffer_flits] * vls
        self._packets: list[deque[PlainFlit]] = [deque() for _ in range(vls)]
        self._owed: deque[int] = deque()

    def sends(self, cycle: int) -> PlainFlit | None:
        """The flit of this cycle."""
        ready = []
        for vl, packet in enumerate(self._packets):
            if not packet and cycle < self._load.last_cycle:
                packet.extend(self._packet(vl))
            if packet and self._credits[vl]:
                ready.append(vl)
        if not ready or self._rng.random() >= self._load.send:
            return None
        vl = self._rng.choice(ready)
        self._credits[vl] -= 1
        return self._packets[vl].popleft()

    def _packet(self, vl: int) -> Iterator[PlainFlit]:
        rng, network, bits = self._rng, self._network, self._network.router.link.flit_bits
        route = network.source_route(self._number, rng.randrange(len(network.nodes)))
        if rng.random() < self._load.astray:
            route = rng.getrandbits(6)
        flits = rng.randrange(1, self._load.flits + 1)
        for i in range(flits):
            data = rng.getrandbits(bits)
            if i == 0:
                data = (route << KIND_BITS | rng.getrandbits(KIND_BITS)) % (1 << bits)
            yield PlainFlit(data, vl, i == 0, i == flits - 1)

    def gives(self, cycle: int) -> int | None:
        """The credit of this cycle: of a flit that came before it."""
        if not self._owed or (cycle < self._load.last_cycle and self._rng.random() < self._load.stall):
            return None
        return self._owed.popleft()

    def see(self, flit: PlainFlit | None, credit: int | None) -> None:
        """Take note of what came in this cycle."""
        if flit is not None:
            self._owed.append(flit.vl)
        if credit is not None:
            self._credits[credit] += 1


def run_plain(network: Network, rng: random.Random, load: Load, *, cycles: int) -> Shown:
    """Run the model for so many cycles. After the load's last cycle the network empties."""
    routers = [PlainRouter(shape) for shape in shapes(network)]
    nodes = [_Node(network, number, rng, load) for number in range(len(network.nodes))]
    at = {place: node for node, place in enumerate(network.nodes)}
    shown = Shown([], [], 0, Counter())
    for cycle in range(cycles):
        ends = [router.outputs() for router in routers]
        given = [(node.sends(cycle), node.gives(cycle)) for node in nodes]
        comes = [(ends[r][0][p], ends[r][1][p]) for r, p in network.nodes]
        for r, router in enumerate(routers):
            flits: list[PlainFlit | None] = []
            credits: list[int | None] = []
            for place in ((r, p) for p in range(network.router.ports)):
                flit, credit = None, None
                if place in at:
                    flit, credit = given[at[place]]
                elif place in network.neighbours:
                    other, port = network.neighbours[place]
                    flit, credit = ends[other][0][port], ends[other][1][port]
                flits.append(flit)
                credits.append(credit)
            router.step(flits, credits)
        for node, seen in zip(nodes, comes, strict=True):
            node.see(*seen)
        shown.inputs.append(given)
        shown.outputs.append(comes)
        shown.counts["in"] += sum(flit is not None for flit, _ in given)
        shown.counts["out"] += sum(flit is not None for flit, _ in comes)
        shown.counts["tails"] += sum(flit is not None and flit.tail for flit, _ in comes)
    shown.dropped = sum(router.dropped for router in routers)
    return shown
