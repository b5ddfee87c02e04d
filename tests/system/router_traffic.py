"""Random traffic of all nodes and lanes through a network, run inside the simulator by
`test_router_traffic.py`."""

from collections import deque

from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.sim import kernel

LINK = LinkConfig(flit_bits=64, vls=3, delay_cycles=1, hop_bits=3)
ROUTER_FLITS, NODE_FLITS = 3, 4
NETWORK = mesh(
    2,
    2,
    router=RouterConfig(link=LINK, ports=5, input_buffer_flits=ROUTER_FLITS, output_buffer_flits=2),
    node_buffer_flits=NODE_FLITS,
)
MEMBERS = ("payload", "valid", "credit_vl", "credit_valid")
NOWHERE = 7
"""A port that no router has."""
REGIME_CYCLES = 250
"""After so many cycles each node draws new chances to send and to stall."""
STALLS = (0.0, 0.0, 0.0, 0.3, 0.8, 1.0)
GAPS = (0.0, 0.0, 0.3, 0.9)


def body_word(number, index):
    """Data of a body flit: its packet's number, its index, and noise that depends on both."""
    return (number << 32 | index) ^ (number * 0x9E3779B97F4A7C15 + index * 0xC2B2AE3D27D4EB4F) % (1 << 64)


class Node:
    """One node: a sender with the router's credits, and a receiver that stalls."""

    def __init__(self, number):
        self.rx = {member: kernel.signal(f"node{number}_rx__{member}") for member in MEMBERS}
        self.tx = {member: kernel.signal(f"node{number}_tx__{member}") for member in MEMBERS}
        self.queues = [deque() for _ in range(LINK.vls)]
        self.credits = [ROUTER_FLITS] * LINK.vls
        self.held = [0] * LINK.vls
        self.partial = [[] for _ in range(LINK.vls)]
        self.last = {}
        self.stall, self.gap = 0.0, 0.5


async def random_traffic(session):
    """`spec["cycles"]` of traffic and then a drain, each node's stalls and load changing all the time. Every
    packet must come whole, unharmed, in order for its source, destination and VL; packets to nowhere must be
    dropped and counted; at the end all credits must be home. Returns what was seen."""
    chance = session.random
    nodes = [Node(number) for number in range(len(NETWORK.nodes))]
    numbers = range(len(nodes))
    packets, dropped, received, flits_seen = {}, 0, 0, 0

    def new_packet(source, vl):
        nonlocal dropped
        number = len(packets) + 1
        destination = chance.choice(numbers)
        flits = chance.choice((1, 1, 2, 3, 5, 12))
        lost = chance.random() < 0.03
        route = NOWHERE if lost else NETWORK.source_route(source, destination)
        hops = 1 if lost else len(NETWORK.path(source, destination))
        dropped += lost
        packets[number] = None if lost else (source, destination, vl, flits)
        head = (route | number << hops * LINK.hop_bits) << 8
        assert head < 1 << 56
        for i in range(flits):
            word = head if i == 0 else body_word(number, i)
            nodes[source].queues[vl].append(
                word | vl << 64 | (i == 0) << 64 + LINK.vl_bits | (i == flits - 1) << 65 + LINK.vl_bits
            )

    def take(number, node):
        nonlocal received, flits_seen
        flit = node.tx["payload"].get()
        vl = flit >> 64 & (1 << LINK.vl_bits) - 1
        head, tail = flit >> 64 + LINK.vl_bits & 1, flit >> 65 + LINK.vl_bits & 1
        got = node.partial[vl]
        node.held[vl] += 1
        flits_seen += 1
        assert node.held[vl] <= NODE_FLITS, f"node {number} VL {vl}: sent without a credit"
        assert head == (not got), f"node {number} VL {vl}: packets mixed"
        got.append(flit & (1 << 64) - 1)
        if not tail:
            return
        name = got[0] >> 8
        assert packets.get(name), f"node {number} VL {vl}: packet {name} was never sent, or came before"
        source, destination, sent_vl, flits = packets[name]
        assert (destination, sent_vl, flits) == (number, vl, len(got)), f"packet {name}"
        assert got[1:] == [body_word(name, i) for i in range(1, flits)], f"packet {name}: data"
        assert node.last.get((source, vl), 0) < name, f"packet {name}: out of order"
        node.last[source, vl] = name
        packets[name] = None
        received += 1
        got.clear()

    cycles, cycle, quiet = session.spec["cycles"], 0, 0
    while cycle < cycles + 100 or quiet < 100:
        assert cycle < 2 * cycles, f"not drained: {sum(map(bool, packets.values()))} packets are missing"
        if cycle % REGIME_CYCLES == 0:
            for node in nodes:
                node.stall = chance.choice(STALLS) if cycle < cycles else 0.1
                node.gap = chance.choice(GAPS)
        quiet += 1
        for number, node in enumerate(nodes):
            # All outputs come out of registers, so that they can be read after the edge as well as before the
            # next.
            if node.tx["valid"].get():
                quiet = 0
                take(number, node)
            if node.rx["credit_valid"].get():
                quiet = 0
                vl = node.rx["credit_vl"].get()
                node.credits[vl] += 1
                assert node.credits[vl] <= ROUTER_FLITS, f"node {number} VL {vl}: a credit too many"
            back = [vl for vl, count in enumerate(node.held) if count]
            free = bool(back) and chance.random() >= node.stall
            node.tx["credit_valid"].set(free)
            if free:
                vl = chance.choice(back)
                node.held[vl] -= 1
                node.tx["credit_vl"].set(vl)
            if cycle < cycles:
                vl = chance.randrange(LINK.vls)
                if len(node.queues[vl]) < 4:
                    new_packet(number, vl)
            ready = [vl for vl in range(LINK.vls) if node.credits[vl] and node.queues[vl]]
            go = bool(ready) and chance.random() >= node.gap
            node.rx["valid"].set(go)
            if ready:
                quiet = 0
            if go:
                vl = chance.choice(ready)
                node.credits[vl] -= 1
                node.rx["payload"].set(node.queues[vl].popleft())
        cycle += 1
        await session.clock.sleep(1)
    assert not any(packets.values()), f"{sum(map(bool, packets.values()))} packets are missing"
    assert all(node.credits == [ROUTER_FLITS] * LINK.vls for node in nodes), "credits are missing"
    assert not any(any(node.held) or any(node.partial) for node in nodes)
    assert kernel.signal("activity").get() == 0
    assert kernel.signal("dropped").get() == dropped
    return {"cycles": cycle, "packets": received, "dropped": dropped, "flits": flits_seen}
