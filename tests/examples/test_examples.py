"""The examples: each is run as a user runs it, and its output is looked at."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.references import ROOT

pytestmark = pytest.mark.xdist_group("api")  # they share builds with the tests of the API
FOLDER = ROOT / "examples"


def first_message(out: str) -> None:
    assert re.search(r"host 0: acknowledged after \d+\.\d us", out)
    assert re.search(r"host 1 received b'hello' in \d+ cycles", out)


def own_arbiter(out: str) -> None:
    rows = {(row[0], row[1]): float(row[3]) for row in table(out)}
    gap = {name: rows[name, "0"] / rows[name, "1"] for name in ("round_robin", "fcfs", "highest")}
    # With equal rights both classes wait alike; here the low one waits longer than under any of those.
    assert abs(gap["round_robin"] - 1) < 0.2 and gap["highest"] > 1.2 * max(gap["round_robin"], gap["fcfs"])
    assert rows["highest", "1"] < rows["round_robin", "1"]


def own_firmware_step(out: str) -> None:
    assert out.count("inspected") == 3
    plain, inspecting = (float(one) for one in re.findall(r"three messages in ([\d.]+) us", out))
    # Three steps of 2000 cycles at 33 MHz.
    assert 150 < inspecting - plain < 200


def mpi_stencil(out: str) -> None:
    rows = table(out)
    assert [row[2] for row in rows] == ["4", "0", "0", "3"] and {row[3] for row in rows} == {"1000.0"}


def trace(out: str) -> None:
    times = {
        case: int(us) for case, us in re.findall(r"^(.+): the program takes (\d+) us$", out, re.MULTILINE)
    }
    assert times["with a rival"] > 1.05 * times["alone"]
    assert times["with a rival, bandwidth reserved"] < times["with a rival"]


def custom_topology(out: str) -> None:
    found = {name: [row for row in table(out) if row[0] == name] for name in ("two rings", "ring")}
    assert [len(rows) for rows in found.values()] == [4, 4]
    assert float(found["ring"][0][3]) > 10 and found["two rings"][-1][4] == "true"


def fault(out: str) -> None:
    assert re.search(r"^\d+ ms: \w+Error: ", out, re.MULTILINE) and re.search(
        r"^arrived at \d+ ms$", out, re.MULTILINE
    )


def sweep(out: str) -> None:
    assert out.count("shape: (4, 4)") == 2 and Path("sweep.png").stat().st_size > 5000


def reservation(out: str) -> None:
    granted, achieved = (
        float(re.search(rf"{word}: ([\d.]+) MB/s", out)[1]) for word in ("granted", "achieved")
    )
    assert 40 <= granted < 40.5 and abs(achieved - granted) < 1
    assert re.search(r"refused: 60 MB/s to host 2; node 0 has 38\.0 MB/s left", out)


def waves(out: str) -> None:
    import pywellen

    first, last = map(int, re.search(r"cycles (\d+) to (\d+)", out).groups())
    assert 0 < first < last < first + 10_000
    assert pywellen.Waveform("waves/cluster.fst") is not None and Path("waves/cluster.gtkw").exists()


def verilog_out(out: str) -> None:
    for name in ("lanikai_router.v", "lanikai_router.f", "lanikai_router.sdc"):
        assert f"router-verilog/{name}: " in out
    assert "create_clock" in Path("router-verilog/lanikai_router.sdc").read_text()


def board(out: str) -> None:
    areas = [row for row in table(out) if len(row) == 3]
    assert len(areas) == 3 and all(int(row[1]) > 0 for row in areas)
    assert "ulx3s-85f" in out and re.search(r"\[\d+\.\d+\]", out)


def table(out: str) -> list[list[str]]:
    """The rows of the frames in an output, as text."""
    cells = [
        [cell.strip().strip('"') for cell in re.split("[│┆]", line)[1:-1]]
        for line in out.splitlines()
        if line.startswith("│")
    ]
    return [
        row for row in cells if not set(row) <= {"---", "…"} and any(re.match(r"[\d.-]", one) for one in row)
    ]


LONG = {
    "own_arbiter": "it builds a network three times",
    "custom_topology": "it builds two networks",
    "fault": "it builds a cluster with cables that can be cut",
    "trace": "it runs an experiment of four points",
    "waves": "it builds with waves",
    "board": "it synthesizes and places",
}
"""Examples that take more than half a minute, and why."""
CHECKS: dict[str, Callable[[str], None]] = {
    check.__name__: check
    for check in (
        *(first_message, own_arbiter, own_firmware_step, mpi_stencil, trace, custom_topology, fault, sweep),
        *(reservation, waves, verilog_out, board),
    )
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] if name in LONG else []) for name in CHECKS]
)
def test_an_example_prints_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, FOLDER / f"{name}.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    CHECKS[name](done.stdout)


def test_every_example_is_checked_listed_and_short():
    files = sorted(path.stem for path in FOLDER.glob("*.py"))
    listed = re.findall(r"`(\w+)\.py`", (ROOT / "docs" / "examples.md").read_text())
    assert files == sorted(CHECKS) == sorted(listed) and len(files) == 12
    for path in FOLDER.glob("*.py"):
        assert 10 <= len(path.read_text().splitlines()) <= 80, path.name
