"""`lanikai bench --beside`: a peer's configuration, its output, its faults, and what a comparison says."""

import json
import re
import sys

import pytest
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.sim.cli import program
from lanikai.sim.errors import SimulationError, UserError
from lanikai.sim.experiments.measure.named_networks import named_network
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.speed.beside import (
    PEER_LENGTH,
    PEER_WARMUP_CYCLES,
    Beside,
    Side,
    beside_table,
    compared,
    wall_table,
)
from lanikai.sim.speed.booksim2 import BookSim2
from lanikai.sim.speed.cases import CASES, BenchCase
from lanikai.sim.speed.peer import Stretch, find_program, run_peer
from lanikai.sim.speed.peers import PEERS, find_peer
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from support.sim import peer_stand_in
from support.sim.peer_stand_in import CYCLES_PER_SECOND, LATENCY_CYCLES

MESH = BenchCase(model="mesh4x4", load=0.3, cycles=5000)
STRETCH = Stretch(warmup_cycles=2000, cycles=3000, seed=7)


@pytest.fixture
def stand_in(tmp_path):
    """A program of BookSim's form."""
    path = tmp_path / "booksim"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S {peer_stand_in.__file__} "$@"\n')
    path.chmod(0o755)
    return path


def test_configuration():
    """The case's network, VLs, buffers, packets, pattern and load; lengths in sample periods; the seed."""
    text = BookSim2().configuration(MESH, STRETCH)
    values = dict(re.findall(r"^(\w+) = ([^;]+);$", text, re.MULTILINE))
    assert len(values) == text.count("\n")
    wanted = {
        "topology": "mesh", "k": "4", "n": "2", "routing_function": "dor", "num_vcs": "15", "vc_buf_size": "10",
        "packet_size": "40", "traffic": "uniform", "injection_rate": "0.3", "injection_rate_uses_flits": "1",
        "sim_type": "throughput", "sample_period": "500", "warmup_periods": "4", "max_samples": "10", "seed": "7",
    }  # fmt: skip
    assert wanted.items() <= values.items()
    # The packets and VLs are those that our case has.
    spec = MESH.job(1)[1]["classes"][0]
    network = BenchCase(model="mesh4x4", load=0.3, cycles=1).system().network
    assert (spec["packet_flits"], spec["vl_count"], spec["pattern"]) == (40, 15, "uniform")
    router = network.router
    assert (router.input_buffer_flits, router.output_buffer_flits, router.data_vls) == (10, 10, 15)
    refused = {case.model for case in CASES if BookSim2().refuses(case)}
    assert refused == {case.model for case in CASES if not case.model.startswith("mesh")}
    assert BookSim2().refuses(BenchCase(model="mesh4x2", load=0.1, cycles=1))


def test_run(stand_in):
    """Averages of the whole, not of a period; processor time of the child, cycles as it says."""
    run = run_peer(BookSim2(), stand_in, MESH, STRETCH)
    assert (run.cycles, run.latency_cycles, run.accepted) == (5037, LATENCY_CYCLES, 0.3)
    assert 5037 / CYCLES_PER_SECOND < run.seconds < 5
    assert run.seconds <= run.wall_seconds + 0.05


def test_load_of_one(stand_in):
    """A load without a point would be taken for the value of another kind of field."""
    whole = BenchCase(model="mesh4x4", load=1, cycles=5000)
    assert "injection_rate = 1.0;" in BookSim2().configuration(whole, STRETCH)
    assert run_peer(BookSim2(), stand_in, whole, STRETCH).accepted == 1.0


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("crash", "was ended by SIGSEGV; it printed last: BEGIN Configuration File"),
        ("fail", "ended with status 1; it printed last: cannot start"),
        (
            "refuse",
            "printed no 'Time taken is ... cycles': is it booksim2? it printed last: Parse error : Unknown integer",
        ),
        ("idle", "printed no 'Packet latency average = ...' after its headline: is it booksim2?"),
        ("babble", "printed no 'Time taken is ... cycles': is it booksim2? it printed last: hello"),
        ("short", "printed no 'Overall Traffic Statistics': is it booksim2?"),
        ("hang", "was not done after 1 s"),
    ],
)
def test_faults(stand_in, monkeypatch, what, message):
    """A crash, a refusal, another program, output that breaks off, a hang: one line that says which."""
    monkeypatch.setenv("STAND_IN", what)
    with pytest.raises(SimulationError) as caught:
        run_peer(BookSim2(), stand_in, MESH, STRETCH, timeout_seconds=1.0 if what == "hang" else 60.0)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"--beside booksim2: mesh4x4@0.3: '{stand_in}' ")


