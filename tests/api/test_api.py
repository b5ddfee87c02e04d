"""The API from a script, `python -c` and a terminal: results as frames, the user's coroutines, their errors, pdb."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import polars
import pytest

import lanikai

pytestmark = pytest.mark.xdist_group("api")  # they share builds
MESSAGE = """
import lanikai


async def sender(host):
    port = await host.gm.open_port(0)
    buffer = await port.dma_malloc(64)
    buffer.write(b"hello")
    {stop}
    print("sending", flush=True)
    await (await port.send(buffer, 5, node=1, port=0)).wait()
    return host.cycle


async def receiver(host):
    port = await host.gm.open_port(0)
    await port.provide_receive_buffer(await port.dma_malloc(64))
    return (await port.receive()).read()


run = lanikai.Cluster(nodes=4).run([sender, receiver])
print(run.values[1], run.values[0] == run.cycles > 0, "sending" in run.log)
"""


def script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the user's."""
    (folder / "mine.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "mine.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_importing_the_package_loads_no_simulator():
    text = "import lanikai, lanikai.hdl, sys; print([name for name in sys.modules if name.startswith('lanikai.sim')])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_every_public_name_is_there_and_has_a_docstring():
    for name in lanikai.__all__:
        assert getattr(lanikai, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'Netwrk'; did you mean 'Network'"):
        lanikai.Netwrk  # noqa: B018


def test_experiments_and_their_parameters_are_frames():
    listed = lanikai.experiments()
    row = listed.filter(listed["name"] == "share-senders").row(0, named=True)
    assert row["state"] == "built" and row["asks"].endswith("?") and row["origin"] == "lanikai"
    found = lanikai.parameters("transfer")
    assert found["name"].to_list() == ["file", "message_bytes"] and found["default"].to_list() == [
        None,
        "65536",
    ]


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("transfr", {}, "unknown experiment 'transfr' (did you mean 'transfer'?)"),
        ("transfer", {}, "transfer needs file=...: a file of 1 byte to 16 MiB"),
        ("transfer", {"fil": "x"}, "unknown parameter 'fil' of transfer (did you mean 'file'?)"),
        ("transfer", {"file": "/none"}, "transfer: file '/none' cannot be sent: there is no such file"),
        (
            "transfer",
            {"file": __file__, "message_bytes": 0},
            "transfer: message_bytes = 0: must be ",
        ),
        ("transfer", {"file": __file__, "seeds": 0}, "seeds = 0: a whole number, at least 1"),
    ],
)
def test_what_is_wrong_with_a_run_is_said_in_a_line_before_anything_is_written(
    tmp_path, monkeypatch, name, settings, words
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lanikai.Error) as caught:
        lanikai.run(name, **settings)
    assert str(caught.value).startswith(words) and not list(tmp_path.iterdir())


