"""Networks: the refused ones, the ways of routes, and the joints of the structural Verilog."""

import re
from collections import Counter

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig, preset
from lanikai.hdl.network import Network, chain, mesh, single_router

TINY = preset(RouterConfig, "tiny")
FIVE = RouterConfig(link=LinkConfig(flit_bits=32, hop_bits=3), ports=5, input_buffer_flits=4)


def ring(count):
    return {
        "router": TINY,
        "routers": count,
        "nodes": [(i, 0) for i in range(count)],
        "links": [((i, 1), ((i + 1) % count, 2)) for i in range(count)],
    }


def walk(network, source, route):
    """The place where a packet comes out: the route taken apart as routers do it."""
    router, bits = network.nodes[source][0], network.router.link.hop_bits
    for hop in range(network.router.link.max_hops):
        place = (router, route >> hop * bits & (1 << bits) - 1)
        if place in network.nodes:
            return network.nodes.index(place), hop + 1
        router = network.neighbours[place][0]
    raise AssertionError("the route does not end")


@pytest.mark.parametrize(
    "network",
    [
        single_router(3, router=TINY),
        chain(5, router=TINY),
        chain(3, router=FIVE, nodes=(2, 1, 3)),
        mesh(4, 3, router=FIVE),
    ],
    ids=["single_router", "chain", "chain_of_several_nodes", "mesh"],
)
def test_every_route_ends_at_its_node(network):
    for source in range(len(network.nodes)):
        for destination in range(len(network.nodes)):
            end, hops = walk(network, source, network.source_route(source, destination))
            assert end == destination
            assert hops == len(network.path(source, destination))


def test_mesh_routes_are_x_then_y():
    network = mesh(4, 4, router=FIVE)
    # From (0, 1), router 4, to (2, 3), router 14: twice +x (port 1), twice +y (port 3), then the node (port
    # 0).
    assert network.path(4, 14) == [(4, 1), (5, 1), (6, 3), (10, 3), (14, 0)]
    assert network.source_route(4, 14) == 1 | 1 << 3 | 3 << 6 | 3 << 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": []}, "Network: 0 nodes: 1 to 1024"),
        ({"nodes": [(3, 0)]}, "Network: node 0: there is no router 3; routers are 0 to 2"),
        ({"nodes": [(0, 5)]}, "Network: node 0: router 0 has no port 5; ports are 0 to 2"),
        ({"nodes": [(0, 0), (0, 0)]}, "Network: node 1: port 0 of router 0 is taken by node 0"),
        ({"links": [((0, 1), (0, 1))]}, "Network: link 0: port 1 of router 0 is taken by link 0"),
        ({"links": [((0, 1), (1, 0))]}, "Network: link 0: port 0 of router 1 is taken by node 1"),
        ({"nodes": [(0, 0)]}, "Network: router 2: no port of it is connected"),
        ({}, "Network: node 2 cannot be reached from node 0: a link is missing"),
        (
            {"speed": 3},
            "Network: unknown key 'speed'; valid keys: router, routers, nodes, links, node_buffer_flits, "
            "coordinates, topology, tables",
        ),
    ],
)
def test_a_network_that_cannot_be_is_refused_by_name(changes, message):
    good = {"router": TINY, "routers": 3, "nodes": [(0, 0), (1, 0), (2, 0)], "links": [((0, 1), (1, 2))]}
    with pytest.raises(ConfigError) as error:
        Network(**good | changes)
    assert str(error.value) == message


def test_routes_that_can_deadlock_are_refused_with_the_cycle():
    """On a ring of five, two hops the same way round everywhere close the circle. On a ring of three no route has
    two."""
    with pytest.raises(ConfigError) as error:
        Network(**ring(5) | {"router": TINY.replace(routing="source")})
    message = str(error.value)
    assert message.startswith("Network: routes can deadlock, each waiting for the next: router ")
    steps = re.findall(r"router (\d+) port (\d+)", message)
    assert steps[0] == steps[-1]
    assert {router for router, _ in steps} == {"0", "1", "2", "3", "4"}
    assert len({port for _, port in steps}) == 1
    assert Network(**ring(3)).routers == 3


