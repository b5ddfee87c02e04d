"""Random traffic of all nodes and lanes through a network, run inside the simulator by `test_router_traffic.py`."""

import random
from collections import deque

from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import chain, mesh, torus
from lanikai.hdl.network_named import network_named
from lanikai.hdl.network_waits import in_order
from lanikai.hdl.packet import Header, Kind, packet_words
from lanikai.hdl.router.agent import has_agent
from lanikai.hdl.router.routing import routing_class
from lanikai.hdl.router.scheduler import has_tables
from lanikai.sim.inside import native_api
from lanikai.sim.models.router_agent import RouterAgent

ROUTER_FLITS, NODE_FLITS = 3, 4
_BUFFERS = {"input_buffer_flits": ROUTER_FLITS, "output_buffer_flits": 2}
_LINK = LinkConfig(flit_bits=64, vls=3, delay_cycles=1, hop_bits=3)


def _mesh(side=2, **changes):
    return mesh(
        side,
        side,
        router=RouterConfig(**{"link": _LINK, "ports": 5} | _BUFFERS | changes),
        node_buffer_flits=NODE_FLITS,
    )


NETWORKS = {
    "source_same": _mesh(),
    # Weights, and with them headers that are looked at ahead.
    "source_weighed": _mesh(vl_arbiter="table_slow", vl_table_entries=4),
    "dimension_order_any": _mesh(
        link=_LINK.replace(vls=4),
        routing="dimension_order",
        vl_selection="any",
        vl_classes=(0, 1, 1, 0),
        vl_arbiter="deficit",
    ),
    "table_service_level": chain(
        3,
        router=RouterConfig(
            link=_LINK.replace(vls=4),
            ports=3,
            routing="table",
            forwarding_entries=4,
            vl_selection="service_level",
            service_level_map=(3, 0, 1, 2) * 4,
            vl_arbiter="table_fast",
            vl_table_entries=4,
            activity_counters=True,
            **_BUFFERS,
        ),
        node_buffer_flits=NODE_FLITS,
    ),
    # Rings that packets go round, from one VL of a pair to the other.
    "torus": torus(
        4,
        4,
        router=RouterConfig(
            link=_LINK.replace(vls=4), ports=5, routing="torus", vl_selection="routing", **_BUFFERS
        ),
        node_buffer_flits=NODE_FLITS,
    ),
    # Packets that have a choice, or a detour.
    **{
        name: _mesh(side=3, link=_LINK.replace(vls=2), routing=name, vl_selection="routing")
        for name in ("west_first", "odd_even", "duato", "valiant", "ugal")
    },
    # The same in other topologies.
    **{
        name: network_named(
            text,
            RouterConfig(link=_LINK.replace(vls=4), routing=name, vl_selection="routing", **_BUFFERS),
        ).replace(node_buffer_flits=NODE_FLITS)
        for name, text in (
            ("torus_duato", "torus4x3"),
            ("torus_ugal", "torus4x3"),
            ("hypercube_duato", "hypercube(3)"),
            ("flattened_butterfly_duato", "flattened_butterfly(2x2,nodes=2)"),
            ("flattened_butterfly_ugal", "flattened_butterfly(2x2,nodes=2)"),
            ("dragonfly_ugal", "dragonfly(2,2,1)"),
        )
    },
    # Everything at once: what an agent writes and reads, too.
    "everything": _mesh(
        link=LinkConfig(flit_bits=64, vls=16, hop_bits=3),
        ports=6,
        routing="table",
        forwarding_entries=8,
        vl_selection="service_level",
        service_level_map=(3, 0, 1, 2) * 4,
        vl_arbiter="table_fast",
        vl_table_entries=4,
        management=True,
        activity_counters=True,
    ),
}
"""Networks by name: a router's features in combinations that show each."""
MEMBERS = ("payload", "valid", "credit_vl", "credit_valid")
NOWHERE = 7
"""A port that no router has, and a node that is not there."""
DATA_VLS = 4
"""Number of VLs with traffic, at most: those below it."""
FROZEN = range(3000, 4000)
"""Cycles in which no node takes a flit while all send: the network fills up and stands still."""
REGIME_CYCLES = 250
"""Cycles after which each node draws new chances to send and to stall."""
STALLS = (0.0, 0.0, 0.0, 0.3, 0.8, 1.0)
GAPS = (0.0, 0.0, 0.3, 0.9)


