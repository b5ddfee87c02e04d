"""Waves: the FST's names as another reader has them, and a save file that names nothing else."""

import re

import pytest
from lanikai.hdl.packet import Kind
from lanikai.sim.build.compiler import require_trace_header
from lanikai.sim.build.model import build
from lanikai.sim.errors import MissingTool, UserError
from lanikai.sim.run import run
from lanikai.sim.systems.cluster import cluster_preset
from lanikai.sim.waves.fst import Variable, _lz4, end_time, read_hierarchy, waveforms
from lanikai.sim.waves.save_file import (
    KIND_IDLE,
    NODE,
    ROUTER,
    ROUTER_STATE,
    WAVE_PIXELS,
    ZOOM_PIXELS,
    composed_path,
    group_variables,
    gtkwave_name,
)
from lanikai.sim.waves.window import LIMIT_MB, WaveWindow

pytestmark = pytest.mark.xdist_group("waves")


@pytest.fixture(scope="module", autouse=False)
def tracing():
    """Skips where FST tracing cannot be compiled."""
    try:
        require_trace_header()
    except MissingTool as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def traced(tracing, tiny_config, tmp_path_factory):
    """The waves of two packets."""
    model = tiny_config.build("waves")
    job = tiny_config.job("support.sim.sim_points:packets", {"count": 2, "bytes": 128})
    result = run(model, *job, out_dir=tmp_path_factory.mktemp("waves"), name="point")
    assert result.value["equal"] and result.waves is not None
    return result.waves


def save_file_traces(waves):
    """Names of the traces in the save file."""
    names = []
    for line in waves.with_suffix(".gtkw").read_text().splitlines():
        found = re.fullmatch(r"\+\{[^}]*\} (.*)", line)
        if found:
            names.append(found[1])
    return names


def test_names_are_those_of_another_reader(traced):
    """Our reader of the hierarchy and pywellen agree."""
    import pywellen

    # pywellen makes scopes of memories, whose rows are variables.
    theirs = {re.sub(r" ?\[-?\d+:\d+\]$", "", v.full_name) for v in pywellen.Waveform(str(traced)).all_vars()}
    ours = {re.sub(r" \[-?\d+:\d+\]$", "", variable.path) for variable in read_hierarchy(traced)}
    assert {name for name in ours if "[" not in name} == {name for name in theirs if "[" not in name}
    assert len(ours) == len(theirs)


def test_save_file_names_what_is_there(traced):
    """Every trace of the save file is in the FST, and each component has its group."""
    there = {gtkwave_name(variable) for variable in read_hierarchy(traced)}
    traces = save_file_traces(traced)
    assert traces and set(traces) <= there
    text = traced.with_suffix(".gtkw").read_text()
    for group in ("time", "node0", "node1", "router0", "port1", "watchdog", *NODE):
        assert f"-{group}\n" in text
    # Nothing of the tables is missing for want of the right name.
    paths = [f"cluster.{composed_path(path).replace('#', '1')}" for paths in NODE.values() for path in paths]
    paths += [f"cluster.network.router0.{path.replace('%', '1')}" for path in (*ROUTER, *ROUTER_STATE)]
    assert {*paths, "cluster.clk", "cluster.cycle"} <= {name.partition("[")[0] for name in traces}
    # Few enough to look through.
    assert len(traces) < 200


def test_save_file_shows_the_run(traced):
    """The first groups are open, all of the time is in the window."""
    text = traced.with_suffix(".gtkw").read_text()
    opened = [
        group for flags, group in re.findall(r"@(800|c00)200\n((?:-[^\n]+\n)+)", text) if flags == "800"
    ]
    assert {"-time\n", "-node0\n-link\n"} <= set(opened)
    zoom = float(re.search(r"^\*(\S+) ", text, re.MULTILINE)[1])
    steps_shown = 2**-zoom * WAVE_PIXELS / ZOOM_PIXELS
    assert steps_shown == pytest.approx(end_time(traced), rel=0.01)
    import pywellen

    times = [
        time
        for time, _ in next(
            v for v in pywellen.Waveform(str(traced)).all_vars() if v.full_name.endswith("cluster.cycle")
        ).tv
    ]
    assert 1000 < times[-1] <= end_time(traced) < times[-1] + 10


def test_the_folder_can_be_moved(traced):
    """The save file names its files relative to its folder."""
    text = traced.with_suffix(".gtkw").read_text()
    assert '[dumpfile] "point.fst"' in text
    named = re.findall(r"^\^\d+ (.*)$", text, re.MULTILINE)
    assert named and all((traced.parent / name).is_file() and "/" not in name for name in named)


def test_each_time_step_is_written_once(traced):
    """The file has the last value of a step: none is written before it has settled and then ignored."""
    assert "ignored" not in traced.with_name("point.log").read_text()


