"""Extensions of other distributions, by entry points: found, used, shown, in the build's key, refused in a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "wide-lab"
version = "1.2"

[tool.setuptools]
packages = ["wide_lab"]

[project.entry-points."lanikai.vl_arbiters"]
highest = "wide_lab.parts:Highest"
fcfs = "wide_lab.parts:Highest"
half = "wide_lab.parts:Half"
gone = "wide_lab.nowhere:Highest"

[project.entry-points."lanikai.patterns"]
two_on = "wide_lab.parts:two_on"
bad_shape = "wide_lab.parts:one_argument"

[project.entry-points."lanikai.experiments"]
coin = "wide_lab.coin:Coin"
penny = "wide_lab.coin:Coin"

[project.entry-points."lanikai.firmware"]
quiet = "wide_lab.parts:Quiet"

[project.entry-points."lanikai.routers"]
wrong = "wide_lab.parts:Highest"
"""
PARTS = '''
"""Parts of a laboratory."""

from lanikai.firmware.gm.program import GmProgram
from lanikai.hdl.vl_arbiter.base import VlArbiter


class Highest(VlArbiter):
    """The highest VL that asks."""

    weighs, rests = False, True

    @staticmethod
    def wait_bound(data_vls):
        return None

    def pick(self, m, requests, tails, grant, advance):
        for vl in range(self.vls):
            with m.If(requests[vl]):
                m.d.comb += grant.eq(1 << vl)


class Half(VlArbiter):
    """An arbiter without its hardware."""


class Quiet(GmProgram):
    """The GM program under another name."""


def two_on(node, nodes):
    return (node + 2) % nodes


def one_argument(node):
    return node
'''
COIN = '''
"""An experiment without RTL."""

from lanikai.hdl.config import Config
from lanikai.sim.experiments.framework.base import Claim, Experiment, Point
from lanikai.sim.systems.base import SystemConfig


class Coin(Experiment):
    """Throws."""

    name = "coin"
    asks = "Does a coin fall?"
    source = "no document"
    entry = "wide_lab.coin:measure"
    Parameters = Config

    def points(self, parameters, size):
        return [Point(label="one", parameters={}, spec={})]

    def results(self, parameters, point, measured):
        return dict(measured)

    def claims(self, parameters, outcomes):
        return [Claim.every("it falls", [True])]

    def plot(self, parameters, outcomes, figure):
        figure.add_subplot()
'''


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Path:
    """A folder into which the distribution is installed, with what pip writes."""
    project = tmp_path_factory.mktemp("project")
    (project / "wide_lab").mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    for name, text in (("__init__", ""), ("parts", PARTS), ("coin", COIN)):
        (project / "wide_lab" / f"{name}.py").write_text(text)
    folder = tmp_path_factory.mktemp("target")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    done = subprocess.run([*command, folder, project], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def python(target: Path, text: str, *arguments: str) -> str:
    """The output of a Python program that sees the distribution."""
    found = os.environ | {"PYTHONPATH": str(target), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments], env=found, capture_output=True, text=True, cwd=target
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_can_be_used_is_there_beside_what_the_tree_has(target):
    text = """
from lanikai.firmware.programs import find_program
from lanikai.hdl.traffic.pattern import permutation
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter
from lanikai.sim.experiments.registry import find
print(type(make_vl_arbiter("highest", vls=3)).__module__, VL_ARBITERS.origin("highest"))
print(VL_ARBITERS.origin("fcfs"), VL_ARBITERS["fcfs"].__module__)
print(permutation("two_on", 4), find("coin").asks, find_program("quiet").__name__)
print("gone" in VL_ARBITERS, "gone" in dict(VL_ARBITERS.items()))
"""
    assert python(target, text).splitlines() == [
        "wide_lab.parts wide-lab 1.2",
        "lanikai lanikai.hdl.vl_arbiter.fcfs",
        "[2, 3, 0, 1] Does a coin fall? Quiet",
        "True False",
    ]


def test_one_that_cannot_be_used_is_refused_in_a_line_when_it_is_asked_for(target):
    text = """
from lanikai.hdl.config import ConfigError
from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.hdl.vl_arbiter.registry import make_vl_arbiter
from lanikai.sim.experiments.registry import find
for ask in (lambda: make_vl_arbiter("half", vls=2), lambda: make_vl_arbiter("gone", vls=2), lambda: find("penny")):
    try:
        ask()
    except ConfigError as error:
        print(error)
"""
    assert python(target, text).splitlines() == [
        "VL arbiter 'half' of wide-lab 1.2 (wide_lab.parts:Half) cannot be used: Half lacks pick",
        "VL arbiter 'gone' of wide-lab 1.2 (wide_lab.nowhere:Highest) cannot be used: ModuleNotFoundError: No module "
        "named 'wide_lab.nowhere'",
        "experiment 'penny' of wide-lab 1.2 (wide_lab.coin:Coin) cannot be used: Coin.name is 'coin'",
    ]


def test_the_list_shows_them_with_their_origin_and_the_broken_ones_with_their_reason(target):
    shown = python(target, "from lanikai.sim.cli.program import main; main(['list'])")
    assert "coin" in shown and "[wide-lab 1.2]" in shown and "share-senders" in shown
    lines = shown.splitlines()
    for line in (
        "VL arbiter highest: from wide-lab 1.2",
        "firmware program quiet: from wide-lab 1.2",
        "traffic pattern two_on: from wide-lab 1.2",
        "VL arbiter 'fcfs' of wide-lab 1.2 (wide_lab.parts:Highest) cannot be used: lanikai has a VL arbiter of that "
        "name",
        "traffic pattern 'bad_shape' of wide-lab 1.2 (wide_lab.parts:one_argument) cannot be used: it cannot be called "
        "as a function of (node, nodes)",
    ):
        assert line in lines
    assert any(
        line.startswith("entry points lanikai.routers: there is no such kind; one of") for line in lines
    )


def test_the_key_of_a_build_has_the_distributions_code_in_it(target, tmp_path):
    """A change of the other package is another key; its bytes alone count, not their place."""
    text = "from lanikai.sim.build.model import _writers_hash; print(_writers_hash())"
    without, first = python(tmp_path, text), python(target, text)
    parts = target / "wide_lab" / "parts.py"
    before = parts.read_text()
    try:
        parts.write_text(before.replace("1 << vl", "1 << vl  # another"))
        changed = python(target, text)
    finally:
        parts.write_text(before)
    assert len({without, first, changed}) == 3 and python(target, text) == first


def test_a_sweep_knows_the_distributions_code(target, tmp_path):
    text = "from lanikai.sim.sweeps.code import code_here; print(code_here().digest)"
    assert python(target, text) != python(tmp_path, text)


SCRIPT = """
import lanikai
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS


class Half:
    pass


for call in (
    lambda: lanikai.register("vl_arbiters", "fcfs"),
    lambda: lanikai.register("vl_arbiters", "mine")(VL_ARBITERS["fcfs"]),
    lambda: lanikai.register("vl_arbiters", "half")(Half),
    lambda: lanikai.register("vl_arbiters", "Half!")(VL_ARBITERS["fcfs"]),
    lambda: lanikai.register("vl_arbiters", "round_robin")(VL_ARBITERS["fcfs"]),
    lambda: lanikai.register("arbiter", "x"),
    lambda: lanikai.register("patterns", "x")(3),
):
    try:
        call()
        print("taken")
    except lanikai.Error as error:
        print(error)
print(VL_ARBITERS.origin("mine"), list(VL_ARBITERS)[-1])
"""


def test_what_a_script_adds_is_checked_alike(tmp_path):
    kinds = "experiments, vl_arbiters, arbiters, allocators, routing, topologies, patterns, firmware, host_interfaces"
    assert python(tmp_path, SCRIPT).splitlines() == [
        "taken",
        "taken",
        "VL arbiter 'half' cannot be added: it is no subclass of lanikai.hdl.vl_arbiter.base.VlArbiter",
        "VL arbiter 'Half!' cannot be added: a name has small letters, digits, - and _ alone",
        "VL arbiter 'round_robin' cannot be added: lanikai has a VL arbiter of that name",
        f"no such kind of extension: 'arbiter'; one of {kinds}",
        "traffic pattern 'x' cannot be added: it is not a function of (node, nodes)",
        "this program mine",
    ]
