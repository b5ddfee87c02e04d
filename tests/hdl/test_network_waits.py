"""The check of networks whose packets have a choice refuses what could deadlock or go round for ever."""

import os
import random
import re

import pytest
from lanikai.hdl.config import ConfigError, HcaConfig, LinkConfig, RouterConfig, preset
from lanikai.hdl.network import mesh
from lanikai.hdl.network_named import network_named
from lanikai.hdl.network_waits import in_order
from lanikai.hdl.router.routing import ADAPTIVE, RANDOM_BITS, ROUTING, Arrival, Ways
from lanikai.hdl.router.routing.choice.duato import (
    DuatoRouting,
    FlattenedButterflyDuatoRouting,
    HypercubeDuatoRouting,
    TorusDuatoRouting,
)
from lanikai.hdl.router.routing.choice.odd_even import OddEvenRouting
from lanikai.hdl.router.routing.choice.turns import TurnRouting
from lanikai.hdl.router.routing.choice.valiant import (
    DragonflyValiantRouting,
    FlattenedButterflyValiantRouting,
    TorusValiantRouting,
    ValiantRouting,
)
from lanikai.hdl.router.routing.choice.west_first import WestFirstRouting
from lanikai.hdl.router.routing.torus import TorusRouting
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from lanikai.sim.systems.cluster import cluster_preset

SEED = int(os.environ.get("LANIKAI_TEST_SEED", "1"))
CHOOSING = sorted(name for name, function in ROUTING.items() if not function.in_order)
OTHERS = {
    "torus": ["torus4x4", "torus5x3", "torus2x4"],
    "hypercube": ["hypercube(1)", "hypercube(4)"],
    "flattened_butterfly": ["flattened_butterfly(4)", "flattened_butterfly(2x3x2,nodes=2)"],
    "dragonfly": ["dragonfly(2,1,1)", "dragonfly(3,2,2)"],
}
"""Networks of each topology in which a name of `ADAPTIVE` stands for a function of its own."""
ELSEWHERE = sorted(set(CHOOSING) - set(ADAPTIVE))


def router_for(name, **changes):
    link = LinkConfig(flit_bits=64, vls=4, hop_bits=3)
    return RouterConfig(**{"link": link, "ports": 5, "routing": name, "vl_selection": "routing"} | changes)


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("sides", [(4, 4), (5, 3), (2, 6), (1, 4)])
def test_sound_functions_are_taken(name, sides):
    """Meshes of even, odd and single columns. Their packets may pass each other."""
    assert not in_order(mesh(*sides, router=router_for(name)))


def kind_of(name):
    """The topology of a function, and the name that stands for it."""
    kind, _, plain = name.rpartition("_")
    return (kind, plain) if name in ELSEWHERE else ("mesh", name)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_stands_for_the_function_of_the_topology(name):
    """Networks of it are taken, and are routed by it."""
    kind, plain = kind_of(name)
    for text in OTHERS[kind]:
        network = network_named(text, router_for(plain))
        assert network.router.routing == name
        assert not in_order(network)
        assert network.replace(router=network.router) == network


@pytest.mark.parametrize(
    ("plain", "text", "words"),
    [
        ("west_first", "torus4x4", "routing 'west_first' is for mesh: this network is a torus"),
        (
            "duato",
            "dragonfly(2,1,1)",
            "routing 'duato' is for mesh, torus, hypercube, flattened_butterfly: this network is dragonfly(2,1,1)",
        ),
        (
            "ugal",
            "ring(5)",
            "routing 'ugal' is for mesh, torus, hypercube, flattened_butterfly, dragonfly: this network is ring(5)",
        ),
    ],
)
def test_a_topology_without_such_a_function_is_refused(plain, text, words):
    """The line names the topologies that have one."""
    with pytest.raises(ConfigError, match=f"^Network: {re.escape(words)}$"):
        network_named(text, router_for(plain))


@pytest.mark.parametrize(
    ("text", "plain", "vls", "flit_bits", "words"),
    [
        ("mesh3x3", "ugal", 3, 64, "ugal routing needs an even number, 2 to 14: two for each class"),
        ("torus3x4", "duato", 6, 64, "torus_duato routing needs 4, 8 or 12: four for each class"),
        ("dragonfly(2,1,1)", "ugal", 2, 64, "dragonfly_ugal routing needs 4, 8 or 12: four for each class"),
        (
            "dragonfly(2,1,1)",
            "valiant",
            4,
            32,
            "dragonfly_valiant routing needs 64 or 128: its route has 31 bits, all in the first flit",
        ),
    ],
)
def test_vls_and_links_that_do_not_suit_are_refused(text, plain, vls, flit_bits, words):
    """In a line that says what would."""
    link = LinkConfig(flit_bits=flit_bits, vls=vls)
    field = f"vls = {vls}" if flit_bits == 64 else "flit_bits = 32"
    with pytest.raises(ConfigError, match=f"LinkConfig.{field}: {words}$"):
        network_named(text, router_for(plain, link=link))


def test_nodes_are_at_no_more_ports_than_there_are():
    with pytest.raises(ConfigError, match="node_ports = 6: routers have 5 ports"):
        router_for("ugal", node_ports=6)


