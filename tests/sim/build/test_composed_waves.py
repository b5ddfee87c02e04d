"""Waves of a composed design: the same names and the same values at the same times as those of one model."""

import re
from bisect import bisect_right

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import mesh
from lanikai.hdl.packet import Kind
from lanikai.sim.build.compiler import require_trace_header
from lanikai.sim.build.packet_view import FIELDS, NODE_ENDS
from lanikai.sim.build.scopes import UnexpectedCode, rename_scopes
from lanikai.sim.errors import MissingTool
from lanikai.sim.run import run
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from lanikai.sim.waves.fst import read_hierarchy
from lanikai.sim.waves.save_file import ROUTER, ROUTER_STATE, TRAFFIC_NODE
from lanikai.sim.waves.window import WaveWindow

LINK = LinkConfig(flit_bits=32, vls=2, rate_num=1, rate_den=1)
SMALL = TrafficNetworkConfig(
    network=mesh(
        2,
        1,
        router=RouterConfig(link=LINK, ports=5, input_buffer_flits=4, output_buffer_flits=3),
        node_buffer_flits=6,
    ),
    classes=1,
    queue_packets=4,
    histogram_sub_bits=0,
)
WINDOW = WaveWindow(first_cycle=300, cycles=600)


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A function that gives the waves of a run with a window and `composed`."""
    try:
        require_trace_header()
    except MissingTool as error:
        pytest.skip(str(error))

    def waves(window=WINDOW, **fields):
        config = SMALL.replace(**fields)
        spec = {
            "classes": [{"load": 0.2, "packet_flits": 7, "vl_count": 2}],
            "trace": [],
            "check": False,
        }
        job = config.job("support.sim.parts_points:measured", spec)
        folder = tmp_path_factory.mktemp("waves")
        return run(config.build("waves"), *job, out_dir=folder, seed=11, window=window)

    return waves


@pytest.fixture(scope="module")
def composed(traced):
    """The run with all instances in its waves."""
    return traced()


def variables(waves):
    """The variables of an FST file by name, without those that Yosys made up."""
    import pywellen

    found = {}
    for one in pywellen.Waveform(str(waves)).all_vars():
        name = re.sub(r" ?\[-?\d+:\d+\]$", "", one.full_name)
        if "$" not in name:
            found.setdefault(name, one)
    return found


def test_names_are_those_of_one_model(composed):
    """The names that a save file has of routers and nodes are there, each scope with one name."""
    names = {variable.path.partition(" [")[0] for variable in read_hierarchy(composed.waves)}
    wanted = [path.replace("#", "1") for path in TRAFFIC_NODE]
    wanted += [f"network.router0.{path.replace('%', '1')}" for path in (*ROUTER, *ROUTER_STATE)]
    assert {f"network_bench.{name}" for name in wanted} <= names
    assert not [name for name in names if re.search(r"_(block|instance)\b", name)]
    text = composed.waves.with_suffix(".gtkw").read_text()
    for group in ("time", "measurement", "node0", "node1", "router0", "router1", "port2"):
        assert f"-{group}\n" in text


def test_the_clock_is_the_design_s(composed):
    """A block's own clock has an edge a cycle; the waves show the clock that it stands for."""
    found = variables(composed.waves)
    top = list(found["network_bench.clk"].tv)
    assert len(top) > 1000
    for name in ("network.router1", "network.router0.receive_0", "node0", "node1.source"):
        assert list(found[f"network_bench.{name}.clk"].tv) == top
    assert any(time % 10 == 0 for time, _ in found["network_bench.network.router0.tx__0__valid"].tv)


def test_packets_can_be_followed(composed):
    """Heads and tails pass at every end of the links between the nodes."""
    found = variables(composed.waves)
    nodes = [f"node{node}.{view}" for node in range(2) for view in NODE_ENDS]
    routers = [f"network.router{router}.port{router + 1}_{end}" for router in (0, 1) for end in ("rx", "tx")]
    for place in (*nodes, *routers):
        parts = [value for _, value in found[f"network_bench.{place}.part"].tv]
        assert parts.count(0) > 3 and parts.count(2) > 3
        assert Kind.DATA.value in [value for _, value in found[f"network_bench.{place}.kind"].tv]
        assert all(f"network_bench.{place}.{field}" in found for field in FIELDS)