def test_no_program_of_the_system(tmp_path):
    """A file that is executable and no program."""
    path = tmp_path / "booksim"
    path.write_bytes(b"\x7fELF nothing")
    path.chmod(0o755)
    with pytest.raises(SimulationError, match="cannot be run: "):
        run_peer(BookSim2(), path, MESH, STRETCH)


@pytest.mark.parametrize("line", ["Packet latency average = nan", "Accepted flit rate average = -", ""])
def test_averages_that_are_none(line):
    """No number where there should be one."""
    good = "Packet latency average = 1 (1 samples)\nAccepted flit rate average = 0.1 (1 samples)\n"
    name = line.partition(" average")[0]
    text = "\n".join(line if name and found.startswith(name) else found for found in good.splitlines())
    text = f"Time taken is 5 cycles\n== Overall Traffic Statistics ==\n{text if name else ''}"
    with pytest.raises(ValueError, match="average = "):
        BookSim2().parse(text)


def test_where_the_program_is(tmp_path, stand_in, monkeypatch):
    """On PATH by either name, or named; otherwise one line."""
    peer = PEERS["booksim2"]()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program(peer, None) == stand_in == find_program(peer, str(stand_in))
    stand_in.rename(tmp_path / "other")
    with pytest.raises(UserError, match=r"no booksim2 or booksim on PATH; name it: --beside booksim2=FILE"):
        find_program(peer, None)
    (tmp_path / "data").write_text("")
    for named, message in (
        ("absent", "there is no such file"),
        (str(tmp_path), "it is a folder"),
        (str(tmp_path / "data"), "it is no program that can be run"),
    ):
        with pytest.raises(UserError, match=message):
            find_program(peer, named)
    assert find_peer("booksim2=/x")[1] == "/x" and find_peer("booksim2")[1] is None
    for text in ("booksim", "booksim2=", ""):
        with pytest.raises(UserError, match="--beside "):
            find_peer(text)


def test_comparison():
    """The ratio is the median of the turns' ratios, of processor time and of wall-clock time; latency and accepted load
    are means."""

    def side(speed, wall, latency, accepted, threads=1):
        return Side(
            cycles_per_second=speed,
            wall_cycles_per_second=wall,
            latency_cycles=latency,
            accepted=accepted,
            threads=threads,
        )

    turns = [
        (side(100, 160, 70, 0.3, 2), side(50, 40, 80, 0.2)),
        (side(300, 500, 90, 0.3, 2), side(100, 100, 100, 0.4)),
        (side(90, 90, 80, 0.3, 2), side(90, 90, 90, 0.3)),
    ]
    one = compared(MESH, [1, 2, 3], turns, 0.25)
    assert (one.cycles_per_second, one.peer_cycles_per_second, one.ratio, one.spread) == (100, 90, 2.0, 1.0)
    assert (one.wall_cycles_per_second, one.wall_peer_cycles_per_second) == (160, 90)
    assert (one.wall_ratio, one.wall_spread, one.threads, one.load_average) == (4.0, 1.0, 2, 0.25)
    assert (one.latency_cycles, one.peer_latency_cycles) == (80, 90)
    assert one.accepted == pytest.approx(0.3) and one.peer_accepted == pytest.approx(0.3)
    assert beside_table("booksim2", [one]).row_count == wall_table("booksim2", [one]).row_count == 1