def test_enums_are_decoded(traced):
    """The kinds of packets go through a filter file that names them all."""
    text = traced.with_suffix(".gtkw").read_text().splitlines()
    at = next(i for i, line in enumerate(text) if line.endswith("cluster.node0.tx_packet.kind[3:0]"))
    filter_file = traced.with_name("point.packet_kind.filter")
    assert text[at - 1].partition(" ")[2] == filter_file.name
    lines = [f"{kind.value:x} {kind.name}" for kind in Kind] + [f"{KIND_IDLE:x} -"]
    assert filter_file.read_text().splitlines() == lines
    assert traced.with_name("point.bus_use.filter").read_text().splitlines()[3] == "3 DMA_WRITE"
    # States of state machines by the names that the RTL gives them.
    states = ["IDLE", "ARBITRATE", "ADDRESS", "PROGRAMMED", "WAIT", "READ", "WRITE", "TURN"]
    found = traced.with_name("point.bus_state.filter").read_text().splitlines()
    assert found == [f"{value} {name}" for value, name in enumerate(states)]
    at = next(i for i, line in enumerate(text) if line.endswith("cluster.node0.host.bus_state[2:0]"))
    assert text[at - 1].endswith(" point.bus_state.filter")


def test_values_are_recorded(traced):
    """The header of each of the two packets is in the waves."""
    import pywellen

    waveform = pywellen.Waveform(str(traced))
    variable = next(v for v in waveform.all_vars() if v.full_name.endswith("node0.tx_packet.kind"))
    values = [int(value) for _, value in variable.tv]
    # The kind is shown while flits pass, so again after a gap in a packet.
    assert values.count(Kind.DATA.value) >= 2 and set(values) <= {Kind.DATA.value, KIND_IDLE}


def values_of(waves, end):
    """The values that a variable of the waves takes, by the end of its name, and when."""
    import pywellen

    variable = next(v for v in pywellen.Waveform(str(waves)).all_vars() if v.full_name.endswith(end))
    return [(time, int(value)) for time, value in variable.tv]


@pytest.mark.parametrize(
    "where", ["node0.tx_packet", "router0.port0_rx", "router0.port1_tx", "node1.rx_packet"]
)
def test_a_packet_can_be_followed_from_hop_to_hop(traced, where):
    """Its head, its tail and its header's fields on each link, and nothing between packets."""
    parts = [value for _, value in values_of(traced, f"{where}.part")]
    assert parts.count(0) == parts.count(2) == 2 and 1 in parts
    assert parts[-1] == 3  # nothing passes at the end
    for name, bits, value in (("kind", 4, Kind.DATA.value), ("source", 10, 0), ("destination", 10, 1)):
        seen = {one for _, one in values_of(traced, f"{where}.{name}")}
        # All bits set between packets, and until the flit with the field has come.
        assert value in seen and seen <= {value, (1 << bits) - 1, 0}, (name, seen)


def test_a_window_of_some_instances(tiny_config, traced, tmp_path_factory, monkeypatch):
    """Waves begin and end where they are asked to, and hold no other instance's signals."""
    model = tiny_config.build("waves")
    job = tiny_config.job("support.sim.sim_points:packets", {"count": 2, "bytes": 128})
    folder = tmp_path_factory.mktemp("window")
    window = WaveWindow(first_cycle=300, cycles=100, instances=("node0",))
    found = run(model, *job, out_dir=folder, name="point", window=window).waves
    import pywellen

    waveform = pywellen.Waveform(str(found))
    assert end_time(found) <= 4000
    cycles = [
        int(value) for _, value in next(v for v in waveform.all_vars() if v.full_name == "cluster.cycle").tv
    ]
    assert cycles[0] <= 301 and 395 <= cycles[-1] <= 401
    names = {variable.full_name for variable in waveform.all_vars()}
    assert any(name.startswith("cluster.node0.nic.") for name in names)
    assert not any(name.startswith(("cluster.node1.", "cluster.network.")) for name in names)
    # A file that has its largest size is whole, and the log says where it ends.
    small = WaveWindow(cycles=0, limit_mb=1)
    monkeypatch.setattr(WaveWindow, "arguments", lambda self, top: ["--trace-limit", "20000"])
    job = tiny_config.job("support.sim.sim_points:packets", {"count": 20, "bytes": 128})
    done = run(model, *job, out_dir=folder, name="small", window=small)
    log = (folder / "small.log").read_text()
    (ended,) = re.findall(r"waves: end in cycle (\d+): 0 MB are written, the limit", log)
    assert end_time(done.waves) <= 10 * int(ended) < 10 * (done.cycles - 100)


