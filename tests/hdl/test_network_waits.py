"""The check of networks whose packets have a choice refuses what could deadlock or go round for ever."""

import os
import random

import pytest
from lanikai.hdl.config import ConfigError, HcaConfig, LinkConfig, RouterConfig, preset
from lanikai.hdl.network import mesh
from lanikai.hdl.network_waits import in_order
from lanikai.hdl.router.routing import RANDOM_BITS, ROUTING, Arrival, Ways
from lanikai.hdl.router.routing.duato import DuatoRouting
from lanikai.hdl.router.routing.odd_even import OddEvenRouting
from lanikai.hdl.router.routing.turns import TurnRouting
from lanikai.hdl.router.routing.valiant import ValiantRouting
from lanikai.hdl.router.routing.west_first import WestFirstRouting
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from lanikai.sim.systems.cluster import cluster_preset

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
ADAPTIVE = sorted(name for name, function in ROUTING.items() if not function.in_order)


def router_for(name, **changes):
    link = LinkConfig(flit_bits=64, vls=4, hop_bits=3)
    return RouterConfig(**{"link": link, "ports": 5, "routing": name, "vl_selection": "routing"} | changes)


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("sides", [(4, 4), (5, 3), (2, 6), (1, 4)])
def test_sound_functions_are_taken(name, sides):
    """Meshes of even, odd and single columns. Their packets may pass each other."""
    assert not in_order(mesh(*sides, router=router_for(name)))


@pytest.mark.parametrize("name", ADAPTIVE)
def test_all_vls_are_as_the_followed_ones(name, monkeypatch):
    """The check follows some VLs only. All of them have no cycle either."""
    function = ROUTING[name]
    monkeypatch.setattr(function, "followed_vls", classmethod(lambda cls, config: range(config.data_vls)))
    mesh(4, 3, router=router_for(name))


class AnyTurn(TurnRouting):
    """Both ways, always."""

    @classmethod
    def allowed_axes(cls, x, y, arrival, came):
        return True, True


class TurnsWestLate(WestFirstRouting):
    """Along y in column 2 before x - 1."""

    @classmethod
    def allowed_axes(cls, x, y, arrival, came):
        return True, x >= arrival.position["x"] or arrival.position["x"] == 2


class TurnsInEvenColumns(OddEvenRouting):
    """From x + 1 to y in all columns."""

    @classmethod
    def allowed_axes(cls, x, y, arrival, came):
        return super().allowed_axes(x, y, arrival, 0)


class AdaptiveEscape(DuatoRouting):
    """Options on the escape VL."""

    @classmethod
    def decide_options(cls, config, arrival):
        return super().decide_options(config, arrival)[0], arrival.vl & ~1


class OneVl(ValiantRouting):
    """Both phases on the lower VL."""

    @classmethod
    def step(cls, config, arrival, via):
        port, vl = super().step(config, arrival, via)
        return port, vl & ~1


class BehindOthers(DuatoRouting):
    """Options where other packets may stand."""

    options_empty = False


def refused(monkeypatch, name, mutant, sides=(4, 4)):
    monkeypatch.setitem(ROUTING, name, mutant)
    with pytest.raises(ConfigError) as error:
        mesh(*sides, router=router_for(name))
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("west_first", AnyTurn),
        ("west_first", TurnsWestLate),
        ("odd_even", AnyTurn),
        ("odd_even", TurnsInEvenColumns),
        ("duato", AdaptiveEscape),
        ("valiant", OneVl),
    ],
)
def test_a_function_without_its_rule_is_refused(monkeypatch, name, mutant):
    """The error names a cycle of channels, all on one VL."""
    message = refused(monkeypatch, name, mutant)
    assert message.startswith("Network: routes can deadlock, each waiting for the next: router ")
    assert message.count(" VL 0") >= 3


class AwayAndBack(WestFirstRouting):
    """Along y also where that leads away."""

    @classmethod
    def decide_options(cls, config, arrival):
        ports, vl = super().decide_options(config, arrival)
        here = arrival.position
        return (3, 4) if ports and 0 < here["y"] < here["last_y"] else ports, vl


class OntoNothing(WestFirstRouting):
    """Out at the edge of the mesh."""

    @classmethod
    def decide_options(cls, config, arrival):
        return (2,), arrival.vl


