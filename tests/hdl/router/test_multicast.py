"""Multicast: every node of a set gets each packet once, whole and in order, and nobody is held up by a copy."""

import random
from types import SimpleNamespace

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import Network, mesh, single_router
from lanikai.hdl.router.multicast.sets import (
    check_packet,
    copies,
    reach_of,
    route_to_set,
    set_mark,
    set_route,
)
from lanikai.hdl.router.router import Router
from support.hdl.multicast import SetPacket, random_packets, run

DEPTH = 6


def router(**changes) -> RouterConfig:
    link = LinkConfig(flit_bits=32, vls=changes.pop("vls", 2), hop_bits=3)
    sizes = {"ports": 4, "routing": "table", "input_buffer_flits": DEPTH, "output_buffer_flits": DEPTH}
    return RouterConfig(**({"link": link, "multicast_nodes": 4} | sizes | changes))


def one_router(**changes) -> Network:
    return single_router(4, router=router(**changes), node_buffer_flits=5)


def grid(width, height, **changes) -> Network:
    config = router(ports=5, routing="auto", multicast_nodes=width * height, **changes)
    return mesh(width, height, router=config, node_buffer_flits=5)


@pytest.mark.parametrize("flits", [1, DEPTH])
def test_copies_to_idle_outputs_leave_together_as_soon_as_one_packet_would(flits):
    """A header takes five cycles through an idle router, to all ports of its set."""
    packet = SetPacket(number=1, source=0, nodes=(1, 2, 3), flits=flits)
    seen = run(one_router(), [packet])
    start = seen.sent[1][0]
    assert {node: times for (_, node), times in seen.copies.items()} == {
        node: (start + 5, start + 5 + flits - 1) for node in (1, 2, 3)
    }


@pytest.mark.parametrize("seed", range(4))
def test_every_node_of_a_set_gets_a_packet_once_whole_and_in_order(seed):
    """Half of the packets go to a random set, which may have the sender in it."""
    chance = random.Random(seed)
    print(f"seed {seed}")
    network = one_router(vls=chance.choice((1, 2, 3)))
    packets = random_packets(network, chance, 60, longest=DEPTH, share=0.5, plain=False)
    run(network, packets, stall=(0, 0.3, 0.8, 0)[seed], gap=(0, 0.4, 0, 0.2)[seed], seed=seed)


