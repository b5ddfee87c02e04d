"""Channel loads and throughputs of patterns, against numbers that are known, and against the RTL."""

import json

import numpy as np
import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.network_named import network_named
from lanikai.hdl.topologies import topology_named
from lanikai.hdl.traffic.pattern import PERMUTATIONS, permutation
from lanikai.sim.cli import backend, program
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.topology.analysis import analyse
from lanikai.sim.topology.bisection import bisection, counted
from lanikai.sim.topology.layout import layout
from lanikai.sim.topology.loads import PATTERNS, loads_of
from lanikai.sim.topology.measure import SLACK, measure, parameters_of

ROUTER = RouterConfig(link=LinkConfig(vls=4, flit_bits=128))


@pytest.mark.parametrize(
    ("name", "pattern", "largest"),
    [
        # Dally and Towles, chapter 3: uniform traffic on a ring of k puts k / 8 on a link, here without packets to
        # oneself: k^2 / (8 (k - 1)), and half of those half way round go up.
        ("ring(8)", "neighbour", 1),
        ("ring(8)", "tornado", 3),
        ("ring(9)", "uniform", 9 * 10 / 8 / 9),
        ("mesh4x4", "uniform", 16 / 15),
        ("mesh8x8", "uniform", 2 * 64 / 63),
        ("mesh4x4", "bit_complement", 2),
        ("mesh4x4", "transpose", 3),
        ("torus5x5", "uniform", 1),
        ("hypercube(4)", "uniform", 1),
        ("hypercube(4)", "bit_complement", 1),
        ("hypercube(6)", "transpose", 4),
        ("flattened_butterfly(4x4)", "uniform", 1),
        ("kary_tree(4,2)", "tornado", 1),
        ("kary_tree(2,3)", "uniform", 1),
        ("tree2x3", "uniform", 16 / 7),
        ("router8", "shuffle", 1),
    ],
)
def test_the_largest_load_is_the_known_one(name, pattern, largest):
    loads = loads_of(network_named(name, ROUTER), pattern)
    assert loads.largest == pytest.approx(largest)
    assert loads.ideal == pytest.approx(min(1, 1 / largest))
    assert loads.most >= loads.ideal - 1e-12


@pytest.mark.parametrize(
    "name", ["ring(5)", "dragonfly(2,1,1)", "kary_tree(2,3)", "torus4x3", "random_regular(8,3)"]
)
@pytest.mark.parametrize("pattern", ["uniform", "neighbour", "tornado"])
def test_loads_are_those_of_the_twins_ways(name, pattern):
    """Every packet is followed by `Network.path`, one at a time."""
    network = network_named(name, ROUTER)
    nodes = range(len(network.nodes))
    if pattern == "uniform":
        flows = [(a, b, 1 / (len(nodes) - 1)) for a in nodes for b in nodes if a != b]
    else:
        flows = [(a, b, 1.0) for a, b in enumerate(permutation(pattern, len(nodes))) if a != b]
    wanted = np.zeros((network.routers, network.router.ports))
    hops = []
    for source, destination, rate in flows:
        way = network.path(source, destination)
        hops.append(len(way) - 1)
        for router, port in way:
            wanted[router, port] += rate
    loads = loads_of(network, pattern)
    assert np.allclose(loads.channels, wanted)
    assert loads.mean_hops == pytest.approx(np.mean(hops))
    assert loads.most_hops == max(hops)


def test_patterns_are_those_of_the_sources():
    assert ("uniform", *PERMUTATIONS) == PATTERNS
    with pytest.raises(ConfigError, match="pattern transpose: nodes = 8: must be a square number"):
        loads_of(network_named("ring(8)", ROUTER), "transpose")


def test_the_bound_lets_those_send_who_share_no_full_channel():
    network = network_named("chain3", ROUTER)
    loads = loads_of(network, "neighbour")  # 0 -> 1, 1 -> 2, 2 -> 0
    assert (loads.largest, loads.ideal, loads.most) == (1, 1, 1)
    loads = loads_of(network_named("tree2x3", ROUTER), "shuffle")
    # Of 6 senders two flows share each full channel: together they send 1.
    assert (loads.largest, loads.ideal) == (2, 0.5)
    assert 0.5 < loads.most < 1


def test_a_bisection_that_no_formula_has_is_counted_or_bounded():
    assert bisection(network_named("dragonfly(2,1,1)", ROUTER), topology_named("dragonfly(2,1,1)")) == (
        2,
        "counted",
    )
    large = network_named("random_regular(18,3)", ROUTER)
    found, known = bisection(large, topology_named("random_regular(18,3)"))
    assert known == "at most" and found >= counted(large)


