"""network-load by the command line, and the traffic network on it: throughput, latency, verdict, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lanikai.hdl.config import RouterConfig, preset
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.measure.traffic_results import ACCEPTED, MEASURE, OFFERED, traffic_results
from lanikai.sim.experiments.network_load import NetworkLoadParameters
from lanikai.sim.run import run

# Small enough to build in well under a minute: one worker for all, they share one build.
pytestmark = pytest.mark.xdist_group("traffic network")
SETTINGS = {"network": "router3", "allocator": "wavefront", "vls": 4, "packet_flits": 10, "flit_bits": 64}
PARAMETERS = NetworkLoadParameters(**SETTINGS, class_shares=[0.25, 0.75])


@pytest.fixture(scope="module")
def model():
    return PARAMETERS.system("wavefront").build()


def at_full_load(network, allocator, folder):
    parameters = NetworkLoadParameters(network=network, allocator=allocator, flit_bits=32)
    spec = {
        "classes": [setup.model_dump(mode="json") for setup in parameters.classes(1.0)],
        "warmup_cycles": 10_000,
        "window_cycles": 10_000,
        "limit_cycles": 1,
    }
    system = parameters.system(allocator)
    entry, whole = system.job(MEASURE, spec)
    return traffic_results(run(system.build(), entry, whole, out_dir=folder, seed=1).value)


@pytest.mark.parametrize(
    ("network", "least"),
    [
        pytest.param("router8", 0.90, marks=pytest.mark.full),
        pytest.param("mesh4x4", 0.75, marks=pytest.mark.full),
    ],
)
def test_high_throughput_accepts_what_it_must(network, least, tmp_path):
    """The case is uniform traffic, 40-flit packets, 16 VLs of 10 flits, a queue a VL at the sources, full load.

    An input-queued router accepts 0.55 and 0.59 (BookSim 2.0). Narrow flits are built faster, and the control path is
    the same.
    """
    found = at_full_load(network, preset(RouterConfig, "high_throughput").allocator, tmp_path)
    assert found[OFFERED] == pytest.approx(1.0, rel=0.02)
    assert least <= found[ACCEPTED] < 1


@pytest.mark.full
@pytest.mark.parametrize(("network", "least"), [("router8", 0.85), ("mesh4x4", 0.75)])
def test_the_documents_architecture_leaves_no_output_idle_either(network, least, tmp_path):
    """One choice an input and one an output, and nothing after them, once accepted 0.66 and 0.72."""
    found = at_full_load(network, preset(RouterConfig, "yum2006").allocator, tmp_path)
    assert least <= found[ACCEPTED] < 1


def point(
    model, folder, *, load, seed=1, entry="lanikai.sim.experiments.measure.traffic_results:measure", **changes
):
    spec = {
        "classes": [setup.model_dump(mode="json") for setup in PARAMETERS.classes(load)],
        "warmup_cycles": 1000,
        "window_cycles": 8000,
        "limit_cycles": 600,
    }
    entry, whole = PARAMETERS.system("wavefront").job(entry, spec | changes)
    return run(model, entry, whole, out_dir=folder, seed=seed).value


def test_a_sweep_by_the_command_line(model, tmp_path):
    arguments = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    arguments += ["--set=class_shares=[0.25,0.75]", "--set=loads=[0.05,0.6,1.0]", "--json", "-", "--out", "r"]
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "network-load",
        *arguments,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == 0 and all(claim["holds"] for claim in found["claims"]), found["claims"]
    idle, half, full = (one["results"] for one in found["points"])
    # Idle: source 2, router 5, 9 more flits behind the head; other packets in the way now and then.
    assert 16 <= idle["latency_mean_cycles"] < 20
    assert idle["latency_mean_cycles"] < half["latency_mean_cycles"]
    for one, load in ((idle, 0.05), (half, 0.6)):
        assert not one["saturated"]
        assert one["offered_flits_per_node_per_cycle"] == pytest.approx(load, rel=0.1)
        assert one["accepted_flits_per_node_per_cycle"] == pytest.approx(load, rel=0.1)
        assert one["latency_mean_cycles"] <= one["latency_p99_cycles"] <= one["latency_max_cycles"]
        shares = one["class_accepted_flits_per_node_per_cycle"]
        assert shares == pytest.approx([load / 4, load * 3 / 4], rel=0.15)
    assert full["saturated"] and full["latency_mean_cycles"] is None
    assert full["offered_flits_per_node_per_cycle"] == pytest.approx(1.0, rel=0.03)
    assert 0.75 < full["accepted_flits_per_node_per_cycle"] < 0.99


@pytest.mark.full
def test_one_class_by_the_command_line(tmp_path):
    """The command is as most people run it: no classes, so points without flows, and empty lists among the
    parameters."""
    settings = [
        "network=router2",
        "allocator=separable",
        "vls=1",
        "packet_flits=10",
        "flit_bits=32",
        "loads=[0.5]",
    ]
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "network-load",
    ]
    command += [f"--set={setting}" for setting in settings]
    done = subprocess.run(
        [*command, "--json", "-", "--out", "r"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["points"]
    assert found["results"][ACCEPTED] == pytest.approx(0.5, rel=0.1)
    assert (tmp_path / "r" / "results.csv").read_text().count("\n") == 2


def test_counts_agree_with_each_other(model, tmp_path):
    found = point(model, tmp_path, load=0.5)
    assert not found["saturated"]
    counts = [one for node in found["counts"] for one in node]
    packets = sum(one["latency_packets"] for one in counts)
    assert packets == sum(one["offered_packets"] for one in counts)
    assert 10 * packets == sum(one["offered_flits"] for one in counts)
    for one in counts:
        assert sum(count for _, count in one["histogram"]) == one["latency_packets"]
        # Bins are at most 1/32 of their latency wide.
        estimate = sum(last * count for last, count in one["histogram"])
        assert one["latency_sum_cycles"] <= estimate <= one["latency_sum_cycles"] * (1 + 1 / 32)
        assert one["histogram"][-1][0] >= one["latency_max_cycles"]
        assert one["histogram"][0][0] >= one["latency_min_cycles"] >= 16


def test_the_same_seed_gives_the_same_counts(model, tmp_path):
    once, again, other = (point(model, tmp_path, load=0.3, seed=seed) for seed in (5, 5, 6))
    assert once == again != other


def test_a_short_limit_ends_in_saturated_and_not_in_a_hang(model, tmp_path):
    found = point(model, tmp_path, load=0.9, limit_cycles=1)
    assert found["saturated"] and found["drain_cycles"] == 1


async def stuck(bench, spec):
    """No sink gives a credit back, until nothing moves any more."""
    from lanikai.hdl.traffic.ports import NODE
    from lanikai.hdl.traffic.setup import ClassSetup

    await bench.start_nodes()
    hold = NODE["SINK"].pack(hold=1)
    await bench.write(((node, NODE["SINK"].offset), hold) for node in range(bench.config.traffic.nodes))
    await bench.set_classes([ClassSetup(**setup) for setup in spec["classes"]])
    await bench.measure(warmup_cycles=0, window_cycles=1_000_000, limit_cycles=1)


def test_the_watchdog_names_what_waits(model, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with pytest.raises(SimulationError, match="nothing has moved for 100000 cycles") as caught:
        point(model, tmp_path, load=0.5, entry="test_network_load:stuck")
    assert "network.router0 output_blocked" in str(caught.value)
    log = (tmp_path / "simulation.log").read_text()
    assert "network.router0:" in log and "port 0 VL 0" in log