def test_a_route_too_long_for_the_header_is_refused():
    network = chain(9, router=TINY.replace(routing="source"))
    with pytest.raises(ConfigError) as error:
        network.source_route(0, 8)
    assert str(error.value) == (
        "Network: node 0 to node 8 is 9 routers; a route of 32-bit flits with link.hop_bits = 3 holds 8"
    )
    assert walk(network, 1, network.source_route(1, 8)) == (8, 8)


def test_a_chain_numbers_its_nodes_router_by_router():
    network = chain(3, router=FIVE, nodes=(2, 1, 3))
    assert network.nodes == ((0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2))
    # From node 1 through every router to node 5: the port to the next router comes behind the most nodes' ports.
    assert network.path(1, 5) == [(0, 3), (1, 3), (2, 2)]
    with pytest.raises(
        ConfigError, match=r"^chain: nodes = \[2, 1\]: a number of nodes for each of 3 routers$"
    ):
        chain(3, router=FIVE, nodes=(2, 1))
    with pytest.raises(ConfigError, match=r"ports = 5: a chain with 4 nodes on a router needs at least 6$"):
        chain(2, router=FIVE, nodes=(4, 1))


def test_unknown_nodes_and_too_few_ports_are_refused():
    with pytest.raises(ConfigError, match=r"^Network: there is no node 3; nodes are 0 to 2$"):
        single_router(3, router=TINY).source_route(0, 3)
    with pytest.raises(ConfigError, match=r"^RouterConfig\.ports = 3: a single router with 4 nodes needs"):
        single_router(4, router=TINY)
    with pytest.raises(ConfigError, match=r"^RouterConfig\.ports = 3: a mesh needs at least 5$"):
        mesh(2, 2, router=TINY)
    with pytest.raises(ConfigError, match=r"^mesh: 0 x 2 routers: at least 1 x 1$"):
        mesh(0, 2, router=FIVE)


def test_blocks_are_made_once():
    """There is one module for a mesh of any size, whatever the depth of the nodes' buffers."""
    assert mesh(3, 3, router=FIVE, node_buffer_flits=10).blocks == {"router": (10, 4, 4, 4, 4)}
    assert single_router(3, router=TINY, node_buffer_flits=2).blocks == {"router": (2, 2, 2)}
    mixed = Network(
        router=TINY, routers=2, nodes=((0, 0), (1, 2)), links=(((0, 1), (1, 1)),), node_buffer_flits=4
    )
    assert mixed.blocks == {"router": (4, 2, 2), "router_1": (2, 2, 4)}


def test_verilog_joins_both_ends_of_every_link():
    network = mesh(2, 2, router=FIVE)
    text = network.verilog("net")
    instances = dict(re.findall(r"  router (router\d+) \(\n(.*?)\n  \);", text, re.S))
    assert len(instances) == 4
    pins = {name: dict(re.findall(r"\.(\w+)\((.*?)\)", body)) for name, body in instances.items()}
    for (router, port), (other, far) in network.neighbours.items():
        for member in ("payload", "valid", "credit_vl", "credit_valid"):
            wire = pins[f"router{router}"][f"tx__{port}__{member}"]
            assert wire == f"router{router}_tx{port}__{member}"
            assert pins[f"router{other}"][f"rx__{far}__{member}"] == wire
    uses = Counter(wire for pin in pins.values() for wire in pin.values() if "_tx" in wire or "_rx" in wire)
    assert all(count == (1 if wire.startswith("node") else 2) for wire, count in uses.items())
    # Router 0 is the corner with neighbours at +x (port 1) and +y (port 3).
    assert pins["router0"]["connected"] == f"5'h{0b01011:02x}"
    assert pins["router0"]["rx__2__valid"] == "1'h0"
    assert "input [34:0] node0_rx__payload;" in text
    assert "output node3_rx__credit_valid;" in text
