"""Networks that route by destination: the ways of packets, the refused networks, and their Verilog."""

import re
from graphlib import TopologicalSorter
from itertools import pairwise
from random import Random
from time import process_time

import numpy as np
import pytest
from lanikai.hdl import network as network_module
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import Network, chain, mesh, single_router, torus, tree
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.router.routing.dimension_order import DimensionOrderRouting
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

LINK = LinkConfig(flit_bits=64, vls=16, hop_bits=3)
FIVE = RouterConfig(link=LinkConfig(flit_bits=32, hop_bits=3), ports=5)
SIX = RouterConfig(link=LINK, ports=6, management=True)
TABLE = RouterConfig(link=LinkConfig(flit_bits=32, hop_bits=3), ports=3, routing="table")


def test_dimension_order_paths_are_those_of_source_routes():
    """The ports are those of the shortest paths of a mesh, on one with other sides."""
    by_source, by_order = mesh(4, 3, router=FIVE), mesh(4, 3, router=FIVE.replace(routing="dimension_order"))
    for source in range(12):
        for destination in range(12):
            assert by_order.path(source, destination) == by_source.path(source, destination)
            assert by_order.source_route(source, destination) == destination % 4 | destination // 4 << 5


def test_table_routes_hold_the_node_and_tables_its_port():
    network = chain(4, router=TABLE)
    assert [network.source_route(0, node) for node in range(4)] == [0, 1, 2, 3]
    assert network.forwarding_table(1) == [2, 0, 1, 1]


def test_management_moves_every_port_up_and_agents_have_routes():
    network = mesh(2, 2, router=SIX)
    assert network.path(0, 3) == [(0, 2), (1, 4), (3, 1)]
    # From router 1: y + 1 at port 4, then the node at port 1.
    assert network.route_from(1, 3) == 4 | 1 << 3
    assert single_router(2, router=SIX).nodes == ((0, 1), (0, 2))
    with pytest.raises(ConfigError, match=r"^RouterConfig\.ports = 5: a mesh needs at least 6$"):
        mesh(2, 2, router=SIX.replace(ports=5))
    with pytest.raises(ConfigError, match=r"^Network: node 0: port 0 of router 0 is its management port$"):
        Network(router=SIX, nodes=((0, 0),))


def test_trees_join_every_pair_of_leaves():
    network = tree(2, 3, router=TABLE)
    assert (network.routers, len(network.nodes)) == (7, 8)
    assert network.path(0, 7) == [(3, 2), (1, 2), (0, 1), (2, 1), (6, 1)]
    assert network.path(0, 1) == [(3, 1)]
    assert len(tree(3, 1, router=TABLE).nodes) == 3
    with pytest.raises(ConfigError, match=r"^RouterConfig\.ports = 3: a tree needs at least 4$"):
        tree(3, 2, router=TABLE)
    with pytest.raises(ConfigError, match=r"^tree: fan_out = 0, levels = 1: at least 1 each$"):
        tree(0, 1, router=TABLE)


def ring(tables):
    return {
        "router": TABLE,
        "routers": 4,
        "nodes": [(i, 0) for i in range(4)],
        "links": [((i, 1), ((i + 1) % 4, 2)) for i in range(4)],
        "tables": tables,
    }


def test_tables_that_can_deadlock_are_refused_with_the_cycle():
    """The tables go all the way round one way on a ring. With routes that never cross from router 3 to router 0 it is
    built."""
    clockwise = [[0 if node == router else 1 for node in range(4)] for router in range(4)]
    with pytest.raises(ConfigError) as error:
        Network(**ring(clockwise))
    steps = re.findall(r"router (\d+) port (\d+)", str(error.value))
    assert str(error.value).startswith("Network: routes can deadlock, each waiting for the next: ")
    assert steps[0] == steps[-1] and {router for router, _ in steps} == set("0123")
    straight = [
        [0 if node == router else 1 if node > router else 2 for node in range(4)] for router in range(4)
    ]
    network = Network(**ring(straight))
    assert network.path(3, 0) == [(3, 2), (2, 2), (1, 2), (0, 0)]
    assert network.forwarding_table(3) == straight[3]
    # Two routers that send a node's packets to each other: a loop is a cycle too.
    straight[1][3], straight[2][3] = 1, 2
    with pytest.raises(
        ConfigError, match=r"deadlock, each waiting for the next: router 1 port 1 -> router 2 port 2"
    ):
        Network(**ring(straight))


def graph(chance, routers, chords):
    """A ring of routers with a node each, and links across at random."""
    links = [((i, 1), ((i + 1) % routers, 2)) for i in range(routers)]
    free = {i: [3, 4] for i in range(routers)}
    for _ in range(chords):
        a, b = chance.sample(range(routers), 2)
        if free[a] and free[b]:
            links.append(((a, free[a].pop(0)), (b, free[b].pop(0))))
    return {"routers": routers, "nodes": [(i, 0) for i in range(routers)], "links": links}