def test_turns(monkeypatch):
    """A turn is our run on one thread, the peer's, and ours on the threads that a run chooses; the next the other way
    round."""
    order = []
    pair = Beside(BookSim2(), sys.executable, [MESH])
    peer = Side(cycles_per_second=10, wall_cycles_per_second=8, latency_cycles=1, accepted=0.3)
    monkeypatch.setattr(pair, "_peer", lambda case, seed: order.append("peer") or peer)

    def ours(seed, threads):
        order.append((seed, threads == ONE_THREAD))
        count = 1 if threads == ONE_THREAD else 2
        traffic = {"latency_cycles": 2, "accepted": 0.3}
        return {"samples": [[40 / count, 0]], "wall": [24 * count], "threads": count, "traffic": traffic}

    monkeypatch.setattr("lanikai.sim.machine.cores", lambda: 2)
    one, mine = pair.compare(MESH, [3, 4], ours)
    assert order == [(3, True), "peer", (3, False), (4, False), "peer", (4, True)]
    assert (one.ratio, one.wall_ratio, one.threads) == (4.0, 6.0, 2)
    assert [run["threads"] for run in mine] == [1, 1] and one.load_average >= 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beside", "garnet"], "--beside 'garnet': one of booksim2, or NAME=PROGRAM"),
        (["--beside", "booksim2", "--case", "router8@0.1"], "case router8@0.1: it is run on square meshes"),
        (["--beside", "booksim2=absent"], "--beside booksim2=absent: there is no such file"),
        (["--case", "mesh4x4", "--full"], "--case and --full: give one of them"),
    ],
)
def test_wrong_input(arguments, message, monkeypatch, capsys):
    """One line, and nothing is built."""
    monkeypatch.setattr(BenchCase, "system", lambda self: pytest.fail("something is built"))
    with pytest.raises(SystemExit) as ended:
        program.main(["bench", *arguments])
    error = capsys.readouterr().err
    assert ended.value.code == 2 and message in error and error.count("\n") == 1


def test_both_for_real(tmp_path, stand_in, monkeypatch, capsys):
    """A small network of ours beside the stand-in, in turns: the stand-in's known speed, and our sinks' counts."""
    link = LinkConfig(flit_bits=32, vls=2)
    small = RouterConfig(link=link, ports=2, input_buffer_flits=4, output_buffer_flits=4)
    config = TrafficNetworkConfig(network=named_network("router2", small))
    setup = ClassSetup(load=0.3, packet_flits=8, vl_count=2)
    spec = {"cycles": 20_000, "warmup_cycles": 500, "classes": [setup.model_dump(mode="json")]}
    monkeypatch.setattr(BenchCase, "system", lambda self: config)
    monkeypatch.setattr(
        BenchCase, "job", lambda self, runs: ("lanikai.sim.speed.points:network_rate", spec | {"runs": runs})
    )
    path = tmp_path / "bench.json"
    with pytest.raises(SystemExit) as ended:
        program.main(
            [
                "bench",
                "--case",
                "mesh4x4@0.3",
                "--runs",
                "2",
                "--beside",
                f"booksim2={stand_in}",
                "--json",
                str(path),
            ]
        )
    printed = capsys.readouterr()
    assert ended.value.code == 0, printed.err
    assert "beside booksim2, processor time" in printed.out and "beside booksim2, wall-clock" in printed.out
    assert "themselves included" in printed.out
    report = json.loads(path.read_text())
    beside = report["beside"]
    assert (beside["peer"], beside["program"]) == ("booksim2", str(stand_in))
    assert beside["differences"] == list(BookSim2.differences)
    (row,) = beside["rows"]
    assert row["seeds"] == [1, 2] and len(row["turns"]) == 2
    # 80,000 cycles more of the long run: the start does not count.
    (case,) = [one for one in CASES if one.name == "mesh4x4@0.3"]
    assert PEER_LENGTH * case.cycles == 80_000 and case.cycles > PEER_WARMUP_CYCLES
    assert row["peer_cycles_per_second"] == pytest.approx(CYCLES_PER_SECOND, rel=0.1)
    assert (row["peer_latency_cycles"], row["peer_accepted"]) == (LATENCY_CYCLES, 0.3)
    # Two nodes, each to the other: what is offered is accepted. A packet of 8 flits takes a router of 5 cycles.
    assert row["accepted"] == pytest.approx(0.3, rel=0.05)
    assert 12 < row["latency_cycles"] < 40
    # So small a network has one thread, and what its process waits for is wall-clock time.
    assert row["threads"] == 1 and row["load_average"] >= 0
    assert 0 < row["wall_peer_cycles_per_second"] < 1.1 * CYCLES_PER_SECOND
    assert all(one["ours"]["wall_cycles_per_second"] > 0 for one in row["turns"])
    (plain,) = report["rows"]
    assert plain["runs"] == 2 and plain["traffic"]["accepted"] == pytest.approx(0.3, rel=0.05)
    low, high = sorted(
        one["ours"]["cycles_per_second"] / one["peer"]["cycles_per_second"] for one in row["turns"]
    )
    assert row["ratio"] == pytest.approx((low + high) / 2)