def test_a_run_gives_frames_and_its_folder_can_be_loaded_again(tmp_path):
    """In a script without a guard: worker processes must not run it anew."""
    text = """
    import lanikai
    print("once")
    run = lanikai.run("transfer", file="mine.py", message_bytes=512, out="out", quiet=True)
    print(run.ok, run.frame["messages"].item(), run.claims["holds"].to_list(), run.published.height)
    again = lanikai.load("out")
    labels = [[outcome.point.label for outcome in one._report.outcomes] for one in (run, again)]
    assert labels[0] == labels[1], labels
    print(again.frame.equals(run.frame), again.claims.equals(run.claims), again.parameters["message_bytes"])
    """
    done = script(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["once", "True 1 [True] 0", "True True 512"]


def test_published_values_stand_beside_ours():
    from lanikai.api.results import Run
    from lanikai.sim.experiments.framework.base import Outcome, Point
    from lanikai.sim.experiments.framework.results import Report

    point = Point(
        label="one",
        parameters={},
        spec={},
        published={"share": [0.5, 0.5], "us": 10},
        tolerance={"share": 0.1, "us": 0.01},
    )
    outcome = Outcome(
        point=point, results={"share": [0.48, 0.7], "us": 10.05}, seed=1, cycles=1, wall_seconds=1
    )
    report = Report(
        experiment="x",
        size="quick",
        seed=1,
        outcomes=[outcome],
        claims=[],
        build_seconds=0,
        build_cached=True,
    )
    run = Run(report, Path("x"))
    assert run.published.select("result", "flow", "ours", "published", "within").rows() == [
        ("share", 0, 0.48, 0.5, True),
        ("share", 1, 0.7, 0.5, False),
        ("us", None, 10.05, 10.0, True),
    ]
    assert run.published["off_by"].round(3).to_list() == [-0.04, 0.4, 0.005] and not run.ok


def test_a_network_gives_frames_of_points_classes_nodes_and_latencies():
    network = lanikai.Network("mesh2x2", vls=2)
    run = network.run("neighbour", [0.1, 0.4], cycles=2000, seed=[1, 2], quiet=True)
    assert run.frame.select("load", "seed").rows() == [(0.1, 1), (0.1, 2), (0.4, 1), (0.4, 2)]
    for row in run.frame.rows(named=True):
        assert abs(row["accepted"] - row["load"]) < 0.08 and row["latency_mean_cycles"] > 10
    assert run.nodes.height == 16 and run.classes.height == 4
    top = run.latency.filter(run.latency["percentile"] == 99.99)["latency_cycles"].to_list()
    assert top == run.frame["latency_max_cycles"].to_list()
    assert run.histogram.group_by("load", "seed").agg().height == 4
    again = network.run("neighbour", 0.4, cycles=2000, seed=2, quiet=True)
    assert again.frame["latency_mean_cycles"].item() == run.frame["latency_mean_cycles"][3]
    full = network.run("uniform", 1.0, cycles=2000, quiet=True)
    assert full.frame["saturated"].all() and full.frame["latency_mean_cycles"].to_list() == [None]
    assert polars.concat([run.frame, full.frame]).height == 5, (
        "a column without a value is one of numbers, too"
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: lanikai.Network("mesh2x2", vl_arbitr="x"),
            "Network: unknown setting 'vl_arbitr' (did you mean",
        ),
        (lambda: lanikai.Network(3), "topology = 3: a name (mesh4x4), the path of a file, a networkx graph"),
        (
            lambda: lanikai.Network("mesh2x2").run(lod=3),
            "Network.run: unknown setting 'lod' (did you mean 'load'?)",
        ),
        (
            lambda: lanikai.Network("mesh2x2").run(load=7),
            "ClassSetup.load = 7: must be above 0 and at most 1",
        ),
        (lambda: lanikai.Network("mesh2x2").run(load=[]), "load = []: a number, or a list of at least one"),
        (lambda: lanikai.Cluster("lanai9"), "ClusterConfig: unknown preset 'lanai9'"),
        (lambda: lanikai.Cluster(node=2), "Cluster: unknown setting 'node' (did you mean 'nodes'?)"),
        (
            lambda: lanikai.Cluster(nodes=20),
            "Cluster: nodes = 20: one router joins at most 16; give a network, as in network='mesh8x8'",
        ),
        (
            lambda: lanikai.Cluster(nodes=9, network="mesh4x5"),
            "Cluster: nodes = 9: the network has places for 20",
        ),
        (
            lambda: lanikai.Cluster(firmware=3),
            "firmware program 'firmware' cannot be added: it is no subclass of",
        ),
        (
            lambda: lanikai.Cluster().run(3),
            "programs: 3: an `async def` function, a list of them, or a mapping",
        ),
        (lambda: lanikai.Cluster(nodes=2).run({7: print}), "programs: there is no host 7; hosts are 0 to 1"),
        (
            lambda: lanikai.Cluster().run([print]),
            "programs: the program of host 0 is <built-in function print>",
        ),
        (lambda: lanikai.Cluster().run([]), "programs: there is none"),
        (lambda: lanikai.load("/none"), "'/none' holds no run: results.json: FileNotFoundError"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(make, words):
    with pytest.raises(lanikai.Error) as caught:
        make()
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)


def test_a_graph_is_a_network():
    import networkx

    star = networkx.star_graph(3)
    star.nodes[0]["nodes"] = 2
    network = lanikai.Network(star, vls=2)
    assert network.nodes == 5 and network.config.routers == 4
    path = [router for router, _ in network.config.path(0, 4)]
    assert path == [0, 3]


@pytest.mark.parametrize("how", ["script", "-c"])
def test_programs_of_a_script_run_and_their_values_and_prints_come_back(tmp_path, how):
    text = MESSAGE.format(stop="")
    if how == "script":
        done = script(tmp_path, text)
    else:
        done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["sending", "b'hello' True True"]


@pytest.mark.parametrize("how", ["script", pytest.param("-c", marks=pytest.mark.full)])
def test_an_error_in_a_program_is_told_with_the_users_lines_alone(tmp_path, how):
    text = MESSAGE.format(stop="lengths = {}; lengths['first'] += 1")
    if how == "script":
        done = script(tmp_path, text)
    else:
        done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    told = done.stderr.partition("ProgramError: ")[2].splitlines()
    place = str(tmp_path / "mine.py") if how == "script" else "<string>"
    assert told[:3] == [
        "KeyError: 'first'",
        f'  File "{place}", line 9, in sender',
        "    lengths = {}; lengths['first'] += 1",
    ]
    assert "/sim/" not in done.stderr


def test_what_a_program_holds_that_cannot_travel_is_said_in_a_line(tmp_path):
    text = """
    import lanikai
    import threading
    lock = threading.Lock()
    async def waits(host):
        lock.acquire()
    lanikai.Cluster(nodes=4).run({0: waits})
    """
    done = script(tmp_path, text)
    assert done.stderr.splitlines()[-1].startswith(
        "lanikai.sim.errors.UserError: this code cannot go to the simulator's process: "
    )


def test_all_ranks_of_mpi_run_one_program_each_with_its_host(tmp_path):
    text = """
    import lanikai
    import numpy as np
    async def main(host):
        total = np.zeros(1)
        await host.mpi.Allreduce(np.ones(1) * host.mpi.rank, total)
        return {"total": total.item(), "same": host.node == host.mpi.rank}
    print(lanikai.Cluster(nodes=4).run(main, interface="mpi").frame.rows())
    """
    done = script(tmp_path, text)
    assert done.stdout == f"{[(node, 6.0, True) for node in range(4)]}\n", done.stderr


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (
            "host.mpi.send(b'lost', 1)",
            [
                "send() was called without await, so it did nothing",
                '  File "{place}", line 6',
                "    host.mpi.send(b'lost', 1)",
            ],
        ),
        (
            "kept = host.mpi.isend(b'lost', 1)",
            [
                "isend() was called without await, so it did nothing",
                '  File "{place}", line 6',
                "    kept = host.mpi.isend(b'lost', 1)",
            ],
        ),
        (
            "kept = host.mpi.isend(b'lost', 1); await host.mpi.recv(source=1)",
            [
                "DeadlockError: deadlock: rank 0 waits in recv from rank 1, any tag, on world; rank 1 waits in recv ",
                '  File "{place}", line 8, in main',
                "    await host.mpi.recv(source=0)",
                "isend() has not begun: was `await` forgotten?",
                '  File "{place}", line 6',
                "    kept = host.mpi.isend(b'lost', 1); ",
            ],
        ),
        (
            "pass",
            [
                "DeadlockError: deadlock: rank 0 waits in Finalize from rank 1, on world; rank 1 waits in recv from "
                "rank 0, any tag, on world",
            ],
        ),
    ],
    ids=["no await", "no await of a kept call", "deadlock by it", "no send"],
)
def test_a_receive_for_which_nothing_is_sent_ends_at_once(tmp_path, first, told):
    text = f"""
    import lanikai

    async def main(host):
        if host.mpi.rank == 0:
            {first}
        else:
            await host.mpi.recv(source=0)
    lanikai.Cluster(nodes=2).run(main, interface="mpi", timeout_seconds=300)
    """
    done = script(tmp_path, text)
    place = tmp_path / "mine.py"
    lines = done.stderr.partition("Error: ")[2].splitlines()
    assert len(lines) == len(told), done.stderr
    for line, expected in zip(lines, told, strict=True):
        assert line.startswith(expected.format(place=place)), done.stderr


