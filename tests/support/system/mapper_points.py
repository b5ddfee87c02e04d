"""The mapper on clusters of RTL: each coroutine is one history, and returns what was seen."""

from __future__ import annotations

import time
from random import Random

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.hdl.network import Network
from lanikai.sim.experiments.am.topology import LARGE, fat_tree
from lanikai.sim.experiments.measure.hosts import start_hosts
from lanikai.sim.host.am.mapper.agent import Agent
from lanikai.sim.host.am.mapper.config import MapperConfig
from lanikai.sim.host.am.mapper.discover import discover
from lanikai.sim.host.am.mapper.driver_port import DriverPort
from lanikai.sim.host.am.mapper.mapper import Mapper
from lanikai.sim.host.am.mapper.network_map import NetworkMap
from lanikai.sim.host.am.mapper.search import Search
from lanikai.sim.host.am.mapper.words import WordFormat
from lanikai.sim.systems.cluster import cluster_preset

from .raw_cards import RawCard


def small_network():
    """Five switches with parallel cables, a loop, a tail and dead ports, and five nodes."""
    base = cluster_preset("lanai41", memory_bytes=1 << 22, cuts=True, watchdog_cycles=0, delivery_cycles=0)
    nodes = ((0, 0), (0, 5), (1, 2), (2, 7), (3, 3))
    links = (
        ((0, 1), (1, 1)),
        ((0, 2), (1, 6)),
        ((1, 4), (2, 0)),
        ((2, 3), (0, 7)),
        ((2, 5), (2, 6)),
        ((2, 1), (4, 4)),
        ((4, 0), (3, 0)),
    )
    return base.on(Network(router=base.router, routers=5, nodes=nodes, links=links))


def figure_3(seed):
    """The network of chun-1998 figure 3, 40 switches and 92 nodes, with cables in ports as they come: each switch's are
    dealt out by the seed."""
    base = small_network()
    plain = fat_tree(LARGE, router=base.router)
    random = Random(seed)
    deal = [random.sample(range(8), 8) for _ in range(plain.routers)]

    def dealt(place):
        return place[0], deal[place[0]][place[1]]

    nodes = tuple(dealt(place) for place in plain.nodes)
    links = tuple((dealt(a), dealt(b)) for a, b in plain.links)
    return base.on(Network(router=base.router, routers=plain.routers, nodes=nodes, links=links))


class Mapped:
    """Agents on all nodes of a cluster without firmware, and mappers on the candidates."""

    def __init__(self, cluster, ports=None, **changes):
        self.cluster, self.clock = cluster, cluster.clock
        router = cluster.network.router
        self.config = MapperConfig(**changes)
        self.config.check_network(router)
        self.form = WordFormat.of(router)
        self.cards = ports or [RawCard(cluster, node) for node in range(cluster.config.nodes)]
        hz = cluster.config.nic.clock_hz
        self.agents = [Agent(card, self.clock, self.config, self.form, clock_hz=hz) for card in self.cards]
        self.mappers = {node: Mapper(self.agents[node], self.clock) for node in self.config.candidates}
        for mapper in self.mappers.values():
            mapper.told = cluster.say

    def start(self):
        for mapper in self.mappers.values():
            mapper.start()

    async def until(self, dead=(), lead=0, most=4000):
        """Wait until all that `lead` reaches have the routes of the present map. Fails after `most` rests."""
        right = NetworkMap.of_network(self.cluster.network, lead, dead)
        for _ in range(most):
            mapper = self.mappers[lead]
            done = all(self.agents[node].tag == right.tag for node in right.hosts)
            if done and mapper.map is not None and mapper.map.canonical() == right.canonical():
                return
            await self.clock.sleep(5_000)
        raise AssertionError(
            f"not mapped: {mapper.map and mapper.map.canonical()}, right is {right.canonical()}"
        )


