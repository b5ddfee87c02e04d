"""Discovery on plain Python networks: the map is the real network, for random ones and such as are made to confuse."""

from random import Random

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig, preset
from lanikai.sim.experiments.am.topology import LARGE, fat_tree
from lanikai.sim.host.am.mapper.discover import discover
from lanikai.sim.host.am.mapper.network_map import Host, MapError, NetworkMap
from lanikai.sim.host.am.mapper.search import Search
from lanikai.sim.host.am.mapper.words import WordFormat
from support.sim.plain_network import (
    PlainNetwork,
    PlainProber,
    random_network,
    regular_tree,
    run,
    same_ports_network,
)


def check(network, node=None, **lossy):
    """Map a network, and compare. Returns the search, None if routes are too short for all of it."""
    node = min(network.homes) if node is None else node
    search = Search(PlainProber(network, node, **lossy))
    found, right = run(discover(search)), network.map(node)
    if found.beyond:
        assert search.cut
        return None
    assert found.canonical() == right.canonical()
    assert found.tag == right.tag
    assert network.longest <= network.form.max_hops
    return search


def reached(networks):
    """Check all networks; most of them are within the reach of routes."""
    searches = [check(network) for network in networks]
    assert sum(search is not None for search in searches) >= 0.8 * len(searches)
    return searches


def drawn(kind, count, *, first=0):
    """Random networks of a kind, a seed each; the log has the seeds."""
    print(f"{kind.__name__}: seeds {first} to {first + count - 1}")
    return [kind(Random(seed)) for seed in range(first, first + count)]


def many_hosts(random):
    switches = random.randint(1, 40)
    hosts = random.randint(max(1, switches // 2), min(128, 3 * switches))
    return random_network(
        random, switches=switches, hosts=hosts, extra=random.randint(switches // 2, 3 * switches)
    )


def few_hosts(random):
    switches, ports = random.randint(2, 14), random.choice([3, 4, 8])
    return random_network(
        random,
        switches=switches,
        hosts=random.randint(1, 2),
        extra=random.randint(0, 4 * switches),
        ports=ports,
    )


def same_ports(random):
    switches = random.randint(2, 40)
    return same_ports_network(
        random, switches=switches, hosts=random.randint(1, switches), cables=random.randint(0, 3 * switches)
    )


KINDS = {"many hosts": many_hosts, "few hosts": few_hosts, "same ports": same_ports}


@pytest.mark.parametrize("kind", KINDS)
def test_random_networks(kind):
    networks = [network for network in drawn(KINDS[kind], 25) if network.homes]
    reached(networks)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_hundreds_of_random_networks(kind):
    networks = [network for network in drawn(KINDS[kind], 300, first=1000) if network.homes]
    reached(networks)


def test_forty_switches_and_a_hundred_hosts():
    """The map has every cable, from port to port, whichever host makes it."""
    for seed in range(3):
        network = random_network(Random(seed), switches=40, hosts=100, extra=60)
        search = check(network)
        other = check(network, max(network.homes))
        assert len(network.homes) == 100 and len(search.switches) == len(other.switches) == 40
        assert search.asked < 100 * 40


def test_the_network_of_figure_3():
    """40 switches and 92 nodes (chun-1998 figure 3), whose subclusters no test reaches through the tops: they are found
    from afar."""
    plain = fat_tree(LARGE, router=preset(RouterConfig, "lanai41"))
    for seed in range(2):
        print("seed", seed)
        random = Random(seed)
        deal = [random.sample(range(8), 8) for _ in range(plain.routers)]

        def dealt(place, deal=deal):
            return place[0], deal[place[0]][place[1]]

        ends = {dealt(here): dealt(there) for here, there in plain.neighbours.items()}
        ends |= {dealt(place): Host(node) for node, place in enumerate(plain.nodes)}
        search = check(PlainNetwork(ends, routers=plain.routers, ports=8))
        assert search is not None and len(search.switches) == 40 and len(search.hosts) == 92


@pytest.mark.parametrize("node", [0, 40])
def test_the_regular_network_of_figure_3(node):
    """As it is wired in `am-permutations`: two subclusters have equal tops, which no route tells apart. All else is
    told, by the last port that a route reaches."""
    plain = fat_tree(LARGE, router=preset(RouterConfig, "lanai41"))
    ends = dict(plain.neighbours) | {place: Host(number) for number, place in enumerate(plain.nodes)}
    network = PlainNetwork(ends, routers=plain.routers, ports=8)
    assert check(network, node) is not None and network.longest == network.form.longest
    right = network.map(node)
    assert (right.switches, len(right.hosts)) == (40, 92) and sorted(right.sizes) == [1] * 36 + [2, 2]


def test_a_port_that_no_route_tells_ends_beyond():
    """Routes of 10 hops are too short for the regular network: the map says where it ends, and all else is right."""
    plain = fat_tree(LARGE, router=preset(RouterConfig, "lanai41"))
    ends = dict(plain.neighbours) | {place: Host(number) for number, place in enumerate(plain.nodes)}
    network = PlainNetwork(ends, routers=plain.routers, ports=8, max_hops=10)
    assert check(network) is None


def test_twins_have_one_kind():
    """Middles and roots of a regular tree are told apart by no route: the map has how many of each there are."""
    network = regular_tree(leaves=4, middles=2, roots=3, hosts=2)
    search = check(network)
    found = run(discover(Search(PlainProber(network))))
    assert sorted(found.sizes) == [1, 1, 1, 1, 2, 3] and found.switches == 9 and not found.rigid
    with pytest.raises(MapError, match="twins"):
        found.cables()
    assert search.hosts.keys() == set(range(8))


def test_twins_with_one_difference_are_told_apart():
    """A host at one of the roots parts the roots; a dead cable from it to a middle parts the middles, too."""
    network = regular_tree(leaves=3, middles=2, roots=2, hosts=1)
    network.join((6, 7), Host(99))
    check(network)
    assert sorted(run(discover(Search(PlainProber(network)))).sizes) == [1, 1, 1, 1, 1, 2]
    network.cut((6, 0))
    check(network)
    assert run(discover(Search(PlainProber(network)))).rigid


def test_cables_are_those_of_the_network():
    """Without parallel cables and loops the cables are exact; parallel ones are paired in order."""
    ends = {(0, 0): Host(0), (1, 0): Host(1), (0, 3): (1, 5), (1, 5): (0, 3), (0, 4): (1, 1), (1, 1): (0, 4)}
    ends |= {(1, 6): (1, 7), (1, 7): (1, 6)}
    found = run(discover(Search(PlainProber(PlainNetwork(ends, routers=2, ports=8)))))
    assert found.cables() == [((0, 3), (1, 1)), ((0, 4), (1, 5)), ((1, 6), (1, 7))]
    assert found.canonical() == NetworkMap.of_ends(ends, 2, 8, (0, 0)).canonical()


def test_lost_packets_change_nothing():
    """Each fiftieth packet is lost, and each question asked up to five times: the map is right."""
    for seed in range(8):
        print("seed", seed)
        random = Random(seed)
        network = random_network(random, switches=random.randint(2, 30), hosts=30, extra=25)
        check(network, loss=0.02, attempts=5, random=random)


def test_dead_cables_and_hosts_are_left_out():
    for seed in range(8):
        print("seed", seed)
        random = Random(seed)
        network = random_network(random, switches=20, hosts=40, extra=25)
        for place in random.sample(sorted(network.ends), 12):
            if place in network.ends and network.ends[place] != Host(0):
                network.cut(place)
        network.deaf |= set(random.sample(range(1, 40), 5))
        check(network)


def test_a_network_too_deep_for_routes_ends_beyond():
    """A chain of 20 switches: what routes reach is right, and the map says where it ends."""
    ends = {(0, 0): Host(0)}
    for router in range(19):
        ends[router, 1], ends[router + 1, 2] = (router + 1, 2), (router, 1)
    found = run(discover(Search(PlainProber(PlainNetwork(ends, routers=20, ports=8)))))
    assert found.beyond and 3 < found.switches < 12


def test_routes_need_an_end():
    """With 3 bits a hop every number names one of 8 ports, and a packet without hops left could go round for ever."""
    with pytest.raises(ConfigError, match="hop_bits = 3"):
        WordFormat.of(RouterConfig(ports=8).replace(link=RouterConfig().link.replace(hop_bits=3)))
    form = WordFormat.of(RouterConfig(ports=8))
    assert form.longest == 11 and form.route((1, 2)) == 0xF21
    with pytest.raises(ValueError, match="at most 11"):
        form.route((0,) * 12)
