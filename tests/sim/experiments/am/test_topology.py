"""The network of chun-1998 figure 3, and the same in small."""

from __future__ import annotations

from collections import Counter

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig, preset
from lanikai.hdl.network_checks import dependency_cycle
from lanikai.sim.experiments.am.topology import LARGE, SMALL, Shape, Subcluster, fat_tree

ROUTER = preset(RouterConfig, "lanai41")


def cables_between(network, first_connecting):
    """Links with an end at a connecting switch."""
    return [link for link in network.links if any(router >= first_connecting for router, _ in link)]


def test_the_large_network_is_that_of_the_figure():
    """92 nodes, 40 switches of 8 ports, two of which connect three subclusters with 11 cables."""
    network = fat_tree(LARGE, router=ROUTER)
    assert (len(network.nodes), network.routers, network.router.ports) == (92, 40, 8)
    cables = cables_between(network, 38)
    assert len(cables) == 11
    parts = Counter(min(router for router, _ in link) // 13 for link in cables)
    assert parts == {0: 4, 1: 4, 2: 3}
    assert network.longest_path == 7 <= network.router.link.max_hops == 12


@pytest.mark.parametrize(("shape", "nodes", "routers"), [(LARGE, 92, 40), (SMALL, 12, 16)])
def test_no_route_can_deadlock_and_each_goes_up_then_down(shape, nodes, routers):
    network = fat_tree(shape, router=ROUTER)
    assert (len(network.nodes), network.routers) == (nodes, routers)
    assert dependency_cycle(network) is None
    assert network.router.routing == "source"
    for source in range(nodes):
        for destination in range(nodes):
            way = [router for router, _ in network.path(source, destination)]
            assert len(way) in (1, 3, 5, 7) and len(way) == len(set(way))


def test_ways_between_subclusters_spread_over_all_cables():
    """Every cable that leads out of a subcluster has destinations, in both directions."""
    network = fat_tree(LARGE, router=ROUTER)
    used = Counter()
    for source in range(92):
        for destination in range(92):
            used.update(place for place in network.path(source, destination))
    for link in cables_between(network, 38):
        assert all(used[place] > 100 for place in link), (link, [used[place] for place in link])


def test_a_switch_with_too_few_ports_is_named():
    shape = Shape((Subcluster((7, 1), middles=2, tops=1, uplinks=2, cables=((0, 0),)),), connecting=1)
    with pytest.raises(ConfigError, match=r"router 0 has no port 8"):
        fat_tree(shape, router=ROUTER)