async def rules(cluster, spec):
    """Packets that take odd ways: each case's arrivals as (node, route left), and the packets that routers dropped."""
    cards = [RawCard(cluster, node) for node in range(cluster.config.nodes)]
    form = WordFormat.of(cluster.network.router)
    came = []
    for card in cards:
        card.hear = lambda route, data, card=card: came.append((card.node, route))
    found = {}
    for name, route in {
        "to the port it came by": form.route((0,)),
        "back over a cable": form.route((1, 1, 5)),
        "round a loop": form.route((1, 4, 5, 3, 5)),
        "to a port without a cable": form.route((3,)),
        "to a port that is not there": form.route(()),
        "with hops left at a host": form.route((5, 3, 2)),
        "without hops in a switch": 1 | 1 << form.hop_bits,
    }.items():
        came.clear()
        dropped = cluster.dropped
        await cards[0].send(route, bytes(16))
        await cluster.clock.sleep(3_000)
        found[name] = [list(came), cluster.dropped - dropped]
    return found


async def changes(cluster, spec):
    """Map; cut a cable, a switch and a host while data flow, and join them; the mapper dies, and another goes on."""
    mapped = Mapped(cluster, **spec["config"])
    mapped.start()
    begun = time.perf_counter()
    await mapped.until()
    found = {"probes": mapped.mappers[0].probes, "cycles": cluster.clock.cycle}
    found["seconds"] = time.perf_counter() - begun
    random, sent = Random(cluster.seed), [0]

    async def traffic(card):
        while not sent[0] < 0:
            there = random.choice([node for node in range(len(mapped.cards)) if node != card.node])
            if await card.send_data(there, sent[0] % 65536, 1024):
                sent[0] += 1
            await cluster.clock.sleep(random.randint(10_000, 60_000))

    for card in mapped.cards:
        cluster.clock.spawn(traffic(card), "traffic")
    for place in spec["cuts"]:
        cluster.cut(*place)
        await mapped.until(dead=[tuple(place)])
        cluster.join(*place)
        await mapped.until()
    found["during"] = sent[0]
    mapped.cards[0].dead = True
    dead = [cluster.network.nodes[0]]
    await mapped.until(dead=dead, lead=1)
    before = sum(len(card.data) for card in mapped.cards)
    await cluster.clock.sleep(100_000)
    found["flows on"] = sum(len(card.data) for card in mapped.cards) - before
    found["came"] = sum(len(card.data) for card in mapped.cards)
    found["maps"] = [mapper.maps for mapper in mapped.mappers.values()]
    return found


async def whole_map(cluster, spec):
    """Discover a network once. Returns whether the map is right, its probes, cycles, and the wall time."""
    mapped = Mapped(cluster, **spec["config"])
    await cluster.clock.sleep(100)
    begun, first = time.perf_counter(), cluster.clock.cycle
    search = Search(mapped.agents[0])
    found = await discover(search)
    seconds = time.perf_counter() - begun
    right = NetworkMap.of_network(cluster.network, 0)
    return {
        "right": found.canonical() == right.canonical(),
        "switches": found.switches,
        "hosts": len(found.hosts),
        "probes": search.asked,
        "cycles": cluster.clock.cycle - first,
        "seconds": seconds,
        "processor_seconds": time.process_time(),
    }


async def over_drivers(cluster, spec):
    """Map through drivers and firmware. Returns probes, cycles, times, and each one's routes.

    Times are from the mapper's start on: until it has a map (`map`), and until every host has its routes. `forget`: the
    drivers begin without routes.
    """
    drivers = start_hosts(
        cluster, "am", config=VirtualNetworkConfig.for_nic(cluster.config.nic, scan_us=1_000_000)
    )
    if spec["forget"]:
        for driver in drivers:
            for node in range(cluster.config.nodes):
                await driver.set_route(node, None)
    mapped = Mapped(cluster, [DriverPort(driver) for driver in drivers], **spec["config"])
    begun, first = (time.perf_counter(), time.process_time()), cluster.clock.cycle
    mapped.start()
    found = {}
    for what in ("map", "routes"):
        while what == "map" and not mapped.mappers[0].maps:
            await cluster.clock.sleep(5_000)
        if what == "routes":
            await mapped.until(most=spec["rests"])
        found[what] = {
            "cycles": cluster.clock.cycle - first,
            "seconds": time.perf_counter() - begun[0],
            "processor_seconds": time.process_time() - begun[1],
        }
    form = mapped.form
    words = mapped.mappers[0].words
    return found | {
        "probes": mapped.mappers[0].probes,
        "given": all(
            driver.routes[there] == form.route(words[driver.node, there])
            for driver in drivers
            for there in driver.routes
        ),
        "reached": [sorted(driver.routes) for driver in drivers],
    }
