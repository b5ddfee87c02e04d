"""Networks by their names."""

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import chain, mesh, single_router, torus, tree
from lanikai.hdl.network_named import network_named
from lanikai.hdl.topologies import TOPOLOGIES, topology_named
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.network_files.registry import FILES


@pytest.mark.parametrize(
    ("name", "ports"),
    [("router8", 8), ("mesh2x2", 5), ("chain3", 3), ("tree2x2", 3), ("ring8", 3), ("hypercube(4)", 5)],
)
@pytest.mark.parametrize("management", [False, True])
def test_routers_have_the_ports_that_the_network_needs(name, ports, management):
    """With a management port, which is port 0, there is one more."""
    router = RouterConfig(link=LinkConfig(vls=16), management=management)
    network = named_network(name, router)
    assert network.router.ports == ports + management
    assert all(port >= management for _, port in network.nodes)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("router8", "router(8)"),
        ("mesh4x3", "mesh(4x3)"),
        ("torus( 4x4 )", "torus(4x4)"),
        ("chain(routers=3)", "chain(3)"),
        ("tree2x3", "tree(2,3)"),
        ("tree(levels=3, fan_out=2)", "tree(2,3)"),
        ("ring8", "ring(8)"),
        ("hypercube(4)", "hypercube(4)"),
        ("flattened_butterfly4x4", "flattened_butterfly(4x4)"),
        ("flattened_butterfly(2x3, 2)", "flattened_butterfly(2x3,nodes=2)"),
        ("kary_tree4x2", "kary_tree(4,2)"),
        ("dragonfly(p=1,a=2,h=1)", "dragonfly(2,1,1)"),
        ("random_regular(16,4,seed=3)", "random_regular(16,4,seed=3)"),
        ("random_regular16x4", "random_regular(16,4)"),
    ],
)
def test_a_name_has_a_short_form_and_a_full_one(text, name):
    shape = topology_named(text)
    assert shape.name == name
    assert topology_named(name) == shape
    assert len(network_named(text, RouterConfig(link=LinkConfig(vls=2))).nodes) == len(shape.homes())


RANGES = ", ".join(shape.ranges for shape in TOPOLOGIES.values())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", f"no such topology; valid topologies: {RANGES}, {FILES}"),
        ("rng(8)", f"no such topology (did you mean ring(3)?); valid topologies: {RANGES}, {FILES}"),
        ("ring", "no numbers that could be read; ring(3) to ring(1024)"),
        ("ring(2)", "routers = 2: must be 3 to 1024; ring(3) to ring(1024)"),
        ("ring(8,3)", "2 parameters: at most routers; ring(3) to ring(1024)"),
        ("ring(size=3)", "no parameter 'size': it has routers; ring(3) to ring(1024)"),
        ("ring(8,routers=3)", "routers is given twice; ring(3) to ring(1024)"),
        ("ring()", "routers is missing; ring(3) to ring(1024)"),
        ("ring(eight)", "routers = 'eight': a number; ring(3) to ring(1024)"),
        ("mesh4", "two sides of 1 to 32, such as mesh(4x4); mesh1x2 to mesh32x32"),
        ("mesh4x4x4", "two sides of 1 to 32, such as mesh(4x4); mesh1x2 to mesh32x32"),
        ("mesh33x2", "two sides of 1 to 32, such as mesh(4x4); mesh1x2 to mesh32x32"),
        ("mesh1x1", "1 x 1: at least 2 routers, such as mesh(1x2); mesh1x2 to mesh32x32"),
        ("mesh(a)", "sides = 'a': numbers with x between them; mesh1x2 to mesh32x32"),
        ("router1", "nodes = 1: must be 2 to 64; router2 to router64"),
        ("router65", "nodes = 65: must be 2 to 64; router2 to router64"),
        ("tree20x2", "fan_out = 20: must be 2 to 16; tree2x2 to tree16x2 or tree2x10"),
        ("tree16x3", "16^3 nodes: at most 1024; tree2x2 to tree16x2 or tree2x10"),
        (
            "flattened_butterfly(33)",
            "1 to 3 sizes of 2 to 32, such as flattened_butterfly(4x4); flattened_butterfly(2) to "
            "flattened_butterfly(16x16,nodes=4)",
        ),
        ("kary_tree(2,10)", "n = 10: must be 2 to 9; kary_tree(2,2) to kary_tree(2,9) or kary_tree(31,2)"),
        ("dragonfly(8,4,4)", "1056 nodes: at most 1024; dragonfly(2,1,1) to dragonfly(8,3,5)"),
        (
            "random_regular(5,3)",
            "5 routers of 3 links: one of the numbers must be even; random_regular(4,2,seed=1) to "
            "random_regular(1024,16,seed=1)",
        ),
        ("hypercube(11)", "dimensions = 11: must be 1 to 10; hypercube(1) to hypercube(10)"),
    ],
)
def test_networks_without_a_name(name, message):
    with pytest.raises(ConfigError) as caught:
        named_network(name, RouterConfig())
    assert str(caught.value) == f"network = {name!r}: {message}"


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("router5", lambda router: single_router(5, router=router)),
        ("chain4", lambda router: chain(4, router=router)),
        ("tree3x2", lambda router: tree(3, 2, router=router)),
        ("mesh3x2", lambda router: mesh(3, 2, router=router)),
        ("torus4x3", lambda router: torus(4, 3, router=router)),
        ("torus1x2", lambda router: torus(1, 2, router=router)),
    ],
)
@pytest.mark.parametrize("management", [False, True])
def test_a_name_is_the_network_that_the_function_makes(name, make, management):
    router = RouterConfig(link=LinkConfig(vls=16 if management else 2), management=management)
    if management and name == "torus4x3":
        return  # a control VL has no second one for the dateline
    found = named_network(name, router)
    made = make(router.replace(ports=found.router.ports, link=found.router.link))
    assert (found.nodes, found.links, found.routers) == (made.nodes, made.links, made.routers)
    assert (found.coordinates, found.router, found.tables) == (made.coordinates, made.router, made.tables)


@pytest.mark.parametrize(
    ("vls", "more", "routing"),
    [
        (4, {}, "ring"),
        (1, {}, "source"),
        (16, {}, "source"),
        (16, {"management": True}, "source"),
        (4, {"pipelined": True}, "source"),
    ],
)
def test_a_ring_whose_routers_cannot_have_a_dateline_goes_up_and_down(vls, more, routing):
    """Nothing else is left, and the network says why."""
    network = named_network("ring(6)", RouterConfig(link=LinkConfig(vls=vls), **more))
    assert network.router.routing == routing
    assert bool(network.tables) == (routing == "source")
    if routing == "source":
        assert "up*/down*" in network.by_destination and "ring(6)'s own routing" in network.by_destination
    else:
        assert (
            network.by_destination
            == "routing ring: by destination, as ring(6) has a routing function of its own"
        )
