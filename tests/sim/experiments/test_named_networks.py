"""Networks by their names."""

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.sim.experiments.measure.named_networks import named_network


@pytest.mark.parametrize(("name", "ports"), [("router8", 8), ("mesh2x2", 5), ("chain3", 3), ("tree2x2", 3)])
@pytest.mark.parametrize("management", [False, True])
def test_routers_have_the_ports_that_the_network_needs(name, ports, management):
    """With a management port, which is port 0, there is one more."""
    router = RouterConfig(link=LinkConfig(vls=16), management=management)
    network = named_network(name, router)
    assert network.router.ports == ports + management
    assert all(port >= management for _, port in network.nodes)