def test_the_deadlock_check_has_channels_and_no_cycle():
    found = analyse("ring(8)", network_named("ring(8)", ROUTER), topology_named("ring(8)"))
    assert found.by_vl and found.channels > 16 and found.as_json()["deadlock_cycle"] is None
    assert [one.name for one in found.patterns] == [*PATTERNS]
    assert found.patterns[1].refused == "nodes = 8: must be a square number"


@pytest.mark.parametrize(
    "name",
    [
        "router4",
        "mesh3x2",
        "kary_tree(2,3)",
        "dragonfly(3,1,1)",
        "flattened_butterfly(2x2x2)",
        "random_regular(8,3)",
    ],
)
def test_no_two_routers_stand_at_one_place(name):
    network = network_named(name, ROUTER)
    places = layout(network, topology_named(name))
    assert len({(round(x, 3), round(y, 3)) for x, y in places}) == network.routers


def command(*arguments):
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    return caught.value.code


def test_the_command_prints_draws_and_writes(capsys, tmp_path):
    png, facts = tmp_path / "ring.png", tmp_path / "ring.json"
    assert command("topology", "ring8", "--png", str(png), "--json", str(facts), "--pattern", "tornado") == 0
    text = capsys.readouterr().out
    for line in (
        "ring(8): 8 nodes, 8 routers of 3 ports, 8 links",
        "2 links (closed form)",
        "none: no cycle among",
    ):
        assert line in text
    assert "not transpose: nodes = 8: must be a square number" in text
    assert png.read_bytes().startswith(b"\x89PNG")
    found = json.loads(facts.read_text())
    assert found["diameter"] == 4 and found["bisection_links"] == 2 and found["routing"] == "ring"
    rows = {row["pattern"]: row for row in found["patterns"]}
    assert rows["tornado"]["ideal_flits_per_sender_per_cycle"] == pytest.approx(1 / 3)


def test_the_command_names_the_functions_with_a_choice(capsys):
    """Those that the topology has, and what a name stands for there."""
    settings = ("--set", "routing=ugal", "--set", "vl_selection=routing")
    assert command("topology", "torus4x4", *settings, "--json", "-") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["other_routing"] == ["duato", "valiant", "ugal"]
    for line in (
        "torus_ugal, 4 VLs",
        "duato, valiant, ugal, as routing",
        "torus_ugal leaves packets a choice",
    ):
        assert line in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rng(8)"], "no such topology (did you mean ring(3)?)"),
        (
            ["ring8", "--set", "routing=source"],
            "routes can deadlock, each waiting for the next: router 0 port 1",
        ),
        (["ring8", "--set", "pattern=uniform"], "unknown parameter 'pattern'"),
        (["ring8", "--pattern", "unifrom"], "unknown pattern 'unifrom' (did you mean 'uniform'?)"),
        (
            ["ring8", "--pattern", "transpose", "--png", "x.png"],
            "--pattern transpose: nodes = 8: must be a square number",
        ),
        (["ring8", "--png", "no/folder/x.png"], "--png"),
        (["ring8", "--set", "allocator=separable,wavefront"], "one allocator"),
        (["ring8", "--set", "vls=3", "--set", "routing=ring"], "routing"),
    ],
)
def test_wrong_input_is_told_in_a_line_and_nothing_is_left(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("topology", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("hypercube(2)", ["uniform", "bit_complement"]),
        *(
            pytest.param(name, ["uniform", "neighbour", "tornado"], marks=pytest.mark.full)
            for name in (
                "ring(5)",
                "flattened_butterfly(3)",
                "kary_tree(2,2)",
                "dragonfly(2,1,1)",
                "random_regular(6,3)",
                "tree2x2",
            )
        ),
    ],
)
def test_the_rtl_never_accepts_more_than_the_ideal(name, patterns):
    """At full load nobody gets more than the bound. The slowest gets no more than the ideal rate, or would share a
    channel that carries more than a flit a cycle."""
    settings = ["vls=2", "flit_bits=32"]
    network = parameters_of(name, settings).system("separable").network
    found = measure(name, settings, patterns, seed=1, workers=1, backend=backend.make(ONE_THREAD))
    for pattern, measured in zip(patterns, found, strict=True):
        loads = loads_of(network, pattern)
        print(name, pattern, loads.ideal, loads.most, measured)
        assert 0.1 < measured["accepted_flits_per_sender_per_cycle"] <= loads.most * (1 + SLACK)
        assert measured["least_flits_per_sender_per_cycle"] <= loads.ideal * (1 + SLACK)
        if loads.ideal == 1 and pattern != "uniform":
            # Nothing else is in the way: a bound of half of the truth would be found.
            assert measured["accepted_flits_per_sender_per_cycle"] > 0.9