def test_what_cannot_end_a_program_is_told_with_its_host(tmp_path):
    text = """
    import lanikai, sys
    async def leaves(host):
        if host.node == 1:
            sys.exit(3)
    async def gives(host):
        return (number for number in range(host.node))
    cluster = lanikai.Cluster(nodes=2)
    for program in (leaves, gives):
        try:
            cluster.run(program)
        except lanikai.Error as error:
            print(str(error).splitlines()[0].partition(" (out=")[0])
    """
    done = script(tmp_path, text)
    assert done.stdout.splitlines() == [
        "UserError: the program of host 1 called sys.exit(3): it ends by `return`, or by an exception",
        "UserError: the program of host 0 returns a value that cannot come back from the simulation: generator; return "
        "numbers, texts, lists, dictionaries or arrays",
    ], done.stderr


FIRMWARE = """
import lanikai
from lanikai.firmware.costs import GM_COSTS, CostTable
from lanikai.firmware.gm.program import GmProgram


class Slow(GmProgram):
    default_costs = GM_COSTS.replace(sdma_packet=5000)

    def start(self):
        {stop}
        super().start()


{programs}
slow = lanikai.Cluster(nodes=4, firmware=Slow).run([sender, receiver])
print(slow.values[1], slow.cycles - run.cycles > 4000)
"""


def test_firmware_of_a_script_runs_on_the_cards(tmp_path):
    done = script(
        tmp_path, FIRMWARE.format(stop="", programs=MESSAGE.format(stop="").partition("import lanikai")[2])
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "b'hello' True"


def terminal(command: list[str], folder: Path, typed: list[str]) -> str:
    """The text that a terminal shows of a command; each line is typed at a prompt of the debugger."""
    master, slave = pty.openpty()
    child = subprocess.Popen(command, cwd=folder, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown, end = "", time.monotonic() + 120
    while time.monotonic() < end:
        if master in select.select([master], [], [], 1)[0]:
            try:
                data = os.read(master, 65536).decode()
            except OSError:  # the child has closed its end
                break
            shown += data
            if typed and shown.rstrip().endswith("(Pdb)"):
                os.write(master, f"{typed.pop(0)}\n".encode())
    os.close(master)
    assert child.wait(10) == 0, shown
    return shown.replace("\r\n", "\n")


@pytest.mark.parametrize("how", ["script", pytest.param("-c", marks=pytest.mark.full)])
def test_breakpoint_in_a_program_opens_the_debugger_on_the_terminal(tmp_path, how):
    text = MESSAGE.format(stop="breakpoint()")
    (tmp_path / "mine.py").write_text(text)
    command = [sys.executable, "mine.py"] if how == "script" else [sys.executable, "-c", text]
    shown = terminal(command, tmp_path, ["p buffer.length * 3", "n", "n", "c"])
    assert 'print("sending", flush=True)' in shown and "192" in shown
    assert shown.splitlines()[-1] == "b'hello' True True"


def test_breakpoint_in_firmware_does_so_too(tmp_path):
    text = FIRMWARE.format(
        stop="breakpoint() if self.node == 1 else None",
        programs=MESSAGE.format(stop="").partition("import lanikai")[2],
    )
    (tmp_path / "mine.py").write_text(text)
    shown = terminal([sys.executable, "mine.py"], tmp_path, ["p 'node', self.node, self.speaks", "c"])
    assert "('node', 1, 'gm')" in shown and shown.splitlines()[-1] == "b'hello' True"


def test_the_end_of_the_input_ends_a_run_at_a_breakpoint(tmp_path):
    text = MESSAGE.format(stop="breakpoint()")
    (tmp_path / "mine.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 1 and "ProgramError: BdbQuit: no message\n" in done.stderr
