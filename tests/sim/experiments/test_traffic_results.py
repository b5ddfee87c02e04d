"""Results of network experiments from counts, and the networks and parameters that have names."""

import asyncio
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig, preset
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.points import points_of
from lanikai.sim.experiments.framework.runner import point_seed
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.experiments.measure.traffic_results import (
    ACCEPTED,
    OFFERED,
    measure,
    traffic_results,
)
from lanikai.sim.experiments.measure.traffic_tables import percentile
from lanikai.sim.experiments.network_load import NetworkLoad
from lanikai.sim.experiments.power.load import PowerLoad
from lanikai.sim.experiments.vl_isolation import VlIsolation
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from lanikai.sim.systems.traffic_network import TrafficNetwork, check_measurement
from matplotlib.figure import Figure


def counts(**changes):
    """Counts of a class at a node: 2 packets of 10 flits, born and received there in a window of 100 cycles."""
    return {
        "offered_packets": 2,
        "offered_flits": 20,
        "injected_flits": 20,
        "accepted_flits": 20,
        "deferred_cycles": 0,
        "latency_packets": 2,
        "latency_sum_cycles": 50,
        "latency_min_cycles": 20,
        "latency_max_cycles": 30,
        "histogram": [[20, 1], [31, 1]],
    } | changes


def measured(*nodes, saturated=False, active=None):
    return {
        "saturated": saturated,
        "window_cycles": 100,
        "drain_cycles": 7,
        "counts": nodes,
        "active": active or [[True] * len(node) for node in nodes],
    }


def test_results_of_one_class():
    found = traffic_results(measured([counts()], [counts(latency_sum_cycles=70, latency_max_cycles=40)]))
    assert found == {
        "active_sources": 2,
        "offered_flits_per_node_per_cycle": 0.2,
        "accepted_flits_per_node_per_cycle": 0.2,
        "latency_mean_cycles": 30,
        "latency_p50_cycles": 20,
        "latency_p90_cycles": 31,
        "latency_p99_cycles": 31,
        "latency_p999_cycles": 31,
        "latency_p9999_cycles": 31,
        "latency_max_cycles": 40,
        "fairness_jain": 1.0,
        "saturated": False,
        "drain_cycles": 7,
    }


def test_only_the_class_with_missing_packets_is_saturated():
    missing = counts(latency_packets=1, accepted_flits=10)
    found = traffic_results(measured([counts(), missing], [counts(), counts()], saturated=True))
    assert found["saturated"] and found["latency_mean_cycles"] is None
    assert found["class_saturated"] == [False, True]
    assert found["class_latency_mean_cycles"] == [25, None]
    assert found["class_accepted_flits_per_node_per_cycle"] == pytest.approx([0.2, 0.15])


def test_a_class_with_births_put_off_is_saturated():
    late = counts(deferred_cycles=5)
    found = traffic_results(measured([counts(), late], [counts(), counts()], saturated=True))
    assert found["class_saturated"] == [False, True]


def test_loads_are_means_over_the_nodes_that_send():
    """The second node sends nothing, as its packets would go to itself. It receives half of all flits."""
    sender, silent = counts(accepted_flits=10), counts(offered_packets=0, offered_flits=0, accepted_flits=10)
    found = traffic_results(measured([sender], [silent], active=[[True], [False]]))
    assert found["active_sources"] == 1
    assert found["offered_flits_per_node_per_cycle"] == found["accepted_flits_per_node_per_cycle"] == 0.2


class Bench:
    """A traffic network of two nodes whose measurement is given."""

    def __init__(self, saturated, **changes):
        self.config = TrafficNetworkConfig(network=named_network("router2", RouterConfig()))
        self._counts = [[counts(**changes)], [counts(**changes)]]
        self._saturated = saturated

    async def start_nodes(self):
        pass

    async def set_classes(self, classes):
        pass

    async def measure(self, **cycles):
        class Found:
            as_json = lambda _: {"saturated": self._saturated, "counts": self._counts}  # noqa: E731

        return Found()


