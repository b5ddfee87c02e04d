"""Packets to one node or to a set of nodes, through routers in Amaranth's simulator, beside what must come out."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.sim import Simulator
from lanikai.hdl.network import Network
from lanikai.hdl.packet import HEADER_LAYOUT
from lanikai.hdl.router.multicast.sets import route_to_set

from support.network.beside_rtl import JoinedRouters

__all__ = ["Seen", "SetPacket", "random_packets", "run"]

ROUTE = HEADER_LAYOUT["route"]
NUMBER_BITS = 8
"""Bits of the number of a packet, which stands where a header has its kind and service level."""


@dataclass(kw_only=True)
class SetPacket:
    """A packet of node `source` to `nodes`, its head on the link in cycle `start` at the earliest.

    `as_set`: its header has a set, even if that is of one node. It is needed for more than one.
    """

    number: int
    source: int
    nodes: tuple[int, ...]
    vl: int = 0
    flits: int = 1
    start: int = 0
    as_set: bool = True

    def words(self, network: Network, nodes: Sequence[int]) -> list[int]:
        """Its flits, with a header that is still for `nodes`."""
        link, noise = network.router.link, random.Random(self.number)
        bits = 24 if link.flit_bits == 32 else ROUTE.width
        one = network.source_route(self.source, self.nodes[0])
        route = route_to_set(network, nodes) if self.as_set else one
        first = noise.getrandbits(link.flit_bits) & ~((1 << ROUTE.offset + bits) - 1)
        assert self.number < 1 << NUMBER_BITS
        first |= route << ROUTE.offset | self.number
        return [first] + [noise.getrandbits(link.flit_bits) for _ in range(self.flits - 1)]


@dataclass
class Seen:
    """The cycles of each copy's head and tail by (packet, node), those of each packet at its source, and the last one.

    `flits[node]`: flits that came there.
    """

    copies: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)
    flits: dict[int, int] = field(default_factory=dict)
    cycles: int = 0


def random_packets(
    network: Network, chance: random.Random, count: int, *, longest: int, share: float, plain: bool
) -> list[SetPacket]:
    """Packets of all nodes and VLs, `share` of them to sets, the others to one node.

    Those may be twice as long as `longest`. `plain`: they have a header as without multicast, and not a set of one.
    """
    nodes, found = range(len(network.nodes)), []
    for number in range(count):
        several = chance.random() < share
        chosen = chance.sample(nodes, chance.randint(1, len(nodes)) if several else 1)
        found.append(
            SetPacket(
                number=number,
                source=chance.choice(nodes),
                nodes=tuple(sorted(chosen)),
                vl=chance.randrange(network.router.link.vls),
                flits=chance.randint(1, longest if several else 2 * longest),
                as_set=several or not plain,
            )
        )
    return found


class _Node:
    """A node: it keeps the rules of credits, and checks what comes."""

    def __init__(self, node: int, network: Network, chance: random.Random, seen: Seen) -> None:
        self.node, self.network, self.chance, self.seen = node, network, chance, seen
        vls = range(network.router.link.vls)
        self.queues: list[deque[tuple[SetPacket, int, int]]] = [deque() for _ in vls]
        self.credits = [network.router.input_buffer_flits for _ in vls]
        self.held, self.partial = [0 for _ in vls], [[] for _ in vls]
        self.due: dict[int, SetPacket] = {}
        self.order: dict[tuple[int, int], int] = {}

    def receive(self, flit: Any, cycle: int) -> None:
        vl, got = flit.vl, self.partial[flit.vl]
        place = f"node {self.node} VL {vl}"
        self.held[vl] += 1
        assert self.held[vl] <= self.network.node_buffer_flits, f"{place}: sent without a credit"
        assert bool(flit.head) == (not got), f"{place}: packets mixed"
        got.append((cycle, flit.data))
        self.seen.flits[self.node] = self.seen.flits.get(self.node, 0) + 1
        if not flit.tail:
            return
        data = [word for _, word in got]
        packet = self.due.pop(data[0] & 0xFF, None)
        assert packet is not None, f"{place}: a packet that is not due, {data[0] & 0xFF}"
        assert packet.vl == vl, f"{place}: packet {packet.number} has changed its VL"
        assert data == packet.words(self.network, [self.node]), f"{place}: packet {packet.number} is changed"
        flow = (packet.source, vl)
        assert self.order.get(flow, -1) < packet.number, f"{place}: packet {packet.number} is out of order"
        self.order[flow] = packet.number
        self.seen.copies[packet.number, self.node] = (got[0][0], cycle)
        got.clear()

    def send(self, cycle: int, gap: float) -> tuple[int, int, bool, bool] | None:
        ready = [v for v, queue in enumerate(self.queues) if self.credits[v] and queue]
        ready = [v for v in ready if self.queues[v][0][0].start <= cycle]
        if not ready or self.chance.random() < gap:
            return None
        vl = self.chance.choice(ready)
        packet, i, word = self.queues[vl].popleft()
        self.credits[vl] -= 1
        self.seen.sent[packet.number] = (self.seen.sent.get(packet.number, (cycle,))[0], cycle)
        return vl, word, i == 0, i == packet.flits - 1

    def step(self, ctx: Any, rx: Any, tx: Any, cycle: int, *, stall: float, gap: float) -> bool:
        """One cycle. Returns whether anything moved."""
        moved = False
        if ctx.get(tx.valid):
            moved = True
            self.receive(ctx.get(tx.payload), cycle)
        if ctx.get(rx.credit_valid):
            moved = True
            vl = ctx.get(rx.credit_vl)
            self.credits[vl] += 1
            assert self.credits[vl] <= self.network.router.input_buffer_flits, "a credit too many"
        back = [v for v, held in enumerate(self.held) if held]
        free = bool(back) and self.chance.random() >= stall
        ctx.set(tx.credit_valid, free)
        if free:
            vl = self.chance.choice(back)
            self.held[vl] -= 1
            ctx.set(tx.credit_vl, vl)
        sent = self.send(cycle, gap)
        ctx.set(rx.valid, sent is not None)
        if sent is not None:
            moved = True
            vl, word, head, tail = sent
            ctx.set(rx.payload, {"data": word, "vl": vl, "head": head, "tail": tail})
        return moved

    @property
    def empty(self) -> bool:
        return not (self.due or any(self.queues) or any(self.held) or any(self.partial))


def run(
    network: Network,
    packets: Sequence[SetPacket],
    *,
    stall: float = 0.0,
    gap: float = 0.0,
    seed: int = 0,
    limit: int = 4000,
    shut: Mapping[int, int] | None = None,
) -> Seen:
    """Send `packets` through the network's routers, and check all that comes out.

    Each node of a packet's set must get it once, whole, on its VL, with a header that names that node alone, and in
    order for each source and VL. No credit may be missing at the end, or too many at any time. A receiver frees a flit
    in a cycle with probability `1 - stall`, a sender idles with probability `gap`. `shut`: cycles in which a node frees
    nothing at first. All must be through in `limit` cycles.
    """
    top, seen, chance = JoinedRouters(network), Seen(), random.Random(seed)
    nodes = [_Node(node, network, chance, seen) for node in range(len(network.nodes))]
    for packet in packets:
        for i, word in enumerate(packet.words(network, packet.nodes)):
            nodes[packet.source].queues[packet.vl].append((packet, i, word))
        for node in packet.nodes:
            nodes[node].due[packet.number] = packet

    async def bench(ctx: Any) -> None:
        idle, cycle = 0, 0
        while idle < 40 or not all(node.empty for node in nodes):
            assert cycle < limit, f"after {limit} cycles these wait: {[sorted(node.due) for node in nodes]}"
            moved = False
            for node, rx, tx in zip(nodes, top.rx, top.tx, strict=True):
                full_stop = cycle < (shut or {}).get(node.node, 0)
                moved |= node.step(ctx, rx, tx, cycle, stall=1.0 if full_stop else stall, gap=gap)
            idle = 0 if moved else idle + 1
            cycle += 1
            await ctx.tick()
        seen.cycles = cycle - idle
        full = network.router.input_buffer_flits
        assert all(credits == full for node in nodes for credits in node.credits), "credits are missing"

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen
