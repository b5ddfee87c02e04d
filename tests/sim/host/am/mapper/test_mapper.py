"""Mappers with agents on plain networks: routes, elections, changes, and deaths at every step."""

from random import Random

import pytest
from lanikai.hdl.config import RouterConfig
from lanikai.sim.host.am.mapper.config import MapperConfig
from lanikai.sim.host.am.mapper.network_map import Host
from lanikai.sim.host.am.mapper.routes import deadlocks, order_after, to_withdraw, up_down_words
from lanikai.sim.host.am.mapper.wire import MOST_ROUTES, Kind, MapPacket
from support.sim.mapped_nodes import MappedNodes
from support.sim.plain_network import PlainNetwork, random_network, regular_tree


def ring(switches, hosts):
    """A ring of switches with hosts on each: shortest routes round it could deadlock."""
    ends = {}
    for router in range(switches):
        there = (router + 1) % switches
        ends[router, 6], ends[there, 7] = (there, 7), (router, 6)
        for host in range(hosts):
            ends[router, host] = Host(router * hosts + host)
    return PlainNetwork(ends, routers=switches, ports=8)


def play(nodes, story):
    """Run a story in the nodes' world."""
    nodes.world.run(story, limit=10**10)
    assert nodes.circles == 0


@pytest.mark.parametrize(
    "make", [lambda: ring(5, 2), lambda: regular_tree(leaves=3, middles=2, roots=2, hosts=2)]
)
def test_routes_lead_everywhere_and_cannot_deadlock(make):
    nodes = MappedNodes(make(), Random(1), look_every=7)

    async def story():
        await nodes.until_settled()
        words = nodes.words()
        assert deadlocks(nodes.network.map(), words) is None
        assert len(words) == len(nodes.network.homes) * (len(nodes.network.homes) - 1)

    play(nodes, story())


def test_a_host_that_returns_has_the_present_routes_in_time():
    """It keeps its old routes until then: the rest of a look, a rest, a look, a search, and the routes of all hosts."""
    network = ring(4, 2)
    nodes = MappedNodes(network, Random(4), look_every=5)

    async def story():
        await nodes.until_settled()
        lost = network.cut((2, 1))
        await nodes.until_settled()
        network.cut((1, 6))
        await nodes.until_settled()
        assert nodes.tables[5].keys() == set(range(8)) - {5}, "the host that was cut off keeps its routes"
        mapper, config, hosts = nodes.mappers[0], nodes.config, len(network.homes)
        look = len(mapper.expected(mapper.map))
        for phase in range(4):
            await nodes.world.sleep(mapper.agent.cycles(config.watch_us) * phase // 4 + 1)
            begin = nodes.world.cycle
            network.join(*lost)
            await nodes.until_settled()
            exchanges = 2 * look + mapper.probes + hosts * (2 + -(-hosts // MOST_ROUTES))
            patience = config.attempts * (mapper.agent.cycles(config.timeout_us) + 100)
            bound = exchanges * patience + mapper.agent.cycles(config.watch_us + config.drain_us)
            took = nodes.world.cycle - begin
            print("phase", phase, "took", took, "bound", bound)
            assert took <= bound
            network.cut((2, 1))
            await nodes.until_settled()

    nodes.world.run(story(), limit=10**10)


def test_the_check_finds_a_circle():
    network = ring(4, 1).map()
    round_it = {(node, (node + 2) % 4): (6, 6, 0) for node in range(4)}
    assert deadlocks(network, round_it) is not None
    order = order_after(network, None, [])
    new = up_down_words(network, order, ring(4, 1).form)
    gone = to_withdraw(network, order, round_it, new)
    kept = {pair: word for pair, word in round_it.items() if pair not in gone}
    assert gone and kept and deadlocks(network, kept, new) is None


def test_the_lowest_candidate_that_lives_maps():
    """The first of three dies, then the second; each time the next takes over."""
    nodes = MappedNodes(ring(4, 2), Random(2), candidates=(1, 3, 6), look_every=5)

    async def story():
        await nodes.until_settled()
        assert [nodes.mappers[node].maps for node in (1, 3, 6)] == [1, 0, 0]
        for dead, heir in ((1, 3), (3, 6)):
            nodes.die(dead)
            await nodes.until_settled(lead=heir)
            assert nodes.mappers[heir].map.hosts.keys() == set(nodes.network.homes) - nodes.network.deaf

    play(nodes, story())


def test_two_that_map_at_once_do_not_disturb_each_other():
    """A network in two parts has two mappers. When the parts are joined the lower one gets all."""
    network = ring(6, 1)
    cuts = [network.cut((0, 6)), network.cut((3, 6))]
    nodes = MappedNodes(network, Random(3), candidates=(0, 3), look_every=3)

    async def story():
        await nodes.world.sleep(3_000_000)
        assert set(nodes.mappers[0].map.hosts) == {0, 4, 5} and set(nodes.mappers[3].map.hosts) == {1, 2, 3}
        # Until a mapper has found it, what the parts have of routes is each free of circles.
        for place, end in cuts:
            network.join(place, end)
        await nodes.until_settled()
        assert set(nodes.mappers[0].map.hosts) == set(range(6))

    play(nodes, story())


def changes(network, random):
    """Random changes of a network: cables that die, switches that die, hosts and cables that are added."""
    lost = []
    while True:
        draw = random.random()
        cables = [place for place, end in network.ends.items() if not isinstance(end, Host)]
        if draw < 0.35 and cables:
            lost.append(network.cut(random.choice(cables)))
        elif draw < 0.6 and lost:
            place, end = lost.pop(random.randrange(len(lost)))
            if place not in network.ends and end not in network.ends:
                network.join(place, end)
        elif draw < 0.7:
            home = network.homes[0][0]
            network.kill(random.choice([router for router in range(network.routers) if router != home]))
        else:
            places = [(a, b) for a in range(network.routers) for b in range(network.ports)]
            free = [place for place in places if place not in network.ends]
            if len(free) > 1:
                network.join(*random.sample(free, 2))
        yield


@pytest.mark.parametrize("seed", range(3))
def test_changes_while_routes_are_in_use(seed):
    """Cables and switches die and come. All that can be reached has routes again, and routes in use never deadlock."""
    print("seed", seed)
    random = Random(seed)
    network = random_network(random, switches=8, hosts=10, extra=8, loops=0)
    nodes = MappedNodes(network, random, look_every=5)

    async def story():
        await nodes.until_settled()
        for _ in zip(range(6), changes(network, random), strict=False):
            await nodes.until_settled()

    play(nodes, story())


def test_lost_packets_only_cost_time():
    network = ring(4, 2)
    nodes = MappedNodes(network, Random(5), loss=0.01, attempts=6, command_attempts=10, look_every=5)

    async def story():
        await nodes.until_settled()

    play(nodes, story())


def deaths(first, last, step):
    """The mapper dies at a packet, its own or an answer to it; at the same packet of other runs a switch dies."""
    for packet in range(first, last, step):
        for victim in ("mapper", "host", "switch"):
            network = ring(4, 2)
            nodes = MappedNodes(network, Random(packet), candidates=(0, 3), look_every=25)

            def at(node, nodes=nodes, packet=packet, victim=victim):
                if nodes.packets == packet:
                    if victim == "switch":
                        nodes.network.kill(2)
                        nodes.network.join((2, 3), (1, 3))
                    else:
                        nodes.die(0 if victim == "mapper" else 5)

            nodes.step = at

            async def story(nodes=nodes, victim=victim, packet=packet):
                while nodes.packets <= packet:
                    await nodes.world.sleep(1000)
                await nodes.until_settled(lead=3 if victim == "mapper" else 0)

            nodes.world.run(story(), limit=10**10)


def test_deaths_at_some_steps():
    deaths(20, 900, 220)


@pytest.mark.full
def test_deaths_at_every_third_step():
    deaths(0, 900, 3)


def test_packets_and_configuration():
    packet = MapPacket(
        kind=Kind.ROUTES, node=3, number=1 << 31, route=0xF21, tag=7, routes=((1, 5), (2, (1 << 48) - 1))
    )
    assert MapPacket.unpack(packet.pack()) == packet and len(packet.pack()) == 32
    for data in (b"", bytes(16), bytes([3, 4]) + bytes(40), bytes([3, 2]) + bytes(20)):
        with pytest.raises(ValueError):
            MapPacket.unpack(data)
    with pytest.raises(ValueError, match="ascending"):
        MapperConfig(candidates=(3, 1))
    router = RouterConfig(ports=8)
    with pytest.raises(ValueError, match="lane of their own"):
        MapperConfig().check_network(router)
    two = router.replace(link=router.link.replace(vls=2))
    MapperConfig(candidates=(0, 1)).check_network(two)
    with pytest.raises(ValueError, match="at most 1"):
        MapperConfig(candidates=(0, 1), in_flight=2).check_network(two)