@pytest.mark.parametrize(
    ("saturated", "deferred", "offered"), [(False, 0, 20), (False, 9, 20), (True, 0, 20), (True, 9, 25)]
)
def test_what_is_offered_is_counted_where_all_of_it_was_born(saturated, deferred, offered):
    """Where not all was born, the offered load is that of the set-up: of on/off in the long run, ON for a quarter of
    the time."""
    setup = ClassSetup(mode="on_off", load=1.0, packet_flits=10, on_cycles=100, off_cycles=300)
    spec = {
        "classes": [setup.model_dump(mode="json")],
        "warmup_cycles": 1,
        "window_cycles": 100,
        "limit_cycles": 1,
    }
    found = asyncio.run(measure(Bench(saturated, deferred_cycles=deferred), spec))
    assert [node[0]["offered_flits"] for node in found["counts"]] == [offered, offered]


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (["network=router4", "pattern=table", "destinations=[0,1,2,3]"], "so nothing is sent"),
        (["network=router2", "pattern=tornado"], "so nothing is sent"),
        (
            ["process=on_off", "on_cycles=4000", "off_cycles=4000"],
            "= 8000: at most 2000, as a window of 20000 cycles",
        ),
        (
            ["network=router2", "loads=[0.01]"],
            "is 10 packets in a window of 20000 cycles: at least 50, which a load of 0.05 has (the full",
        ),
    ],
)
def test_traffic_that_a_window_can_say_nothing_of_is_refused(settings, fault):
    parameters = parse(NetworkLoad(), settings)
    with pytest.raises(ConfigError) as caught:
        NetworkLoad().points(parameters, "quick")
    assert fault in str(caught.value)


@pytest.mark.parametrize("real_time", [0.5, 0.9])
def test_a_load_that_is_too_low_is_told_with_one_that_will_do(real_time):
    experiment = PowerLoad()

    def points(load):
        return points_of(
            experiment, parse(experiment, [f"loads=[{load}]", f"real_time={real_time}"]), "quick"
        )

    with pytest.raises(UserError) as caught:
        points(0.001)
    text = str(caught.value)
    assert text.startswith("power-load: class 0: load 0.000")
    least = float(re.search(r"and (\S+) of all classes in these shares", text)[1])
    assert points(least)
    with pytest.raises(UserError, match="power-load: class"):
        points(least - 0.0002)


def test_designs_that_are_compared_have_the_same_traffic():
    points = NetworkLoad().points(parse(NetworkLoad(), ["loads=[0.2,0.5]"]), "quick")
    assert [one.workload for one in points] == ["load 0.2", "load 0.5"] * 2
    seeds = [point_seed(1, "network-load", number, one.workload) for number, one in enumerate(points)]
    assert seeds[:2] == seeds[2:] and seeds[0] != seeds[1]
    assert len({one.workload for one in VlIsolation().points(VlIsolation.Parameters(), "quick")}) == 1


def test_sinks_look_at_no_order_that_is_not_promised():
    """Service levels that share a VL may overtake each other, in whatever call they are set up."""
    system = object.__new__(TrafficNetwork)
    system.config = TrafficNetworkConfig(network=named_network("router2", RouterConfig()))
    system._levels = {}
    low, high = ClassSetup(vl_first=0, vl_count=2), ClassSetup(vl_first=2, vl_count=2, service_level=1)
    assert not system._shares_vl([low, high])
    assert not system._shares_vl([low])
    assert system._shares_vl([high.replace(vl_first=1)])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 30), min_size=1), st.integers(1, 100))
