"""Topologies: their closed forms against counts on the graph, by networkx."""

import networkx
import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network_named import network_named
from lanikai.hdl.topologies import TOPOLOGIES, topology_named
from lanikai.hdl.topologies import random_regular as random_regular_module
from lanikai.sim.topology.bisection import counted, graph_of

ROUTER = RouterConfig(link=LinkConfig(vls=2))
SMALL = {
    "router": ["router(3)"],
    "chain": ["chain(4)", "chain(5)"],
    "tree": ["tree(2,2)", "tree(4,2)", "tree(2,3)"],
    "mesh": ["mesh(4x3)", "mesh(3x3)", "mesh(4x4)", "mesh(1x6)", "mesh(5x2)"],
    "torus": ["torus(4x3)", "torus(2x4)", "torus(4x4)"],
    "ring": ["ring(3)", "ring(7)", "ring(8)"],
    "hypercube": ["hypercube(1)", "hypercube(3)", "hypercube(4)"],
    "flattened_butterfly": [
        "flattened_butterfly(4x4)",
        "flattened_butterfly(5)",
        "flattened_butterfly(4x2,nodes=3)",
        "flattened_butterfly(2x3x2)",
    ],
    "kary_tree": ["kary_tree(2,2)", "kary_tree(2,3)", "kary_tree(4,2)"],
    "dragonfly": ["dragonfly(2,1,1)", "dragonfly(2,2,2)", "dragonfly(3,1,1)"],
    "random_regular": ["random_regular(10,3)", "random_regular(8,5,seed=2)"],
}
NAMES = [name for names in SMALL.values() for name in names]
COUNTED = [name for name in NAMES if topology_named(name).bisection is not None]


def distances(network):
    """The largest number of links between the routers of two nodes."""
    homes = {router for router, _ in network.nodes}
    found = dict(networkx.all_pairs_shortest_path_length(graph_of(network)))
    return max(found[a][b] for a in homes for b in homes)


def test_every_topology_is_here():
    assert SMALL.keys() == TOPOLOGIES.keys()
    assert all(topology_named(name).label == label for label, names in SMALL.items() for name in names)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_is_as_its_closed_forms_say(name):
    network, shape = network_named(name, ROUTER), topology_named(name)
    assert network.routers == shape.router_count
    assert len(network.nodes) == len(shape.homes())
    assert len(network.links) == len({frozenset(link) for link in shape.joined()}) == len(shape.joined())
    if shape.diameter is not None:
        assert distances(network) == shape.diameter


@pytest.mark.parametrize("name", COUNTED)
def test_the_bisection_is_the_smallest_cut_over_all_halves(name):
    assert counted(network_named(name, ROUTER)) == topology_named(name).bisection


def test_a_formula_that_is_wrong_would_be_found():
    """The counts tell close networks apart."""
    assert counted(network_named("mesh(4x3)", ROUTER)) == 3
    assert counted(network_named("mesh(3x3)", ROUTER)) == 4
    assert topology_named("mesh(3x3)").bisection is None
    assert counted(network_named("kary_tree(3,2)", ROUTER)) == 3


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("ring(256)", 256),
        ("hypercube(8)", 256),
        ("flattened_butterfly(8x8,nodes=4)", 256),
        ("kary_tree(4,4)", 256),
        ("dragonfly(6,3,3)", 342),
        ("random_regular(256,4,seed=5)", 256),
    ],
)
def test_networks_of_256_nodes_and_more_are_made(name, nodes):
    network = network_named(name, ROUTER)
    assert len(network.nodes) == nodes
    assert network.router.routing == (topology_named(name).routing or "source")


def test_routers_of_a_dragonfly_have_a_link_to_each_other_group():
    shape = topology_named("dragonfly(4,2,3)")
    between = [
        {a // shape.a, b // shape.a} for (a, _), (b, _) in shape.joined() if a // shape.a != b // shape.a
    ]
    assert sorted(map(sorted, between)) == [[a, b] for a in range(13) for b in range(a + 1, 13)]


@pytest.mark.parametrize(
    "name", ["random_regular(12,3)", "random_regular(16,4,seed=9)", "random_regular(6,5)"]
)
def test_random_graphs_are_regular_and_hang_together(name):
    graph, shape = graph_of(network_named(name, ROUTER)), topology_named(name)
    assert set(dict(graph.degree()).values()) == {shape.degree}
    assert networkx.is_connected(graph) and networkx.number_of_selfloops(graph) == 0


def test_a_seed_is_a_graph():
    """The same seed gives the same links, everywhere and always; another one gives others."""
    links = topology_named("random_regular(8,3,seed=4)").joined()
    assert links == random_regular_module.RandomRegular(routers=8, degree=3, seed=4).joined()
    assert links != topology_named("random_regular(8,3,seed=5)").joined()
    assert [(a, b) for (a, _), (b, _) in links] == FIXED


FIXED = [(0, 2), (0, 4), (0, 6), (1, 3), (1, 6), (1, 7), (2, 3), (2, 6), (3, 5), (4, 5), (4, 7), (5, 7)]


def test_a_draw_that_never_hangs_together_is_given_up(monkeypatch):
    monkeypatch.setattr(random_regular_module.RandomRegular, "_hangs_together", lambda self, pairs: False)
    with pytest.raises(
        ConfigError, match=r"^random_regular\(8,3\): no draw hangs together: give another seed$"
    ):
        random_regular_module.RandomRegular(routers=8, degree=3).joined()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": ""}, "Network: routing 'ring' is for a ring: this network has no name"),
        ({"topology": "chain(4)"}, "Network: routing 'ring' is for a ring: this network is chain(4)"),
        ({"topology": "ring(5)"}, "Network: 4 routers: ring(5) has 5"),
        ({"drop": 1}, "Network: 3 links: ring(4) has 4"),
        ({"move": 1}, "Network: link 1: ring(6) has no such link"),
        ({"nodes": ((0, 0), (1, 0))}, "Network: nodes are not where ring(4) has them: it has 4"),
        ({"tables": ((0,) * 4,) * 4}, "Network: routing 'ring' makes its own routes: `tables` must be empty"),
    ],
)
def test_a_network_that_is_not_the_topology_is_refused(changes, message):
    good = network_named("ring(6)" if "move" in changes else "ring(4)", ROUTER)
    if "drop" in changes:
        changes = {"links": good.links[1:]}
    if "move" in changes:
        links = [*good.links]
        (a, b), (c, d) = links[1], links[3]
        links[1], links[3] = (a, c), (b, d)
        changes = {"links": tuple(links)}
    with pytest.raises(ConfigError) as error:
        good.replace(**changes)
    assert str(error.value) == message
