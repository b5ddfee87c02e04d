"""The experiments on MPI, run for real by the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# One worker for all: they share one build.
pytestmark = pytest.mark.xdist_group("lanai4 cluster")

CASES = [
    ("mpi-share", ["idt_ticks=[[140, 420]]"]),
    pytest.param("mpi-idt", [], marks=pytest.mark.full),
    pytest.param("mpi-share", [], marks=pytest.mark.full),
    pytest.param("mpi-replay", [], marks=pytest.mark.full),
]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_an_experiment_holds_what_was_published(name, settings, tmp_path) -> None:
    arguments = [part for setting in settings for part in ("--set", setting)]
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        name,
        *arguments,
    ]
    done = subprocess.run(
        [*command, "--out", "r", "--json", "-"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["claims"] and all(claim["holds"] for claim in found["claims"]), found
    assert done.returncode == 0


def test_a_bad_trace_is_one_line_and_nothing_is_built(tmp_path) -> None:
    path = tmp_path / "rank.txt"
    path.write_text("# collprof\nMPI_Barrier:1:0,0,1:2\nMPI_Send:3:4\n")
    command = [sys.executable, "-c", "from lanikai.sim.cli.program import main; main()", "run", "mpi-replay"]
    done = subprocess.run(
        [*command, "--set", f'traces=["{path}"]', "--out", "r"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        f"lanikai: {path}:3: MPI_Send has 2 fields: 8 (start, address, count, type, destination, tag, comm, end)\n"
    )
    assert not (tmp_path / "r").exists()


@pytest.mark.full
def test_a_trace_whose_ranks_wait_for_each_other_is_one_line(tmp_path) -> None:
    """Both ranks send 40 kB first. The messages go together, so that no check of the traces finds it."""
    for rank in range(2):
        comm, peer = f"0,{rank},2", 1 - rank
        (tmp_path / f"{rank}.txt").write_text(
            "# collprof\n"
            f"MPI_Send:2100:12:5000:11,8,8:{peer}:7:{comm}:2150\n"
            f"MPI_Recv:2180:11:5000:11,8,8:{peer}:7:{comm}:140:2200\n"
        )
    traces = json.dumps([str(tmp_path / f"{rank}.txt") for rank in range(2)])
    command = [sys.executable, "-c", "from lanikai.sim.cli.program import main; main()", "run", "mpi-replay"]
    settings = ["--set", f"traces={traces}", "--set", "competing=[0, 1]", "--out", "r"]
    done = subprocess.run([*command, *settings], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert (
        "deadlock: rank 0 waits in Send to rank 1, tag 7, on world; rank 1 waits in Send to rank 0, tag 7, on world"
        in done.stderr.splitlines()[-1]
    )