def test_waveforms_stand_in_the_order_of_points_and_seeds(tmp_path):
    """The letters of their names do not matter. Waveforms of an earlier run that are set aside are none of this
    one's."""
    names = ["points/00-0", "points/00-2", "points/00-11", "points/02-0", "points/100-0"]
    for name in [*reversed(names), ".lanikai-earlier/points/00"]:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "point.fst").touch()
    assert waveforms(tmp_path) == [tmp_path / name / "point.fst" for name in names]


def test_names_of_instances():
    """Names that can be chosen, and names that are refused in a line."""
    window = WaveWindow.of(" node1, router0 ", cycles=5)
    assert window.instances == ("node1", "router0")
    arguments = window.arguments("cluster")
    assert arguments[-2:] == ["--trace-top", "cluster"] and "cluster.nic1" in arguments
    assert "cluster.network.router0" in arguments and "cluster.nic0" not in arguments
    for text, fault in (
        ("nic1", "--waves-of 'nic1': node0, node1, ..., router0"),
        ("node", "--waves-of 'node'"),
        ("node01", "--waves-of 'node01'"),
        ("router\N{ARABIC-INDIC DIGIT THREE}", "--waves-of 'router"),
    ):
        with pytest.raises(UserError, match=re.escape(fault)):
            WaveWindow.of(text)
    cluster = cluster_preset("tiny")
    WaveWindow.of("node1,router0").check(cluster)
    with pytest.raises(UserError, match=r"^--waves-of router1: routers are router0 to router0$"):
        WaveWindow.of("router1").check(cluster)
    # 100 cycles of two nodes are next to nothing; a long window is held by the limit.
    assert WaveWindow(cycles=100).estimate_mb(cluster) == pytest.approx(0.05)
    assert WaveWindow(cycles=10**9).estimate_mb(cluster) == LIMIT_MB
    assert WaveWindow(cycles=0).estimate_mb(cluster) is None


def test_groups_of_a_network_under_load():
    """Nodes, routers and the measurement have groups, in which variables worth a look stand by their names."""
    variables = [
        Variable(("network_bench",), name, 1)
        for name in (
            "clk",
            "cycle",
            "phase [2:0]",
            "other",
        )
    ]
    variables += [
        Variable(("network_bench", "node0", "tx_packet"), "kind [3:0]", 4),
        Variable(("network_bench", "node0"), "born", 1),
        Variable(("network_bench", "network", "router0", "port1_rx"), "flow [11:0]", 12),
        Variable(("network_bench", "network", "router0"), "rx__1__valid", 1),
        Variable(("network_bench", "network", "router0"), "held__1", 1),
        Variable(("network_bench", "node0"), "inside", 1),
    ]
    found = group_variables(variables)
    assert list(found) == ["time", "measurement", "node0", "router0"]
    assert [v.name for v in found["measurement"]] == ["phase [2:0]"]
    assert [v.name for v in found["node0"]] == ["kind [3:0]", "born"]
    assert [v.name for v in found["router0"]["port1"]] == ["flow [11:0]", "held__1"]


def test_groups_of_any_design():
    """Another design's signals are grouped by instance, a tool's own names left out."""
    variables = [
        Variable(("$rootio",), "q", 1),
        Variable(("top",), "q", 1),
        Variable(("top",), "$1", 1),
        Variable(("top", "part"), "x [3:0]", 4),
        Variable(("top",), "r", 1),
    ]
    assert group_variables(variables) == {
        "top": {"signals": [variables[1], variables[4]], "part": [variables[3]]}
    }


def test_lz4():
    """A block with literals, an overlapping match and a long length, by hand from the format's document."""
    block = bytes([0x3F, *b"abc", 3, 0, 255, 2, 0x10, ord("z")])
    # 3 literals, a match of 15 + 255 + 2 + 4 bytes at distance 3, then the last literal.
    assert _lz4(block, 280) == b"abc" * 93 + b"z"


def test_not_an_fst_file(tmp_path):
    """A file without a hierarchy is named."""
    path = tmp_path / "x.fst"
    path.write_bytes(b"\x00" * 4)
    with pytest.raises(ValueError, match=r"x\.fst: no hierarchy; the file is not a whole FST file$"):
        read_hierarchy(path)


def test_missing_header_is_said_before_building(monkeypatch, tmp_path):
    """Without lz4.h a traced build ends before it begins."""
    from lanikai.sim.build import model as build_module
    from lanikai.sim.build.cache import Cache

    def missing():
        raise MissingTool("lz4.h (needed for wave files)", "sudo apt-get install liblz4-dev")

    monkeypatch.setattr(build_module, "require_trace_header", missing)
    design = build_module.Design(top="little", sources={"little.v": "module little(input clk);\nendmodule\n"})
    with pytest.raises(MissingTool, match="liblz4-dev"):
        build(design, "waves", cache=Cache(tmp_path))
    assert not (tmp_path / "models").exists()