def body_word(number, index, source=0, destination=0):
    """Data of a body flit: its packet's number, its index, and noise that depends on both. The first one is the second
    half of the header."""
    if index == 1:
        return number << 32 | source << 10 | destination
    return (number << 32 | index) ^ (number * 0x9E3779B97F4A7C15 + index * 0xC2B2AE3D27D4EB4F) % (1 << 64)


class Node:
    """One node: a sender with the router's credits, and a receiver that stalls."""

    def __init__(self, number, vls):
        self.rx = {member: native_api.signal(f"node{number}_rx__{member}") for member in MEMBERS}
        self.tx = {member: native_api.signal(f"node{number}_tx__{member}") for member in MEMBERS}
        self.queues = [deque() for _ in range(vls)]
        self.credits = [ROUTER_FLITS] * vls
        self.held = [0] * vls
        self.partial = [[] for _ in range(vls)]
        self.last = {}
        self.stall, self.gap = 0.0, 0.5


async def agent(session, network, router, counts):
    """The agent of a router. It rewrites VL tables all the time, and tells senders of packets that were thrown away, on
    VL 15."""
    chance, port = random.Random(router), RouterAgent(session.clock, network.router, router)
    while not counts["stop"]:
        await session.clock.sleep(chance.randint(1, 60))
        report = await port.read("DROP_REPORT") if network.router.management else {"valid": 0}
        if report["valid"]:
            assert report["destination"] == NOWHERE
            route = network.route_from(router, report["source"])
            header = Header(
                kind=Kind.REJECT, route=route, destination=report["destination"], source=report["source"]
            )
            await port.send(packet_words(header, b"", network.router.link))
            counts["reported"] += 1
        elif has_tables(network.router) and chance.random() < 0.5:
            vls = min(network.router.data_vls, DATA_VLS)
            rows = [[(chance.randrange(vls), chance.randint(0, 9)) for _ in range(4)] for _ in range(2)]
            await port.write_tables(high=rows[0], low=rows[1], limit=chance.choice((0, 3, 255)))
            counts["tables"] += 1
    if network.router.management:
        counts["lost"] += (await port.read("REPORTS_LOST"))["packets"]
    sent = 0
    node_port = next(port for place, port in network.nodes if place == router)
    for vl in range(network.router.link.vls):
        await port.write("SELECT", port=node_port, vl=vl)
        sent += (await port.read("LINK_FLITS"))["flits"]
    counts["to_node"][router] = sent
    counts["done"] += 1


