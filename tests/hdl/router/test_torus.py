"""Tori: the dateline keeps packets that go round a ring from waiting for each other."""

import os
import random

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network import torus
from lanikai.hdl.router.router import Router
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.router.routing.torus import TorusRouting
from support.hdl.joined import Joined, packet

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
LINK = LinkConfig(flit_bits=32, vls=2, hop_bits=3)
CONFIG = RouterConfig(
    link=LINK,
    ports=5,
    routing="torus",
    vl_selection="routing",
    input_buffer_flits=2,
    output_buffer_flits=2,
)


class NoDateline(TorusRouting):
    """A routing without a dateline: packets stay on the lower VL, in hardware and twin."""

    @classmethod
    def decide(cls, config, arrival):
        return super().decide(config, arrival)[0], arrival.vl & ~1

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.out_vl[0].eq(0)
        return m


def run(traffic, network, packets, **more):
    top = Joined(network)
    common = {"buffer_flits": 2, "sink_flits": 10, "target_bits": 10, "seed": SEED}
    return traffic.run_packets(top, top.ends, network.router.link, packets, **common | more)


def half_way_round(traffic, network):
    """All four nodes of a ring send half way round it, upwards, at once, and more than the buffers hold."""
    return [packet(traffic, network, n, n, (n + 2) % 4, 0, 24) for n in range(4)]


def test_a_ring_full_of_long_packets_is_delivered(traffic):
    network = torus(4, 1, router=CONFIG)
    assert network.path(3, 1) == [(3, 1), (0, 1), (1, 0)]
    assert network.channels(3, 1) == [(3, 1, 1), (0, 1, 1), (1, 0, 0)]
    result = run(traffic, network, half_way_round(traffic, network), limit=260)
    assert len(result.seen) == 4


def test_without_the_dateline_the_ring_locks_up(traffic, monkeypatch):
    """The same packets through hardware that keeps the VL: each holds what the next one waits for."""
    network = torus(4, 1, router=CONFIG)
    monkeypatch.setitem(ROUTING, "torus", NoDateline)
    with pytest.raises(AssertionError, match=r"^not through after 260 cycles: \[0, 1, 2, 3\]"):
        run(traffic, network, half_way_round(traffic, network), limit=260)


@pytest.mark.full
def test_random_packets_on_both_vls_all_arrive(traffic):
    """The packets are uniform, of 1 to 20 flits, all at once: the ring is full until the last ones leave. Each comes
    out on the lower VL."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    network = torus(4, 1, router=CONFIG)
    packets = [
        packet(traffic, network, n, n % 4, chance.randrange(4), chance.randrange(2), chance.randint(1, 20))
        for n in range(40)
    ]
    result = run(traffic, network, packets, limit=3000, stall=0.3)
    assert len(result.seen) == 40


def test_the_deadlock_check_refuses_a_torus_without_the_dateline(monkeypatch):
    """The check is over (port, VL) channels. With the dateline there is no cycle in rings of any size.

    Without it there is one round the first ring of 4. There is none in rings of 3, where no packet goes two links.
    """
    for width, height in ((4, 4), (5, 3), (8, 2), (1, 6)):
        torus(width, height, router=CONFIG)
    shortest = CONFIG.replace(routing="source", vl_selection="same")
    with pytest.raises(ConfigError) as error:
        torus(4, 4, router=shortest)
    assert str(error.value).startswith("Network: routes can deadlock, each waiting for the next: router ")
    assert "VL" not in str(error.value)
    monkeypatch.setitem(ROUTING, "torus", NoDateline)
    torus(3, 3, router=CONFIG)
    with pytest.raises(ConfigError) as error:
        torus(4, 4, router=CONFIG)
    ring = " -> ".join(f"router {router % 4} port 1 VL 0" for router in range(5))
    assert str(error.value) == f"Network: routes can deadlock, each waiting for the next: {ring}"


class NamesNoVl(TorusRouting):
    """A routing in which every packet is to leave on VL 7."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.out_vl.eq(7)
        return m


def test_a_vl_that_does_not_exist_drops_the_packet(traffic, monkeypatch):
    """The packet is counted, and stops nobody. With a twin that says so the network is not built."""
    monkeypatch.setitem(ROUTING, "torus", NamesNoVl)
    router = Router(CONFIG.replace(link=LINK.replace(vls=6)))
    lost = [traffic.Packet(number=n, source=1, hops=[], target=0, end=None, vl=n, flits=3) for n in range(2)]

    async def check(ctx):
        assert ctx.get(router.dropped) == 2

    ends = list(zip(router.rx, router.tx, strict=True))
    traffic.run_packets(router, ends, router.config.link, lost, buffer_flits=2, target_bits=10, after=check)

    monkeypatch.setattr(
        NamesNoVl, "decide", lambda config, arrival: (TorusRouting.decide(config, arrival)[0], 7)
    )
    with pytest.raises(ConfigError) as error:
        torus(4, 1, router=CONFIG)
    assert str(error.value) == (
        "Network: routing 'torus': router 0 sends packets to node 0 on VL 7: data VLs are 0 to 1"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"vl_selection": "same"},
            "RouterConfig.vl_selection = 'same': routing 'torus' chooses the VL: must be 'routing'",
        ),
        (
            {"routing": "source"},
            "RouterConfig.vl_selection = 'routing': routing 'source' does not choose VLs",
        ),
        (
            {"link": LINK.replace(vls=3)},
            "LinkConfig.vls = 3: torus routing needs an even number, 2 to 14: two for each class",
        ),
        (
            {"link": LINK.replace(vls=16)},
            "LinkConfig.vls = 16: torus routing needs an even number, 2 to 14: two for each class",
        ),
    ],
)
def test_routers_that_cannot_have_it_are_refused_by_name(changes, message):
    with pytest.raises(ConfigError) as error:
        Router(CONFIG.replace(**changes))
    assert str(error.value) == message
    with pytest.raises(ConfigError) as error:
        torus(2, 2, router=CONFIG.replace(**changes))
    assert str(error.value) == f"Network: {message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"links": ()}, "node 1 cannot be reached from node 0: a link is missing"),
        ({"drop": 0}, "router 0: port 1 must be linked to router 1, for dimension order"),
        ({"coordinates": ()}, "routing 'torus' is for a torus: routers of this network have no coordinates"),
        ({"tables": ((0,) * 16,) * 16}, "routing 'torus' makes its own routes: `tables` must be empty"),
    ],
)
def test_networks_that_are_no_torus_are_refused_by_name(changes, message):
    good = torus(4, 4, router=CONFIG)
    if "drop" in changes:
        changes = {"links": good.links[1:]}
    with pytest.raises(ConfigError) as error:
        good.replace(**changes)
    assert str(error.value) == f"Network: {message}"
