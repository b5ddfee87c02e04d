"""Topologies with a routing function of their own: no cycle of channels, delivery, and mutants that lock up."""

import os
import random

import numpy as np
import pytest
from amaranth import Module
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network_named import network_named
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.router.routing.choice.direct import DirectBased
from lanikai.hdl.router.routing.dragonfly import DragonflyRouting
from lanikai.hdl.router.routing.flattened_butterfly import FlattenedButterflyRouting
from lanikai.hdl.router.routing.hypercube import HypercubeRouting
from lanikai.hdl.router.routing.kary_tree import KaryTreeRouting
from lanikai.hdl.router.routing.ring import RingRouting
from lanikai.hdl.router.routing.shaped import ShapedRouting
from lanikai.hdl.topologies import TOPOLOGIES, topology_named
from support.hdl.joined import Joined
from support.hdl.joined import packet as packet_of_bits

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
TARGET_BITS = 24
"""Bits of the route that routers look at, at most."""
CONFIG = RouterConfig(
    link=LinkConfig(flit_bits=64, vls=2),
    input_buffer_flits=2,
    output_buffer_flits=2,
)
SMALL = {
    "ring": "ring(5)",
    "hypercube": "hypercube(2)",
    "flattened_butterfly": "flattened_butterfly(2x2)",
    "kary_tree": "kary_tree(2,2)",
    "dragonfly": "dragonfly(2,1,1)",
}
"""A small network of each, for simulation."""
LARGE = {
    "ring": ["ring(3)", "ring(4)", "ring(257)"],
    "hypercube": ["hypercube(1)", "hypercube(8)"],
    "flattened_butterfly": [
        "flattened_butterfly(16x16)",
        "flattened_butterfly(5)",
        "flattened_butterfly(2x4x3,nodes=3)",
    ],
    "kary_tree": ["kary_tree(4,4)", "kary_tree(3,3)", "kary_tree(2,8)"],
    "dragonfly": ["dragonfly(5,2,2)", "dragonfly(4,4,4)", "dragonfly(2,3,1)"],
}


def keeps_the_lower_vl(base):
    """A mutant of a routing function with pairs of VLs: packets stay on the lower one, in hardware and twin."""

    class LowerVl(base):
        @classmethod
        def decide(cls, config, arrival):
            return super().decide(config, arrival)[0], arrival.vl & ~1

        def elaborate(self, platform):
            m = super().elaborate(platform)
            m.d.comb += self.out_vl[0].eq(0)
            return m

    return LowerVl


class AnyDimension(HypercubeRouting):
    """A mutant that takes the highest dimension first at routers with an odd number of bits set."""

    @classmethod
    def decide(cls, config, arrival):
        differs = arrival.route ^ arrival.position["at"]
        if differs and arrival.position["at"].bit_count() % 2:
            return cls.first_port(config) + differs.bit_length(), arrival.vl
        return super().decide(config, arrival)

    def elaborate(self, platform):
        m = super().elaborate(platform)
        base, dimensions = self.first_port(self.config), self.config.ports - 1 - self.first_port(self.config)
        differs = self.route[:dimensions] ^ self.position.at[:dimensions]
        with m.If(self.position.at.xor()):
            for number in range(1 << dimensions):
                with m.If(differs == number):
                    m.d.comb += self.port.eq(1 << base + number.bit_length())
        return m


class AnyOrder(FlattenedButterflyRouting):
    """A mutant that goes along y before x at routers whose coordinates have an odd sum: on two nodes a side."""

    @classmethod
    def decide(cls, config, arrival):
        here, y = arrival.position, arrival.route >> 5 & 31
        if (here["at_0"] + here["at_1"]) % 2 and y != here["at_1"]:
            return here["first_1"], arrival.vl
        return super().decide(config, arrival)

    def elaborate(self, platform):
        m = super().elaborate(platform)
        here = self.position
        with m.If((here.at_0 ^ here.at_1)[0] & (self.route.word_select(1, 5) != here.at_1)):
            m.d.comb += self.port.eq(1 << here.first_1)
        return m


class UpAgain(KaryTreeRouting):
    """A mutant in which packets go up at once, turn round the wrong way at the top, and go up a second time."""

    @classmethod
    def decide(cls, config, arrival):
        port, vl = super().decide(config, arrival)
        if port is None:
            return port, vl
        here, base = arrival.position, cls.first_port(config)
        if here["mask"] and arrival.in_port < base + here["fan_out"] and port < base + here["fan_out"]:
            port += here["fan_out"]
        elif not here["mask"] and port == arrival.in_port:
            port = base + (port - base + 1) % here["fan_out"]
        return port, vl

    def elaborate(self, platform):
        m = Module()
        m.submodules.right = right = KaryTreeRouting(self.config, in_port=self.in_port)
        base, here, k = self.first_port(self.config), self.position, (self.config.ports - 1) // 2 + 1
        m.d.comb += [right.route.eq(self.route), right.position.eq(here), self.port.eq(right.port)]
        down = right.port[base : base + k]
        if self.in_port < base + k:
            with m.If((here.mask != 0) & down.any()):
                m.d.comb += self.port.eq(right.port << k)
            with m.If((here.mask == 0) & right.port[self.in_port]):
                m.d.comb += self.port.eq(1 << base + (self.in_port - base + 1) % k)
        return m


def two_links_on(network):
    """For each router a node two links further on, in the order of the ring."""
    return [(node, (node + 2) % len(network.nodes)) for node in range(len(network.nodes))]