def test_percentile_is_the_nearest_rank(values, percent):
    histogram = {value: values.count(value) for value in values}
    rank = -(-percent * len(values) // 100)
    assert percentile(histogram, percent / 100) == sorted(values)[rank - 1]


@pytest.mark.parametrize(
    ("name", "nodes", "routers", "ports"),
    [
        ("router8", 8, 1, 8),
        ("mesh3x2", 6, 6, 5),
        ("mesh8x8", 64, 64, 5),
        ("chain4", 4, 4, 3),
        ("router2", 2, 1, 2),
        ("tree2x3", 8, 7, 3),
        ("torus5x4", 20, 20, 5),
    ],
)
def test_named_networks(name, nodes, routers, ports):
    router = RouterConfig()
    if name.startswith("torus"):
        router = RouterConfig(link=LinkConfig(vls=2), routing="torus", vl_selection="routing")
    network = named_network(name, router)
    assert (len(network.nodes), network.routers, network.router.ports) == (nodes, routers, ports)


TRIANGLE = {
    "routers": 3,
    "nodes": [[0, 0], [1, 0], [2, 0]],
    "links": [[[0, 1], [1, 2]], [[1, 1], [2, 2]], [[2, 1], [0, 2]]],
}


def test_a_network_of_the_users_own(tmp_path):
    path = tmp_path / "triangle.json"
    path.write_text(json.dumps(TRIANGLE))
    parameters = parse(NetworkLoad(), [f"network={path}", "vls=2", "loads=[0.1]"])
    network = parameters.system("wavefront").network
    assert (network.routers, network.router.ports, network.router.link.hop_bits) == (3, 3, 2)
    assert network.path(0, 2) == [(0, 2), (2, 0)]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"links": TRIANGLE["links"][:1]}, "bad.json': router 2: no port of it is connected"),
        (
            {"links": TRIANGLE["links"][:1]},
            "bad.json': node 2 cannot be reached from node 0: a link is missing",
        ),
        (
            {"links": [*TRIANGLE["links"], [[0, 1], [1, 3]]]},
            "bad.json:1: link 3: port 1 of router 0 is taken by link 0",
        ),
        ({"nodes": [[0, 0], [1, 0], [3, 0]]}, "bad.json:1: node 2: there is no router 3; routers are 0 to 2"),
        ({"speed": 1}, "bad.json:1: unknown key 'speed'; valid keys: nodes, links, tables, routers"),
        (
            {"nodes": [[0], [1, 0]]},
            "bad.json:1: nodes[0] = [0]: must have at least 2 values",
        ),
    ],
)
def test_a_network_that_cannot_be_names_the_element(changes, text, tmp_path):
    path = tmp_path / "bad.json"
    values = TRIANGLE | changes
    if text.endswith("connected"):
        values["nodes"] = values["nodes"][:2]
    path.write_text(json.dumps(values))
    with pytest.raises(UserError) as caught:
        parse(NetworkLoad(), [f"network={path}"])
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(UserError, match=r"none\.json' cannot be read: No such file or directory"):
        parse(NetworkLoad(), [f"network={tmp_path}/none.json"])
    (tmp_path / "text.json").write_text("ring")
    with pytest.raises(UserError, match=r"text\.json': not JSON: Expecting value"):
        parse(NetworkLoad(), [f"network={tmp_path}/text.json"])


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (
            ("network=mesh9x9", "routing=source"),
            "17 routers; a route of 128-bit flits with link.hop_bits = 3 holds 16",
        ),
        ("allocator=fast", "allocator = 'fast': some of islip, separable, wavefront"),
        ("allocator=islip,islip", "one is named twice"),
        (
            "routing=tables",
            "routing = 'tables': one of auto, dimension_order, dragonfly, dragonfly_ugal, ",
        ),
        (("network=torus4x4", "routing=source"), "routes can deadlock, each waiting for the next: router "),
        ("routing=torus", "vl_selection = 'same': routing 'torus' chooses the VL: must be 'routing'"),
        (
            "vl_arbiter=fair",
            "vl_arbiter = 'fair': one of deficit, fcfs, fcfs_packet, fixed_priority, round_robin, ",
        ),
        ("pattern=spiral", "pattern"),
        ("hot_node=16", "hot_node = 16: nodes are 0 to 15"),
        ("class_packet_flits=[10,40]", "class_packet_flits has 2 entries: one for each of class_shares"),
        ("class_packet_flits=[0]", "ClassSetup.packet_flits = 0: "),
        ("pattern=table", "ClassSetup.table has 0 destinations: one for each of 16 nodes"),
        ("loads=[0.5,1.5]", "loads: 1.5: above 0 and at most 1"),
        ("class_shares=[0.5,0.4]", "each above 0, their sum 1"),
        ("flit_bits=12", "LinkConfig.flit_bits = 12: must be 32, 64 or 128"),
    ],
)
def test_bad_parameters_are_named(setting, text):
    with pytest.raises(UserError) as caught:
        parse(NetworkLoad(), [setting] if isinstance(setting, str) else [*setting])
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "routing"),
    [
        (["network=mesh8x8"], "source"),
        (["network=mesh9x9"], "dimension_order"),
        (["network=mesh32x32"], "dimension_order"),
        (["network=mesh8x8", "flit_bits=32"], "dimension_order"),
        (["network=torus3x3"], "source"),
        (["network=torus4x4", "vls=4"], "torus"),
        (["network=tree2x10"], "source"),
    ],
)
def test_routing_is_by_destination_where_source_routes_do_not_fit(settings, routing):
    """Nobody has to ask for it. The network says why."""
    system = parse(NetworkLoad(), [*settings, "loads=[0.1]"]).system("separable")
    assert system.network.router.routing == routing
    assert bool(system.network.by_destination) == (routing != "source")