@pytest.mark.parametrize(
    ("routers", "chords", "routing"),
    [(9, 0, "source"), (40, 0, "table"), (60, 30, "source"), (150, 15, "table")],
)
def test_any_graph_has_routes_that_cannot_deadlock(routers, chords, routing):
    """Where shortest paths could deadlock, all ways go up and then down. Where they do not fit a header, routers know
    them."""
    router = FIVE.replace(link=LinkConfig(flit_bits=64, hop_bits=3))
    values = graph(Random(7), routers, chords)
    network = Network(router=router, **values)
    assert network.router.routing == routing and len(network.tables) == routers
    assert network.by_destination.endswith("ways go up*/down*, as shortest ones could deadlock")
    assert routing == "source" or network.router.forwarding_entries >= routers
    # All nodes are reached, and the links that follow each other on a way have an order.
    needs = {}
    for source in range(routers):
        for destination in set(range(0, routers, 3)) - {source}:
            way = network.path(source, destination)
            assert way[-1] == (destination, 0) and len(set(way)) == len(way)
            for before, after in pairwise(way):
                needs.setdefault(before, set()).add(after)
    assert list(TopologicalSorter(needs).static_order())
    with pytest.raises(ConfigError, match="deadlock"):
        Network(router=router.replace(routing="table", forwarding_entries=routers), **values)
    again = Network(**network.model_dump(mode="json"))
    assert again == network and again.by_destination == network.by_destination


def test_a_graph_with_long_ways_goes_by_tables():
    """A chain's shortest paths cannot deadlock: its tables have them."""
    network = chain(20, router=FIVE.replace(link=LinkConfig(flit_bits=64, hop_bits=3)))
    assert network.router.routing == "table" and not network.tables
    assert network.by_destination == (
        "routing table: by destination, as the longest way has 20 routers and a source route holds 16"
    )
    assert network.source_route(0, 19) == 19 and len(network.path(0, 19)) == 20


def test_what_agents_send_can_deadlock_too():
    """On a ring of 6 with nodes on every other router there are three ways of two hops from node to node, which do not
    meet.

    The agents of the routers between them go three hops, and close the ring.
    """
    network = {
        "router": SIX.replace(management=False),
        "routers": 6,
        "nodes": [(router, 3) for router in (0, 2, 4)],
        "links": [((i, 1), ((i + 1) % 6, 2)) for i in range(6)],
    }
    Network(**network)
    with pytest.raises(ConfigError) as error:
        Network(**network | {"router": SIX.replace(routing="source")})
    ring_of_six = " -> ".join(f"router {router % 6} port 1" for router in range(7))
    assert str(error.value) == f"Network: routes can deadlock, each waiting for the next: {ring_of_six}"
    assert len(Network(**network | {"router": SIX}).tables) == 6
    # A router without a row for a node sends it nothing.
    links = (((0, 1), (1, 2)), ((0, 4), (2, 2)))
    rows = ((3, 4), (-1, -1), (2, 3))
    Network(router=SIX, routers=3, nodes=((0, 3), (2, 3)), links=links, tables=rows)


@pytest.mark.parametrize(
    ("router", "node", "port", "message"),
    [
        (1, 3, -1, "table of router 1: node 3 cannot be reached"),
        (1, 3, 0, "table of router 1: port 0 does not lead to node 3"),
        (1, 3, 7, "table of router 1: port 7 does not lead to node 3"),
    ],
)
def test_a_table_that_leads_off_the_network_is_refused_by_name(router, node, port, message):
    straight = [[0 if n == r else 1 if n > r else 2 for n in range(4)] for r in range(4)]
    straight[router][node] = port
    with pytest.raises(ConfigError) as error:
        Network(**ring(straight))
    assert str(error.value) == f"Network: {message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"coordinates": ()},
            "routing 'dimension_order' is for a mesh: routers of this network have no coordinates",
        ),
        ({"coordinates": ((0, 0), (1, 0))}, "2 coordinates: one for each of 4 routers"),
        ({"coordinates": ((0, 0), (1, 0), (0, 1), (40, 1))}, "router 3: coordinates 40, 1: 0 to 31"),
        (
            {"coordinates": ((0, 0), (1, 0), (0, 1), (1, 0))},
            "router 3: coordinates 1, 0 are those of router 1",
        ),
        (
            {"coordinates": ((1, 0), (0, 0), (0, 1), (1, 1))},
            "router 0: port 2 must be linked to router 1, for dimension order",
        ),
        (
            {"nodes": ((0, 0), (1, 0), (2, 0), (3, 1))},
            "node 3: port 1 of router 3: dimension order wants it at port 0",
        ),
    ],
)
def test_dimension_order_needs_its_mesh(changes, message):
    good = mesh(2, 2, router=FIVE.replace(routing="dimension_order"))
    with pytest.raises(ConfigError) as error:
        good.replace(**changes)
    assert str(error.value) == f"Network: {message}"