@pytest.mark.parametrize("name", CHOOSING)
def test_all_vls_are_as_the_followed_ones(name, monkeypatch):
    """The check follows some VLs only. All of them have no cycle either."""
    kind, plain = kind_of(name)
    function = ROUTING[name]
    monkeypatch.setattr(function, "followed_vls", classmethod(lambda cls, config: range(config.data_vls)))
    link = LinkConfig(flit_bits=64, vls=8, hop_bits=3)
    text = "mesh4x3" if kind == "mesh" else OTHERS[kind][0]
    network_named(text, router_for(plain, link=link))


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


class OneVlForBoth(DragonflyValiantRouting):
    """Both halves of the way on one pair."""

    @classmethod
    def step(cls, config, arrival, via):
        port, vl = super().step(config, arrival, via)
        return port, vl & ~2


class OneVlInAButterfly(FlattenedButterflyValiantRouting):
    """Both halves of the way on one VL."""

    @classmethod
    def step(cls, config, arrival, via):
        port, vl = super().step(config, arrival, via)
        return port, vl & ~1


class NoDateline(TorusDuatoRouting):
    """Escapes on one VL, round the ring."""

    @classmethod
    def decide(cls, config, arrival):
        port, vl = super().decide(config, arrival)
        return port, vl & ~1


class NoDatelineOnTheWay(TorusValiantRouting):
    """The same in both halves of the way."""

    @classmethod
    def step(cls, config, arrival, via):
        port, vl = super().step(config, arrival, via)
        return port, vl & ~1


class ByTheVl(TorusDuatoRouting):
    """Escapes with a dateline that a packet from an adaptive VL has forgotten."""

    direct = TorusRouting


class EscapesAnywhere(HypercubeDuatoRouting):
    """Options on the escape VL."""

    @classmethod
    def decide_options(cls, config, arrival):
        return super().decide_options(config, arrival)[0], arrival.vl & ~1


class EscapesInAnyOrder(FlattenedButterflyDuatoRouting):
    """Options on the escape VL."""

    @classmethod
    def decide_options(cls, config, arrival):
        return super().decide_options(config, arrival)[0], arrival.vl & ~1


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


@pytest.mark.parametrize(
    ("text", "mutant"),
    [
        ("torus5x3", NoDateline),
        ("torus5x3", NoDatelineOnTheWay),
        ("torus5x3", ByTheVl),
        ("hypercube(3)", EscapesAnywhere),
        ("flattened_butterfly(3x3)", EscapesInAnyOrder),
        ("flattened_butterfly(3x3)", OneVlInAButterfly),
        ("dragonfly(2,1,1)", OneVlForBoth),
    ],
)
def test_the_same_in_other_topologies(monkeypatch, text, mutant):
    """Without its rule a function has a cycle of channels there."""
    (name,) = (name for name, function in ROUTING.items() if function is mutant.__mro__[1])
    network_named(text, router_for(name))
    monkeypatch.setitem(ROUTING, name, mutant)
    # Another configuration, as networks are made once.
    with pytest.raises(
        ConfigError, match=r"^Network: routes can deadlock, each waiting for the next: router "
    ):
        network_named(text, router_for(name, input_buffer_flits=3))


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


@pytest.mark.parametrize("name", [name for name in CHOOSING if ROUTING[name].rewrites_at(RouterConfig())])
def test_every_way_is_among_those_that_the_check_follows(name):
    """Random packets are led by the twin of the hardware, route and all: each step is one of `ways`.

    Of a packet that enters `ways` has detours with the first node, since they do not depend on the destination.
    """
    kind, plain = kind_of(name)
    text = "mesh4x3" if kind == "mesh" else OTHERS[kind][-1]
    chance, network = random.Random(SEED), network_named(text, router_for(plain))
    function, config, nodes = ROUTING[name], network.router, len(network.nodes)
    places, half = function.places(network), function.lanes()
    print(f"seed {SEED}")
    detours = straight = 0
    for _ in range(500):
        source, destination = chance.randrange(nodes), chance.randrange(nodes)
        (router, in_port), vl, goal = network.nodes[source], chance.randrange(2), destination
        route = network.source_route(source, destination)
        for _ in range(12):
            loads = [chance.randrange(20) for _ in range(config.ports)]
            arrival = Arrival(
                in_port,
                vl,
                route,
                function.position_of(network, router),
                random=chance.getrandbits(RANDOM_BITS),
                loads=loads,
            )
            port, out_vl = function.decide(config, arrival)
            known = list(function.ways(network, router, in_port, vl, goal).escapes)
            if in_port in function.rewrites_at(config):
                route = function.decide_route(config, arrival)
                known += function.ways(network, router, in_port, vl, 0).escapes
            if (router, port) == network.nodes[destination]:
                assert (port, out_vl, destination) in known
                break
            upper = out_vl // half % 2
            goal = destination if upper else nodes + places.index(route >> function.to_bits())
            assert (port, out_vl, goal) in known
            detours += not upper
            straight += upper
            router, in_port = network.neighbours[router, port]
            vl = out_vl
        else:
            pytest.fail(f"{source} to {destination}: not there after 12 steps")
    assert min(detours, straight) > 50


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
