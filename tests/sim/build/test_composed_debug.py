"""A composed design with every signal visible: Python sees and writes them as in one model."""

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.sim.run import run
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from support.sim.pair import PAIR

LINK = LinkConfig(flit_bits=32, vls=2, rate_num=1, rate_den=1)
ROUTER = RouterConfig(link=LINK, ports=3, input_buffer_flits=2, output_buffer_flits=2)
SMALL = TrafficNetworkConfig(
    network=mesh(2, 1, router=ROUTER.replace(ports=5), node_buffer_flits=4),
    classes=1,
    queue_packets=4,
    histogram_sub_bits=0,
)
WIRES = [
    ("network.router0", "tx__1__valid"),
    ("network.router1", "rx__2__valid"),
    ("network.router0", "tx__1__payload"),
    ("network.router1", "rx__2__payload"),
    ("node0", "tx__valid"),
    ("network.router0", "rx__0__valid"),
]
"""Ends of links, in pairs that are one wire each in one model."""
INSIDE = [
    ("network.router0", "activity"),
    ("network.router1", "input_occupied"),
    ("network.router1.receive_2", "non_empty"),
    ("network.router0.transmit_1.credits", "available"),
    ("network.router1.crossbar", "pop__0"),
    ("node1", "control"),
    ("node0.source", "tx__valid"),
    ("node1", "born"),
    ("network.router0", "clk"),
    ("node1.source", "clk"),
]
EVENTS = [
    ("network.router1", "rx__2__valid"),
    ("network.router0.transmit_1", "non_empty"),
    ("node1", "rx__valid"),
]


def look(tmp_path, **fields):
    config = SMALL.replace(**fields)
    spec = {
        "classes": [{"load": 0.15, "packet_flits": 6, "vl_count": 2}],
        "signals": [*WIRES, *INSIDE],
        "events": EVENTS,
    }
    job = config.job("support.sim.parts_points:looked_into", spec)
    return run(config.build("debug"), *job, out_dir=tmp_path / str(config.composed), seed=5).value


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    return look(tmp_path_factory.mktemp("debug"))


def test_python_sees_what_there_is(composed):
    """Both ends of a wire are the same, the clocks of instances are the design's, waits for changes end."""
    samples = composed["samples"]
    assert len(samples) > 30
    for _, *values in samples:
        assert values[0] == values[1] and values[2] == values[3] and values[4] == values[5]
        assert values[-2:] == [1, 1] or values[-2:] == [0, 0]
    for place, column in zip([*WIRES, *INSIDE], list(zip(*samples, strict=True))[1:], strict=True):
        assert len(set(column)) > 1, place
    when = {tuple(place): cycle for *place, cycle in composed["events"]}
    assert when.keys() == set(EVENTS)
    # A header takes 5 cycles through an idle router.
    assert when["node1", "rx__valid"] - when["network.router1", "rx__2__valid"] == 5


def test_python_writes_into_instances_at_rest(composed):
    """The top module adds up what routers count, and what Python wrote over it."""
    assert composed["shown"] == [5, 8]


@pytest.mark.full
def test_the_same_as_in_one_model(composed, tmp_path):
    """Values, and cycles in which signals inside of instances change."""
    assert look(tmp_path, composed=False) == composed


CARDS = [
    ("nic", "", "activity"),
    ("nic", "timer_1", "ticks"),
    ("nic", "timer_1", "clk"),
    ("nic", "packets.credits", "available"),
    ("nic", "send", "busy"),
    ("nic", "", "tx__valid"),
    ("nic", "", "rx__valid"),
    ("host", "", "activity"),
    ("network", "router0", "activity"),
    ("network", "router0.receive_0", "non_empty"),
    ("network", "router0", "rx__1__valid"),
]


def look_into_cards(tmp_path, *, seed=3, check=False, **fields):
    config = PAIR.replace(**fields)
    spec = {
        "end": 6000,
        "longest_cycles": 3000,
        "check": check,
        "signals": CARDS,
        "events": [
            ("nic", "", "rx__valid"),
            ("nic", "receive", "armed"),
            ("network", "router0", "tx__1__valid"),
        ],
    }
    job = config.job("support.sim.debug_points:looked_into", spec)
    return run(config.build("debug"), *job, out_dir=tmp_path / str(config.composed), seed=seed).value


def test_clusters_are_composed_with_every_signal():
    """Their node is compiled once, and its instances stand where Python looks for them."""
    composition = PAIR.design("debug").composition
    assert list(composition.libraries("debug").values())[-1][1] == "debug"
    assert [one.path for one in composition.instances if one.block == "cluster_node"] == [
        "cluster.node0",
        "cluster.node1",
    ]


@pytest.mark.full
def test_a_cluster_is_the_same_as_in_one_model(tmp_path):
    """Random use of two cards: all that processors and hosts see, values and changes of signals inside, and what comes
    of registers that Python writes. Resting cards are looked into as well, and checked."""
    composed = look_into_cards(tmp_path, check=True)
    assert composed == look_into_cards(tmp_path, composed=False)
    samples = list(zip(*composed["samples"], strict=True))
    assert len(samples[0]) > 100
    assert sum(len(set(column)) > 1 for column in samples) > 0.8 * len(samples)
    assert len(composed["changes"]) == 3
    for fired, shown, cleared in composed["written"]:
        assert 500 < fired < 1500 and shown == 1 and 3 < cleared < 100
