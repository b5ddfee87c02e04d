"""The guides, followed literally in a copy of the package: what they have the reader write is right, and runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.guides import GUIDES, command, copy_tree, follow, output

CHECK = """
import importlib
from lanikai.firmware.programs import find_program
from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.emit import to_verilog
from lanikai.hdl.router.router import Router
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.registry import find
from support.hdl.vl_models import play
from lanikai.hdl.vl_arbiter.registry import make_vl_arbiter

experiment = find("idt-ratio")
parameters = experiment.Parameters()
for size in ("quick", "full"):
    assert len(experiment.points(parameters, size)) == 3
for share, holds in (([0.5, 0.5], True), ([0.4, 0.6], False)):
    point = experiment.points(parameters, "quick")[0]
    outcome = Outcome(point=point, results={"share": share}, seed=1, cycles=1, wall_seconds=1.0)
    assert [claim.holds for claim in experiment.claims(parameters, [outcome])] == [holds]

program = find_program("checked")
assert program.speaks == "gm" and program.default_costs.cycles("rdma_check") == 330

held, after = None, -1
def check(requests, tails, advance, grant):
    global held, after
    asks = [vl for vl in range(4) if requests >> vl & 1]
    wanted = held if held in asks else min(asks, key=lambda vl: (vl - after - 1) % 4) if asks else None
    assert grant == (0 if wanted is None else 1 << wanted), (requests, tails, grant, held, after)
    if advance and wanted is not None:
        after, held = wanted, None if tails >> wanted & 1 else wanted

import random
draw = random.Random(7).getrandbits
play(make_vl_arbiter("packet_turns", vls=4), [(draw(4), draw(4), draw(1)) for _ in range(400)], check)
tiny = RouterConfig(link=LinkConfig(vls=2, flit_bits=32), ports=2, input_buffer_flits=4, vl_arbiter="packet_turns")
assert "endmodule" in to_verilog(Router(tiny), name="router")
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory) -> Path:
    """A copy of the package in which all guides have been followed."""
    folder = tmp_path_factory.mktemp("guides")
    copy_tree(folder)
    for guide in GUIDES:
        assert follow(guide, folder), guide.name
    return folder


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy."""
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(tests)])}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )


def test_there_is_a_guide_for_each_thing_that_is_done_first():
    names = {guide.stem for guide in GUIDES}
    assert names == {"arbiter", "firmware-step", "first-experiment", "mpi-program"}


def test_what_the_guides_add_is_found_and_does_what_they_say(followed):
    done = python(followed, "-c", CHECK)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_ends_in_a_command_whose_output_is_shown(guide):
    program, *arguments = shlex.split(command(guide))
    assert program in (".venv/bin/python", ".venv/bin/lanikai") and len(output(guide).splitlines()) > 1
    if program.endswith("python"):
        assert f"Put this into `{arguments[0]}`" in guide.read_text()


def lasting(text: str) -> list[str]:
    """The lines that are the same in every run: without times, names of files, progress and ends of long lines."""
    passing = re.compile(r"s of simulation|^(csv|json|plot|parquet|log|build)\b|: \d+%|left$")
    return [line.rstrip() for line in text.splitlines() if line.strip() and not passing.search(line)]


@pytest.mark.full
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_command_of_a_guide_gives_the_output_that_it_shows(followed, guide):
    program, *arguments = shlex.split(command(guide))
    done = python(followed, *(["-m", "lanikai.sim"] if program.endswith("lanikai") else []), *arguments)
    assert done.returncode == 0, done.stderr
    shown = [line for line in lasting(output(guide)) if line != "..."]
    assert set(shown) <= set(lasting(done.stdout)), done.stdout