async def random_traffic(session):
    """Run `spec["cycles"]` of traffic and then a drain, each node's stalls and load changing all the time. Returns what
    was seen.

    - Every packet must come whole, unharmed, on a VL that its service level allows, and in order where the network
      promises it.
    - Packets to nowhere must be dropped, counted and, where there are agents, reported to their senders.
    - While all receivers are stopped nothing may change on a link, and then all must drain.
    - At the end all credits must be home.
    """
    network = NETWORKS[session.spec["network"]]
    config, link = network.router, network.router.link
    by_hops, any_vl, ordered = config.routing == "source", config.vl_selection == "any", in_order(network)
    route_bits = 0 if by_hops else routing_class(config).route_bits(config)
    vls = min(link.vls, DATA_VLS)
    chance = session.random
    nodes = [Node(number, link.vls) for number in range(len(network.nodes))]
    numbers = range(len(nodes))
    packets, dropped, received, flits_seen, rejects = {}, 0, 0, 0, 0
    node_flits = [0] * len(nodes)
    counts = {"stop": False, "reported": 0, "lost": 0, "tables": 0, "done": 0, "to_node": {}}
    agents = has_agent(config)
    if agents:
        for router in range(network.routers):
            port = RouterAgent(session.clock, config, router)
            if config.routing == "table":
                await port.write_forwarding_table(network.forwarding_table(router))
            session.clock.spawn(agent(session, network, router, counts), f"agent {router}")

    def new_packet(source, vl):
        nonlocal dropped
        number = len(packets) + 1
        destination, level = chance.choice(numbers), chance.randrange(16)
        flits = chance.choice((1, 1, 2, 3, 5, 12))
        lost = chance.random() < 0.03
        if lost and config.management:
            flits = 4  # long enough to have its names in it
        hops = 1 if lost else len(network.path(source, destination))
        dropped += lost
        if by_hops:
            route = NOWHERE if lost else network.source_route(source, destination)
            route |= number << hops * link.hop_bits
        else:
            # Coordinates and node numbers beyond the network.
            route = (NOWHERE if lost else network.source_route(source, destination)) | number << route_bits
        group = (vl,)
        if config.vl_selection == "routing" and not lost:
            router, port = network.nodes[source]
            group = (network.channels(router, destination, in_port=port, vl=vl)[-1][2],)
        if config.maps_service_levels:
            group = config.vl_groups[config.initial_service_level_map[level]]
        packets[number] = None if lost else (source, destination, vl, level, flits, group)
        head = route << 8 | level << 4
        assert head < 1 << 56
        for i in range(flits):
            word = head if i == 0 else body_word(number, i, source, NOWHERE if lost else destination)
            nodes[source].queues[vl].append(
                word | vl << 64 | (i == 0) << 64 + link.vl_bits | (i == flits - 1) << 65 + link.vl_bits
            )

    def take(number, node):
        nonlocal received, flits_seen, rejects
        flit = node.tx["payload"].get()
        vl = flit >> 64 & (1 << link.vl_bits) - 1
        head, tail = flit >> 64 + link.vl_bits & 1, flit >> 65 + link.vl_bits & 1
        got = node.partial[vl]
        node.held[vl] += 1
        flits_seen += 1
        node_flits[number] += 1
        assert node.held[vl] <= NODE_FLITS, f"node {number} VL {vl}: sent without a credit"
        assert head == (not got), f"node {number} VL {vl}: packets mixed"
        got.append(flit & (1 << 64) - 1)
        if not tail:
            return
        if config.control_vl is not None and vl == config.control_vl:
            header = Header.unpack(got[0] | got[1] << 64)
            assert (header.kind, header.source) == (Kind.REJECT, number)
            rejects += 1
            got.clear()
            return
        name = got[0] >> 8 + route_bits
        assert packets.get(name), f"node {number} VL {vl}: packet {name} was never sent, or came before"
        source, destination, sent_vl, level, flits, group = packets[name]
        assert (destination, flits) == (number, len(got)), f"packet {name}"
        assert vl in group, f"packet {name}: on VL {vl}"
        expected = [body_word(name, i, source, destination) for i in range(1, flits)]
        assert got[1:] == expected, f"packet {name}: data"
        # Packets that change VLs on the way may pass each other where they were on different ones.
        if ordered and (not any_vl or len(network.path(source, destination)) == 1):
            flow = (source, sent_vl, vl if any_vl else level if config.maps_service_levels else 0)
            assert node.last.get(flow, 0) < name, f"packet {name}: out of order"
            node.last[flow] = name
        packets[name] = None
        received += 1
        got.clear()

    cycles, cycle, quiet = session.spec["cycles"], 0, 0
    frozen = None
    while cycle < cycles + 100 or quiet < 300 or counts["reported"] < dropped * config.management - 40:
        assert cycle < 2 * cycles, f"not drained: {sum(map(bool, packets.values()))} packets are missing"
        if cycle in FROZEN:
            for node in nodes:
                node.stall, node.gap = 1.0, 0.0
            held = [native_api.signal("activity").get()]
            held += [node.tx[member].get() for node in nodes for member in ("payload", "valid")]
            if cycle == FROZEN[-100]:
                frozen = held
                assert held[0] == 0 and not any(node.tx["valid"].get() for node in nodes)
            elif cycle > FROZEN[-100]:
                assert held == frozen, "something changes on a link that is held"
        elif cycle % REGIME_CYCLES == 0:
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
                vl = chance.randrange(vls)
                if len(node.queues[vl]) < 4:
                    new_packet(number, vl)
            ready = [vl for vl in range(link.vls) if node.credits[vl] and node.queues[vl]]
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
    assert all(node.credits == [ROUTER_FLITS] * link.vls for node in nodes), "credits are missing"
    assert not any(any(node.held) or any(node.partial) for node in nodes)
    assert native_api.signal("activity").get() == 0
    assert native_api.signal("dropped").get() == dropped
    assert frozen is not None
    counts["stop"] = True
    while agents and counts["done"] < network.routers:
        await session.clock.sleep(50)
    if config.management:
        assert rejects == counts["reported"]
        assert rejects + counts["lost"] == dropped
    if config.activity_counters:
        assert [counts["to_node"][router] for router, _ in network.nodes] == node_flits
    seen = {"cycles": cycle, "packets": received, "dropped": dropped, "flits": flits_seen}
    return seen | {"rejects": rejects, "tables": counts["tables"]}