def test_loads_of_sources_that_pause():
    """The mean load of such a source is over its ON and OFF periods."""
    on_off = ["process=on_off", "on_cycles=100", "off_cycles=300"]
    parameters = parse(NetworkLoad(), on_off)
    points = NetworkLoad().points(parameters, "quick")
    assert [point.parameters["load"] for point in points][:4] == [0.05, 0.125, 0.175, 0.25]
    assert points[1].spec["classes"][0]["load"] == 0.5
    with pytest.raises(
        UserError, match=r"loads: 0\.3: at most 0\.25, all of the time that the sources are ON"
    ):
        parse(NetworkLoad(), [*on_off, "loads=[0.3]"])


def test_classes_of_their_own_kind():
    settings = [
        "class_shares=[0.25,0.75]",
        "class_packet_flits=[10,40]",
        'class_patterns=["uniform","hot_spot"]',
    ]
    parameters = parse(
        NetworkLoad(), [*settings, "hot_node=5", "hot_fraction=0.5", "vl_arbiter=fixed_priority"]
    )
    small, large = parameters.classes(0.4)
    assert (small.load, small.packet_flits, small.pattern, small.vl_first, small.vl_count) == (
        0.1,
        10,
        "uniform",
        0,
        7,
    )
    assert (large.packet_flits, large.pattern, large.node, large.hot_fraction) == (40, "hot_spot", 5, 0.5)
    assert parameters.system("separable").network.router.vl_arbiter == "fixed_priority"


def test_the_architectures_compared_are_the_presets():
    parameters = parse(NetworkLoad(), ["network=mesh2x2"])
    for allocator, name in (("separable", "yum2006"), ("wavefront", "high_throughput")):
        assert parameters.system(allocator).network.router == preset(RouterConfig, name).replace(
            routing="source"
        )


def test_pipelined_routers_are_named_in_points_and_plot():
    experiment = NetworkLoad()
    for pipelined in (True, False):
        parameters = parse(
            experiment, ["allocator=separable", "loads=[0.2]", f"pipelined={json.dumps(pipelined)}"]
        )
        (point,) = experiment.points(parameters, "quick")
        results = {OFFERED: 0.2, ACCEPTED: 0.2, "latency_mean_cycles": 50.0, "saturated": False}
        outcome = Outcome(point=point, results=results, seed=1, cycles=1, wall_seconds=1.0)
        experiment.plot(parameters, [outcome], figure := Figure())
        legends = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
        name = "separable, pipelined" if pipelined else "separable"
        assert point.label == f"{name} 0.2" and legends.count(name) == 2
        assert ("of pipelined routers" in figure.get_suptitle()) == pipelined


def test_a_point_for_each_allocator_and_load():
    parameters = parse(NetworkLoad(), ["network=mesh2x2", "loads=[0.1,0.5]"])
    points = NetworkLoad().points(parameters, "quick")
    assert [point.label for point in points] == [
        "separable 0.1",
        "separable 0.5",
        "wavefront 0.1",
        "wavefront 0.5",
    ]
    systems = [NetworkLoad().system(parameters, point) for point in points]
    assert systems[0] == systems[1] != systems[2] == systems[3]
    assert systems[2].network.router.allocator == "wavefront"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"window_cycles": 0}, "window_cycles = 0: at least 1"),
        ({"limit_cycles": 0}, "limit_cycles = 0: at least 1"),
        ({"warmup_cycles": -1}, "warmup_cycles = -1: at least 0"),
        ({"warmup_cycles": (1 << 31) + 1}, "warmup_cycles = 2147483649: at most 2147483648"),
        (
            {"window_cycles": 1 << 27},
            "window_cycles + limit_cycles = 134217728 + 9: at most 134217728, as a packet carries no more of the time "
            "of its birth",
        ),
    ],
)
def test_a_measurement_that_counters_do_not_hold_is_refused(chosen, message):
    fits = {"warmup_cycles": 1 << 31, "window_cycles": (1 << 27) - 9, "limit_cycles": 9}
    check_measurement(**fits)
    with pytest.raises(ConfigError) as caught:
        check_measurement(**(fits | chosen))
    assert str(caught.value) == message