def test_a_table_that_leads_to_a_router_without_a_row_is_refused():
    with pytest.raises(ConfigError) as error:
        Network(
            router=TABLE,
            routers=3,
            nodes=((0, 0), (2, 0)),
            links=(((0, 1), (1, 1)), ((1, 2), (2, 2))),
            tables=((0, 1), (1, -1), (2, 0)),
        )
    assert str(error.value) == (
        "Network: table of router 0: port 1 leads to router 1, which has no port for node 1"
    )


def test_too_many_nodes_for_a_table_are_refused():
    with pytest.raises(ConfigError) as error:
        chain(4, router=TABLE.replace(forwarding_entries=3))
    assert str(error.value) == ("Network: 4 nodes: forwarding tables have 3 rows (router.forwarding_entries)")


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ((None, 0), "router 0 has no port for node 0"),
        ((2, 0), "router 0 sends packets to node 0 to port 2, which does not lead there"),
        ((0, 1), "router 0 sends packets to node 0 from VL 0 on VL 1, without `changes_vl`"),
    ],
)
def test_a_function_that_loses_packets_is_refused_by_name(monkeypatch, answer, fault):
    """All answers of a routing function are checked, for every way of every packet."""
    wrong = type("Wrong", (DimensionOrderRouting,), {"decide": staticmethod(lambda config, arrival: answer)})
    monkeypatch.setitem(ROUTING, "dimension_order", wrong)
    with pytest.raises(ConfigError) as error:
        mesh(2, 2, router=FIVE.replace(routing="dimension_order"))
    assert str(error.value) == f"Network: routing 'dimension_order': {fault}"


@pytest.mark.parametrize("routing", ["dimension_order", "torus"])
def test_the_step_of_many_packets_is_that_of_each(routing):
    """The numpy step decides as the twin of the hardware does, packet by packet."""
    random = Random(4)
    for width, height in ((5, 4), (1, 7), (8, 3), (2, 2)):
        link = LINK.replace(vls=6)
        if routing == "torus":
            router = FIVE.replace(routing=routing, vl_selection="routing", link=link)
            network = torus(width, height, router=router)
        else:
            network = mesh(width, height, router=FIVE.replace(routing=routing, link=link))
        function, size = ROUTING[routing], width * height
        assert function.steps() == function.next_ports
        cases = [
            [random.randrange(most) for _ in range(400)]
            for most in (size, network.router.ports, network.router.data_vls, size)
        ]
        ports, vls = function.next_ports(network, *(np.array(case, np.int32) for case in cases))
        assert list(zip(ports.tolist(), vls.tolist(), strict=True)) == [
            function.next_port(network, *case) for case in zip(*cases, strict=True)
        ]


def test_a_class_that_decides_anew_is_followed_packet_by_packet():
    """A step in numpy that a class inherits says nothing of what the class decides."""
    other = type("Other", (DimensionOrderRouting,), {"decide": DimensionOrderRouting.decide})
    assert other.steps() != other.next_ports
    same = type("Same", (DimensionOrderRouting,), {})
    assert same.steps() == same.next_ports


def test_networks_of_1024_nodes_are_checked_within_seconds():
    """The check for deadlock follows packets to all nodes at once."""
    began = process_time()
    router = FIVE.replace(link=LINK.replace(vls=2))
    mesh(32, 32, router=router.replace(routing="dimension_order"))
    torus(32, 32, router=router.replace(routing="torus", vl_selection="routing"))
    tree(2, 10, router=router.replace(routing="table", forwarding_entries=1024))
    assert process_time() - began < 20


def test_a_network_is_checked_once(monkeypatch):
    """It is not followed through again where it becomes part of a configuration; another one is."""
    network, calls = mesh(3, 2, router=FIVE), []
    monkeypatch.setattr(network_module, "waiting_cycle", lambda found: calls.append(found))
    assert TrafficNetworkConfig(network=network).network == network and not calls
    network.replace(node_buffer_flits=5)
    assert len(calls) == 1


def test_verilog_has_positions_and_agents():
    """There is one block for all: each instance is told its place, and has its agent's port at the top."""
    text = mesh(3, 2, router=SIX.replace(routing="dimension_order")).verilog("net")
    positions = [int(bits, 16) for bits in re.findall(r"\.position\(20'h([0-9a-f]+)\)", text)]
    assert positions == [x | y << 5 | 2 << 10 | 1 << 15 for y in range(2) for x in range(3)]
    for router in range(6):
        assert f"input [57:0] router{router}_agent__request;" in text
        assert f".agent__response(router{router}_agent__response)" in text
    assert "agent" not in mesh(3, 2, router=FIVE).verilog("net")