MUTANTS = {
    "ring": ("ring(5)", keeps_the_lower_vl(RingRouting), two_links_on),
    "hypercube": ("hypercube(2)", AnyDimension, lambda network: [(0, 3), (1, 2), (2, 1), (3, 0)]),
    "flattened_butterfly": (
        "flattened_butterfly(2x2)",
        AnyOrder,
        lambda network: [(0, 3), (1, 2), (2, 1), (3, 0)],
    ),
    "kary_tree": ("kary_tree(2,2)", UpAgain, lambda network: [(0, 1), (3, 2), (1, 0), (2, 3)]),
    # From the router that is not linked to the next group to the one there that the link does not reach.
    "dragonfly": (
        "dragonfly(2,1,1)",
        keeps_the_lower_vl(DragonflyRouting),
        lambda network: [(1, 2), (3, 4), (5, 0)],
    ),
}
"""For each function a network, a mutant, and pairs of nodes whose packets then wait for each other."""
NAMES = sorted(
    name
    for name, function in ROUTING.items()
    if issubclass(function, ShapedRouting) and not issubclass(function, DirectBased)
)
"""The direct functions. Those that choose among ways stand in `test_routing_twin.py`."""


def packet(*arguments, **more):
    return packet_of_bits(*arguments, target_bits=TARGET_BITS, **more)


def run(traffic, network, packets, **more):
    top = Joined(network)
    common = {"buffer_flits": 2, "sink_flits": 10, "target_bits": TARGET_BITS, "seed": SEED}
    return traffic.run_packets(top, top.ends, network.router.link, packets, **common | more)


def test_every_function_has_its_networks_here():
    assert NAMES == sorted(SMALL) == sorted(LARGE) == sorted(MUTANTS)
    assert sorted({shape.routing for shape in TOPOLOGIES.values()} & set(NAMES)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_large_networks_have_no_cycle_and_ways_within_the_diameter(name):
    """`auto` takes the topology's own function. Every way is as long as the closed form says, at most."""
    for text in LARGE[name]:
        network = network_named(text, CONFIG)
        assert network.router.routing == name
        most = topology_named(text).diameter
        chance = random.Random(SEED)
        nodes = range(len(network.nodes))
        for _ in range(200):
            source, destination = chance.choice(nodes), chance.choice(nodes)
            way = network.path(source, destination)
            assert way[-1] == network.nodes[destination]
            assert len(way) <= most + 1


@pytest.mark.parametrize("name", NAMES)
def test_numpy_and_twin_say_the_same(name):
    """The steps of all packets at once are those of one packet at a time."""
    network, function = network_named(SMALL[name], CONFIG), ROUTING[name]
    cases = [
        (router, in_port, vl, node)
        for router in range(network.routers)
        for in_port in range(network.router.ports)
        for vl in range(network.router.link.vls)
        for node in range(len(network.nodes))
    ]
    ports, vls = function.next_ports(network, *np.array(cases, np.int32).T)
    for case, port, vl in zip(cases, ports.tolist(), vls.tolist(), strict=True):
        wanted = function.next_port(network, *case)
        assert (None if port < 0 else port) == wanted[0], case
        assert wanted[0] is None or vl == wanted[1], case


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_random_packets_all_arrive_once_under_random_stalls(traffic, name):
    """The packets are of 1 to 12 flits, all at once, on both VLs."""
    print(f"seed {SEED}")
    chance, network = random.Random(SEED), network_named(SMALL[name], CONFIG)
    nodes = range(len(network.nodes))
    packets = [
        packet(
            traffic,
            network,
            n,
            chance.choice(nodes),
            chance.choice(nodes),
            chance.randrange(2),
            chance.randint(1, 12),
        )
        for n in range(40)
    ]
    result = run(traffic, network, packets, limit=3000, stall=0.3)
    assert len(result.seen) == 40


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_the_latency_of_a_lone_packet_is_that_of_the_twins_hops(traffic, name):
    """A packet takes 5 cycles a router, and the routers are those of the twin's way."""
    network = network_named(SMALL[name], CONFIG)
    nodes = range(len(network.nodes))
    for source in (0, len(nodes) - 1):
        packets = [packet(traffic, network, n, source, n, 0, 2, start=120 * n) for n in nodes]
        result = run(traffic, network, packets, limit=120 * len(nodes) + 200)
        for n in nodes:
            assert result.seen[n][0] - result.sent[n][0] == 5 * len(network.path(source, n)), n


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_is_refused(monkeypatch, name):
    """The check finds a cycle over channels."""
    text, mutant, _ = MUTANTS[name]
    network_named(text, CONFIG)
    monkeypatch.setitem(ROUTING, name, mutant)
    with pytest.raises(
        ConfigError, match=r"^Network: routes can deadlock, each waiting for the next: router "
    ):
        network_named(text, CONFIG.replace(input_buffer_flits=3))


@pytest.mark.parametrize(
    "name", [name if name == "kary_tree" else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
)
def test_a_mutant_locks_up(traffic, monkeypatch, name):
    """The same packets are delivered by the function, and stand still in the mutant's hardware: each holds what the
    next one waits for."""
    text, mutant, pairs = MUTANTS[name]
    network = network_named(text, CONFIG)
    packets = [
        packet(traffic, network, n, source, destination, 0, 30)
        for n, (source, destination) in enumerate(pairs(network))
    ]
    assert len(run(traffic, network, packets, limit=450).seen) == len(packets)
    monkeypatch.setitem(ROUTING, name, mutant)
    with pytest.raises(AssertionError, match=r"^not through after 450 cycles"):
        run(traffic, network, packets, limit=450)
