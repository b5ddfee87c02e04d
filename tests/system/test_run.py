"""The experiments that are built, run for real by the command line in their quick size."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# One worker for all: they share one build.
pytestmark = pytest.mark.xdist_group("lanai4 cluster")


def lanikai(*arguments: str, cwd: Path) -> tuple[int, dict]:
    """Exit status and the JSON object of a command."""
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        *arguments,
        "--json",
        "-",
    ]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_share_senders_reproduces_the_published_figures(tmp_path):
    status, found = lanikai("run", "share-senders", "--out", "r", cwd=tmp_path)
    assert [point["within"] for point in found["points"]] == [True, True, True], found["points"]
    assert all(claim["holds"] for claim in found["claims"])
    assert status == 0
    assert found["cycles"] > 0 and found["cycles_per_second"] > 0
    log = (tmp_path / "r" / "run.log").read_text()
    for name, label in (("cocotb", "Initialized cocotb v"), ("verilator", "Running on Verilator version ")):
        number = found["versions"][name]
        assert f"version of {name}: {number}\n" in log and re.search(
            f"{label}{re.escape(number)}[ \n]", log
        ), log


def test_a_file_arrives_whole_and_the_same_seed_gives_the_same_bytes(tmp_path):
    # Several messages, the last of them short.
    content = (ROOT / "README.md").read_bytes()[:2500]
    (tmp_path / "file").write_bytes(content)
    setting = ("run", "transfer", "--set", "file=file", "--set", "message_bytes=1000", "--seed", "3")
    tables = []
    for name in ("a", "b"):
        status, found = lanikai(*setting, "--out", name, cwd=tmp_path)
        assert status == 0
        (point,) = found["points"]
        assert point["results"]["sha256_sent"] == point["results"]["sha256_received"]
        assert point["results"]["messages"] == 3
        tables.append((tmp_path / name / "results.csv").read_bytes())
    assert tables[0] == tables[1]
