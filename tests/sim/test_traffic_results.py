"""Results of network experiments from counts, and the networks and parameters that have names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.network_load import NetworkLoad, named_network
from lanikai.sim.experiments.parameters import parse
from lanikai.sim.experiments.traffic_results import percentile, traffic_results


def counts(**changes):
    """Of a class at a node: 2 packets of 10 flits, born and received there in a window of 100 cycles."""
    return {
        "offered_packets": 2,
        "offered_flits": 20,
        "accepted_flits": 20,
        "deferred_cycles": 0,
        "latency_packets": 2,
        "latency_sum_cycles": 50,
        "latency_min_cycles": 20,
        "latency_max_cycles": 30,
        "histogram": [[20, 1], [31, 1]],
    } | changes


def measured(*nodes, saturated=False):
    return {"saturated": saturated, "window_cycles": 100, "drain_cycles": 7, "counts": nodes}


def test_results_of_one_class():
    found = traffic_results(measured([counts()], [counts(latency_sum_cycles=70, latency_max_cycles=40)]))
    assert found == {
        "offered_flits_per_node_per_cycle": 0.2,
        "accepted_flits_per_node_per_cycle": 0.2,
        "latency_mean_cycles": 30,
        "latency_p99_cycles": 31,
        "latency_max_cycles": 40,
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


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 30), min_size=1), st.integers(1, 100))
def test_percentile_is_the_nearest_rank(values, percent):
    histogram = {value: values.count(value) for value in values}
    rank = -(-percent * len(values) // 100)
    assert percentile(histogram, percent / 100) == sorted(values)[rank - 1]


@pytest.mark.parametrize(
    ("name", "nodes", "routers", "ports"),
    [("router8", 8, 1, 8), ("mesh3x2", 6, 6, 5), ("chain4", 4, 4, 3), ("router2", 2, 1, 2)],
)
def test_named_networks(name, nodes, routers, ports):
    network = named_network(name, RouterConfig())
    assert (len(network.nodes), network.routers, network.router.ports) == (nodes, routers, ports)


@pytest.mark.parametrize("name", ["ring4", "mesh4", "router1", "router65", "mesh1x1", "mesh4x4x4", ""])
def test_networks_without_a_name(name):
    with pytest.raises(ConfigError, match="one of router2 to router64, mesh1x2 to mesh8x8"):
        named_network(name, RouterConfig())


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("network=mesh9x9", "17 routers; a route of 128-bit flits with link.hop_bits = 3 holds 16"),
        ("allocator=fast", "allocator = 'fast': some of islip, separable, wavefront"),
        ("allocator=islip,islip", "one is named twice"),
        ("loads=[0.5,1.5]", "loads: 1.5: above 0 and at most 1"),
        ("class_shares=[0.5,0.4]", "each above 0, their sum 1"),
        ("flit_bits=12", "LinkConfig.flit_bits = 12: Input should be 32, 64 or 128"),
    ],
)
def test_bad_parameters_are_named(setting, text):
    with pytest.raises(UserError) as caught:
        parse(NetworkLoad(), [setting])
    assert text in str(caught.value)


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
