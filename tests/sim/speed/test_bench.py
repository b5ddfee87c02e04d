"""`lanikai bench`: medians, ratios, comparison with an earlier report, wrong input; one real measurement."""

import json
from pathlib import Path

import pytest
from lanikai.hdl.config import HcaConfig, LinkConfig, RouterConfig, preset
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.sim.cli import program
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.speed.cases import CASES, LOADS, BenchCase, find_cases
from lanikai.sim.speed.report import BenchReport, earlier, result
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig
from lanikai.sim.systems.message_config import MessageNetworkConfig
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig

CASE = BenchCase(model="router2", load=0.3, cycles=1000)
KEPT_KEYS = {
    *("case", "load", "cycles_per_second", "plain_loop_cycles_per_second", "runs", "spread"),
    *("build_seconds", "peak_memory_mb"),
}
"""Keys of a row that scripts rely on."""
MODELS = ("mesh4x4", "mesh5x5", "mesh8x8", "router8", "hosts-mesh4x4", "adapters-mesh4x4", "gm-cluster")
SIZES = ("mesh16x16", "mesh32x32", "gm-cluster16", "gm-cluster64", "gm-cluster128")
SMALL = RouterConfig(
    link=LinkConfig(flit_bits=32, vls=2), ports=2, input_buffer_flits=4, output_buffer_flits=4
)


def test_medians():
    """The ratio is the median of the pairs' ratios, not the ratio of medians of different moments."""
    measured = {"samples": [[100.0, 200.0], [300.0, 310.0], [50.0, 100.0]], "memory_bytes": 7}
    one = result(CASE, measured, 12.5)
    assert (one.cycles_per_second, one.plain_loop_cycles_per_second, one.ratio) == (100.0, 200.0, 0.5)
    assert (one.runs, one.spread, one.build_seconds, one.peak_memory_mb) == (3, 2.5, 12.5, 7e-6)
    alone = result(CASE, {"samples": [[1.0], [3.0], [2.0]], "memory_bytes": 7}, None)
    assert alone.cycles_per_second == 2.0 and alone.ratio is None


def test_comparison(tmp_path):
    """Ratios to an earlier report, with the machine that it was made on."""
    measured = {"samples": [[100.0, 200.0]], "memory_bytes": 7}
    first = BenchReport(results=[result(CASE, measured, None)]).as_json()
    path = tmp_path / "before.json"
    path.write_text(json.dumps(first))
    faster = {"samples": [[150.0, 200.0]], "memory_bytes": 7}
    other = BenchCase(model="mesh9x9", load=0.1, cycles=1)
    report = BenchReport(
        results=[result(CASE, faster, None), result(other, faster, None)], before=earlier(path)
    )
    assert report.as_json()["compared"]["ratios"] == {"router2@0.3": 1.5}
    assert report.as_json()["compared"]["machine"] == first["machine"]
    assert report.table().row_count == 2


def test_cases():
    """Four loads of four networks and of one with hosts, three of one with adapters, and larger sizes; a name is a
    model or a model at a load."""
    assert len([case for case in CASES if case.model in MODELS]) == 5 * len(LOADS) + 3 + 1
    assert [case.model for case in CASES if case.model not in MODELS] == list(SIZES)
    assert find_cases([], full=True) == list(CASES)
    assert [case.name for case in find_cases(["mesh4x4@0.3", "gm-cluster"])] == ["mesh4x4@0.3", "gm-cluster"]
    assert len(find_cases(["mesh4x4", "mesh4x4@0.3"])) == 4
    assert find_cases([]) == [case for case in CASES if not case.large]
    for case in CASES:
        assert case.system() and case.job(3)[1]["runs"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "mesh3x3"], "unknown case 'mesh3x3' (did you mean 'mesh32x32'?); valid cases:"),
        (["--compare", "nowhere.json"], "--compare 'nowhere.json' cannot be read: No such file or directory"),
        (["--compare", "list.json"], "--compare 'list.json': no report of a bench"),
        (["--compare", "text.json"], "--compare 'text.json': not JSON"),
        (["--json", "absent/x.json"], "there is no folder 'absent'"),
    ],
)  # fmt: skip
def test_wrong_input(arguments, message, tmp_path, monkeypatch, capsys):
    """One line, and nothing is built."""
    monkeypatch.chdir(tmp_path)
    Path("list.json").write_text("[]")
    Path("text.json").write_text("bench")
    monkeypatch.setattr(BenchCase, "system", lambda self: pytest.fail("something is built"))
    with pytest.raises(SystemExit) as ended:
        program.main(["bench", *arguments])
    error = capsys.readouterr().err
    assert ended.value.code == 2 and message in error.splitlines()[0]
    assert all(line.startswith("  ") for line in error.splitlines()[1:])  # valid names