def test_trees_and_packets_to_one_node_share_a_mesh():
    """All nodes send at once, to sets and to one node, on ways of dimension order, into slow receivers."""
    network, seed = grid(2, 2, vls=1), 5
    print(f"seed {seed}")
    packets = random_packets(network, random.Random(seed), 40, longest=DEPTH, share=0.5, plain=True)
    run(network, packets, stall=0.5, seed=seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_a_saturated_mesh_of_nine_does_not_hang(seed):
    network = grid(3, 3)
    packets = random_packets(network, random.Random(seed), 250, longest=DEPTH, share=0.6, plain=True)
    run(network, packets, stall=(0, 0.7, 0.3, 0)[seed], seed=seed, limit=20_000)


SHUT = 150


@pytest.mark.parametrize(("shut", "free"), [(1, 2), (2, 1)])
def test_a_copy_that_waits_holds_no_other_output(shut, free):
    """A node takes nothing. Two packets fill its buffer and stand in that of the router's output, which no packet owns
    any more. Then one comes for that node and another one, and one for the other node alone."""
    packets = [
        SetPacket(number=1, source=3, nodes=(shut,), flits=DEPTH),
        SetPacket(number=2, source=3, nodes=(shut,), flits=DEPTH - 2),
        SetPacket(number=3, source=0, nodes=(1, 2), flits=DEPTH, start=30),
        SetPacket(number=4, source=3, nodes=(free,), flits=DEPTH, start=50),
    ]
    seen = run(one_router(), packets, shut={shut: SHUT})
    assert seen.copies[4, free][1] == seen.sent[4][0] + 5 + DEPTH - 1 < SHUT
    assert seen.copies[3, shut][0] > SHUT
    # The first of its ports is its lead: it goes there, or waits for it, before it goes to the second.
    assert (seen.copies[3, free][0] > SHUT) == (shut == 1)


def test_a_copy_goes_where_there_is_room_while_another_output_is_taken():
    """A long packet to node 1 owns that output, and cannot go on."""
    packets = [
        SetPacket(number=1, source=3, nodes=(1,), flits=4 * DEPTH),
        SetPacket(number=2, source=0, nodes=(1, 2), flits=DEPTH, start=40),
    ]
    seen = run(one_router(), packets, shut={1: SHUT})
    assert seen.copies[2, 2] == (seen.sent[2][0] + 5, seen.sent[2][0] + 5 + DEPTH - 1)
    assert seen.copies[2, 1][0] > SHUT


def test_sets_that_cross_do_not_wait_for_each_other():
    """Packets of all inputs to all outputs, again and again on one VL: each wants what others have."""
    packets = [SetPacket(number=n, source=n % 4, nodes=(0, 1, 2, 3), flits=DEPTH) for n in range(16)]
    seen = run(one_router(vls=1), packets)
    # Every output carries 16 packets, each input one after the other.
    assert all(flits == 16 * DEPTH for flits in seen.flits.values())


@pytest.mark.parametrize("connected", [0b0111, 0b1000])
def test_a_set_behind_no_port_that_leads_somewhere_is_thrown_away(connected):
    """Node 2 is behind port 2, and no port leads to node 3."""
    config = router(vls=1)
    dut, seen = Router(config), []

    async def bench(ctx):
        ctx.set(dut.connected, connected)
        for port in range(3):
            ctx.set(dut.reach[port], 1 << port)
        for nodes in ((3,), (2, 3)):
            route = set_route(config, nodes)
            ctx.set(dut.rx[0].payload, {"data": route << 8, "vl": 0, "head": 1, "tail": 1})
            ctx.set(dut.rx[0].valid, 1)
            await ctx.tick()
            ctx.set(dut.rx[0].valid, 0)
            for _ in range(20):
                seen.extend(p for p in range(4) if ctx.get(dut.tx[p].valid))
                await ctx.tick()
        assert ctx.get(dut.dropped) == (1 if connected == 0b0111 else 2)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == ([2] if connected == 0b0111 else [])


def test_copies_part_the_set_among_the_ports():
    """No node twice, none left out: whatever the set, along the whole way, and by the way of a packet to it alone."""
    network = grid(3, 3)
    chance = random.Random(1)
    for _ in range(200):
        source = chance.randrange(9)
        nodes = chance.sample(range(9), chance.randint(1, 9))
        found: dict[int, list[tuple[int, int]]] = {}
        pending = [(*network.nodes[source], route_to_set(network, nodes), [])]
        while pending:
            at, _, route, way = pending.pop()
            for port, left in copies(network.router, reach_of(network, at), route).items():
                gone = [*way, (at, port)]
                if (at, port) in network.nodes:
                    node = network.nodes.index((at, port))
                    assert left == route_to_set(network, [node]) and node not in found
                    found[node] = gone
                else:
                    pending.append((*network.neighbours[at, port], left, gone))
        assert found == {node: network.path(source, node) for node in nodes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"allocator": "islip"}, "allocator = 'islip': must be 'separable'"),
        ({"vl_arbiter": "table_fast"}, "vl_arbiter = 'table_fast': must be 'round_robin'"),
        ({"vl_selection": "any"}, "vl_selection = 'any': must be 'same'"),
        ({"header_lookahead": True}, "header_lookahead = True: must be False"),
        ({"activity_counters": True}, "activity_counters = True: must be False"),
        ({"status_outputs": True}, "status_outputs = True: must be False"),
        ({"power_budget": 100}, "power_budget = 100: must be 0"),
        (
            {"multicast_nodes": 24},
            "the route of 32-bit flits names at most 23",
        ),
        ({"link": LinkConfig(restart=True)}, "link.restart = True: must be False"),
        ({"link": LinkConfig(vls=16), "management": True}, "management = True: must be False"),
    ],
)
def test_what_a_router_with_multicast_does_not_have_is_refused(changes, words):
    nodes = changes.get("multicast_nodes", 4)
    with pytest.raises(ConfigError) as error:
        router(**changes)
    assert f"multicast_nodes = {nodes}: {words}" in str(error.value)


def test_a_pipelined_router_with_multicast_is_refused():
    with pytest.raises(ConfigError, match="multicast_nodes = 4: pipelined = True: must be False"):
        RouterConfig(multicast_nodes=4, pipelined=True)


@pytest.mark.parametrize(
    ("routing", "words"),
    [
        ("source", "routing 'source' does not go by the router and the destination alone"),
        ("west_first", "routing 'west_first' does not go by the router and the destination alone"),
        (
            "kary_tree",
            "routing 'kary_tree' uses all 24 route bits of 32-bit flits, and a set needs one for its mark",
        ),
    ],
)
def test_routing_by_more_than_the_place_is_refused(routing, words):
    with pytest.raises(ConfigError) as error:
        Router(router(ports=5, routing=routing))
    assert str(error.value) == f"RouterConfig.multicast_nodes = 4: {words}"


def test_what_cannot_be_sent_is_refused():
    network = SimpleNamespace(router=router(), nodes=[(0, 0), (0, 1)])
    for ask, words in (
        (lambda: route_to_set(network, [0, 2]), "multicast: there is no node 2; nodes are 0 to 1"),
        (lambda: set_route(router(), []), "multicast: the set of nodes is empty"),
        (lambda: set_route(router(), [4]), "multicast: node 4: sets name nodes 0 to 3 (multicast_nodes)"),
        (
            lambda: set_route(router(multicast_nodes=0), [1]),
            "RouterConfig.multicast_nodes = 0: these routers have no multicast",
        ),
        (
            lambda: check_packet(router(output_buffer_flits=5), 6),
            "multicast: a packet of 6 flits: at most 5, as it must fit whole into the input buffer (6 flits) and the "
            "output buffer (5) of a VL",
        ),
    ):
        with pytest.raises(ConfigError) as error:
            ask()
        assert str(error.value) == words
    check_packet(router(), DEPTH)


def test_the_mark_is_above_the_set_and_above_what_routing_looks_at():
    assert set_mark(router()) == 10
    assert set_mark(router(multicast_nodes=16)) == 16
    assert set_route(router(multicast_nodes=16), [0, 15]) == 1 << 16 | 1 << 15 | 1