def at(variable, time):
    """The value of a variable at a time, in steps."""
    changes = list(variable.tv)
    return changes[bisect_right(changes, time, key=lambda change: change[0]) - 1][1]


def test_chosen_instances_alone_are_written(traced, composed):
    """The others write nothing, and what is written is the same."""
    some = traced(WaveWindow(first_cycle=300, cycles=600, instances=("router1", "node0")))
    assert some.value == composed.value
    found, whole = variables(some.waves), variables(composed.waves)
    places = {".".join(name.split(".")[1:3]) for name in found if name.count(".") > 1}
    assert {place for place in places if place.startswith("network")} == {"network.router1"}
    assert {place.partition(".")[0] for place in places} == {"network", "node0"}
    assert {"network_bench.cycle", "network_bench.phase"} <= found.keys()
    assert len(found) > 1000
    differs = {name for name, one in found.items() if list(one.tv) != list(whole[name].tv)}
    # A neighbour that is not written passes over its data while it sends nothing: those wires keep an older flit.
    assert not {name for name in differs if not re.search(r"rx.*\.(payload|flit|data)|rx.*payload", name)}, (
        differs
    )
    for link in (name.removesuffix("payload") for name in differs if name.endswith("payload")):
        valid = found.get(f"{link}valid")
        if valid is not None:
            # Sample phases in which a flit is there: at least one, or the test has seen nothing.
            first, last = (list(valid.tv)[place][0] for place in (0, -1))
            times = [time for time in range(first // 10 * 10 + 9, last, 10) if at(valid, time) == 1]
            assert times
            for time in times:
                assert at(found[f"{link}payload"], time) == at(whole[f"{link}payload"], time)


@pytest.mark.full
def test_values_are_those_of_one_model(traced, composed):
    """Every variable that both have takes the same values at the same times.

    Those inside of the buffers, which are of another memory, are not compared.
    """
    plain = traced(composed=False)
    assert plain.value | {"share": None} == composed.value | {"share": None}
    found, whole = variables(composed.waves), variables(plain.waves)
    both = found.keys() & whole.keys()
    other = {
        name
        for name in whole.keys() - found.keys()
        if re.match(r"network_bench\.(node\d+|network\.router\d+)\.", name)
    }
    # Only a source's queue has variables of its own for each kind of memory.
    assert all(".queue." in name or ".buffer." in name for name in other), sorted(other)[:9]
    assert len(both) > 5000
    assert not [name for name in both if list(found[name].tv) != list(whole[name].tv)]


def test_code_of_another_verilator_is_refused(tmp_path):
    """Scopes are renamed once each; C++ that is not as expected is no block's without a word."""
    (tmp_path / "Vx__Syms__Slow.cpp").write_text(
        'a = new VerilatedScope{this, "x_instance.x_block", "x_block", "x"};\n'
        'b = new VerilatedScope{this, "x_instance.x_block.sub", "sub", "sub"};\n'
    )
    rename_scopes(tmp_path, prefix="Vx", module="x_instance", block="x_block")
    text = (tmp_path / "Vx__Syms__Slow.cpp").read_text()
    assert '{this, "", blocks::last_name(name()), "x"}' in text and '{this, "sub", "sub", "sub"}' in text
    (tmp_path / "Vx__Trace__0__Slow.cpp").write_text('VL_TRACE_PUSH_PREFIX(tracep, "x_instance", 0, 0);\n')
    (tmp_path / "Vx.cpp").write_text("")
    with pytest.raises(UnexpectedCode, match=r"x_block.* is 0 times in Vx__Trace__\*\.cpp, not once"):
        rename_scopes(tmp_path, prefix="Vx", module="x_instance", block="x_block")