def test_a_measurement(tmp_path, monkeypatch):
    """A small network, for real: stretches under cocotb and by the model alone."""
    config = TrafficNetworkConfig(network=named_network("router2", SMALL))
    monkeypatch.setattr(BenchCase, "system", lambda self: config)
    monkeypatch.setattr(
        BenchCase, "job", lambda self, runs: ("lanikai.sim.speed.points:network_rate", spec | {"runs": runs})
    )

    setup = ClassSetup(load=0.3, packet_flits=8, vl_count=2)
    spec = {"cycles": 2000, "warmup_cycles": 500, "classes": [setup.model_dump(mode="json")]}
    path = tmp_path / "bench.json"
    with pytest.raises(SystemExit) as ended:
        program.main(["bench", "--case", "router8@0.3", "--runs", "3", "--json", str(path)])
    assert ended.value.code == 0
    (one,) = json.loads(path.read_text())["rows"]
    assert (
        set(one) >= KEPT_KEYS
        and (one["case"], one["load"]) == ("router8@0.3", 0.3)
        and len(one["samples"]) == 3
    )
    assert all(len(pair) == 2 and min(pair) > 0 for pair in one["samples"])
    assert one["peak_memory_mb"] > 1
    assert earlier(path)["rows"] == [one]


@pytest.mark.full
def test_hosts_in_python(tmp_path, monkeypatch, capsys):
    """A small network of hosts, for real: every message checked, and a profile whose parts are a whole cycle."""
    config = MessageNetworkConfig(network=named_network("router3", SMALL))
    spec = {"cycles": 3000, "warmup_cycles": 500, "load": 0.2, "packet_flits": 8, "vls": 2}
    monkeypatch.setattr(BenchCase, "system", lambda self: config)
    entry = "lanikai.sim.speed.host_points:hosts_rate"
    monkeypatch.setattr(BenchCase, "job", lambda self, runs: (entry, spec | {"runs": runs}))
    path = tmp_path / "bench.json"
    with pytest.raises(SystemExit) as ended:
        program.main(["bench", "--case", "hosts-mesh4x4@0.3", "--runs", "1", "--json", str(path)])
    assert ended.value.code == 0 and "microseconds a cycle" in capsys.readouterr().out
    (one,) = json.loads(path.read_text())["rows"]
    ((whole, alone),) = one["samples"]
    assert whole > 0 and alone > 0
    # `cycles` of the case that was named, not of the small one.
    (case,) = find_cases(["hosts-mesh4x4@0.3"])
    assert sum(one["profile"].values()) * case.cycles == pytest.approx(3000 * 1e6 / whole)
    # A load of 0.2 on three nodes is a message in about 13 cycles.
    assert 150 < one["hosts"]["messages"] < 300
    # The sender's and the receiver's; a few messages were posted before the stretch, or arrive after it.
    assert 1.9 < one["hosts"]["wakeups_per_message"] < 2.1
    # Eight flits, a router of five cycles, registers and wires; queues besides.
    assert 14 < one["hosts"]["mean_latency_cycles"] < 40


@pytest.mark.full
def test_adapters(tmp_path, monkeypatch):
    """A small network of adapters, for real: every byte checked. On threads, too."""
    hca = preset(HcaConfig, "tiny")
    router = SMALL.replace(link=hca.link, ports=3)
    config = AdapterNetworkConfig.on(named_network("router3", router), hca)
    spec = {"cycles": 3000, "warmup_cycles": 500, "load": 0.2, "packet_flits": 5, "vls": 2}
    monkeypatch.setattr(BenchCase, "system", lambda self: config)
    entry = "lanikai.sim.speed.adapter_points:adapters_rate"
    monkeypatch.setattr(BenchCase, "job", lambda self, runs: (entry, spec | {"runs": runs}))
    path = tmp_path / "bench.json"
    for options in ([], ["--threads", "2"]):
        with pytest.raises(SystemExit) as ended:
            program.main(
                ["bench", "--case", "adapters-mesh4x4@0.3", "--runs", "2", "--json", str(path), *options]
            )
        assert ended.value.code == 0
        (one,) = json.loads(path.read_text())["threads" if options else "rows"]
        assert len(one["samples"]) == 2 and all(min(pair) > 0 for pair in one["samples"])