class NoWayUp(WestFirstRouting):
    """No port for packets in their column."""

    @classmethod
    def ways(cls, network, router, in_port, vl, goal):
        found = super().ways(network, router, in_port, vl, goal)
        return Ways((), ()) if network.coordinates[router][0] == network.coordinates[goal][0] else found


class OtherVl(WestFirstRouting):
    """Options on a VL that is nobody's escape, where other packets may stand."""

    @classmethod
    def decide_options(cls, config, arrival):
        return super().decide_options(config, arrival)[0], 3


@pytest.mark.parametrize(
    ("mutant", "words"),
    [
        (OntoNothing, "port 2, which does not lead there"),
        (NoWayUp, "has no port for it"),
        (OtherVl, "nobody's escape: needs `options_empty`"),
    ],
)
def test_ways_that_are_none_are_refused(monkeypatch, mutant, words):
    """The error names routing, router, packet and what is wrong."""
    message = refused(monkeypatch, "west_first", mutant)
    assert words in message and "routing 'west_first': router " in message


def test_options_behind_other_packets_are_refused(monkeypatch):
    """A header there could not ask for its escape."""
    assert "nobody's escape: needs `options_empty`" in refused(monkeypatch, "duato", BehindOthers)


@pytest.mark.parametrize("name", ["valiant", "ugal"])
def test_every_way_is_among_those_that_the_check_follows(name):
    """Random packets are led by the twin of the hardware, route and all: each step is one of `ways`."""
    chance, network = random.Random(SEED), mesh(4, 3, router=router_for(name))
    function, config = ROUTING[name], network.router
    print(f"seed {SEED}")
    detours = 0
    for _ in range(500):
        source, destination = chance.randrange(12), chance.randrange(12)
        (router, in_port), vl, goal = network.nodes[source], chance.randrange(2), destination
        route = network.source_route(source, destination)
        for _ in range(12):
            loads = [chance.randrange(20) for _ in range(5)]
            arrival = Arrival(
                in_port,
                vl,
                route,
                function.position_of(network, router),
                random=chance.getrandbits(RANDOM_BITS),
                loads=loads,
            )
            port, out_vl = function.decide(config, arrival)
            if in_port in function.rewrites_at(config):
                route = function.decide_route(config, arrival)
            known = {way[:2]: way[2] for way in function.ways(network, router, in_port, vl, goal).escapes}
            via = (route >> 10 & 31) + (route >> 15) * 4
            assert (port, out_vl) in known
            if (router, port) == network.nodes[destination]:
                break
            goal = destination if out_vl & 1 else 12 + via
            detours += not out_vl & 1
            router, in_port = network.neighbours[router, port]
            vl = out_vl
        else:
            pytest.fail(f"{source} to {destination}: not there after 12 steps")
    assert detours > 50


def test_a_way_that_leads_round_for_ever_is_refused(monkeypatch):
    """Up and down the column the packet comes back to where it was."""
    assert "could go round for ever" in refused(monkeypatch, "west_first", AwayAndBack, (1, 4))


@pytest.mark.parametrize("name", ADAPTIVE)
def test_who_needs_order_refuses_the_function(name):
    """Control packets, links of cards, cards and adapters."""
    link = LinkConfig(flit_bits=64, vls=16, hop_bits=3)
    with pytest.raises(ConfigError, match="does not keep packets in order, as control packets need"):
        mesh(2, 2, router=router_for(name, link=link))
    link = LinkConfig(flit_bits=64, vls=4, hop_bits=3, restart=True)
    with pytest.raises(ConfigError, match="does not keep packets in order, as the hosts of cards need"):
        mesh(2, 2, router=router_for(name, link=link))
    cluster = cluster_preset("tiny")
    with pytest.raises(ConfigError, match="does not keep packets in order, as hosts of cards need"):
        cluster.replace(router=cluster.router.replace(routing=name, vl_selection="routing"))
    adapter = preset(HcaConfig, "tiny")
    adapter = adapter.replace(link=adapter.link.replace(vls=4, hop_bits=3))
    router = router_for(name, link=adapter.link)
    with pytest.raises(ConfigError, match="does not keep packets in order, as queue pairs need"):
        AdapterNetworkConfig(network=mesh(2, 2, router=router), hca=adapter)


def test_pipelined_routers_refuse_it():
    """They have one way for each packet, found before its buffer."""
    with pytest.raises(ConfigError, match="routing = 'west_first': must be auto, source or dimension_order"):
        router_for("west_first", vl_selection="same", pipelined=True)
