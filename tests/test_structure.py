"""The tree's order: imports lead one way, folders and files are of a size that can be read."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

import pytest
from support.imports import PACKAGES, Modules, circles, read_modules, rooms
from support.references import ROOT

MOST_MODULES = 22
"""Modules of a folder, without its `__init__.py`."""
MOST_LINES = 430
MOST_LINES_OF_LONG = 500
LONG = {
    "hdl/nic/nic.py": "the card's top: all its blocks, joined",
    "hdl/nic/owners/completion.py": "one block and its state machine, with the proof's view of it",
    "hdl/router/allocators/allocator.py": "one block with its variants",
    "hdl/vl_arbiter/two_level.py": "one arbiter with its variants, which share its tables",
    "sim/cli/program.py": "the commands' options, most of it text",
    "sim/experiments/mpi/replay.py": "one experiment: cases, claims, measurement, plot",
    "sim/experiments/network_load.py": "one experiment: cases, claims, measurement, plot",
    "sim/experiments/video_reservation.py": "one experiment: cases, claims, measurement, plot",
    "sim/experiments/wrr_shares.py": "one experiment: cases, claims, measurement, plot",
    "sim/manager/local.py": "one manager, whose calls share what its node holds",
    "sim/manager/master.py": "one manager, whose calls share the ledger",
    "sim/models/pci_host.py": "one bus model: both directions share its state",
}
"""Modules that may have more than `MOST_LINES`, and why each is one file."""


@pytest.fixture(scope="module")
def modules() -> Modules:
    return read_modules(ROOT)


def folders(modules: Modules) -> list[str]:
    return sorted({str(parent) for name in modules.lines for parent in PurePosixPath(name).parents} - {"."})


def test_no_module_imports_itself_by_way_of_others(modules):
    assert circles(modules.imports) == []


def test_no_folder_or_file_imports_a_neighbour_that_imports_it(modules):
    found = [
        [f"{folder}/{room}" for room in circle]
        for folder in folders(modules)
        for circle in circles(rooms(modules, folder))
    ]
    assert found == []


def test_imports_lead_from_sim_to_firmware_to_hdl(modules):
    def layer(name: str) -> int:
        return PACKAGES.index(name.split("/")[0])

    up = [
        f"{name} imports {other}"
        for name, imported in modules.imports.items()
        for other in imported
        if layer(other) > layer(name)
    ]
    assert up == []


def test_no_folder_has_more_modules_than_can_be_read_at_a_glance(modules):
    count = Counter(
        str(PurePosixPath(name).parent) for name in modules.lines if not name.endswith("__init__.py")
    )
    assert {folder: n for folder, n in count.items() if n > MOST_MODULES} == {}


def test_no_module_is_long_without_a_reason(modules):
    most = {name: MOST_LINES_OF_LONG if name in LONG else MOST_LINES for name in modules.lines}
    assert {name: lines for name, lines in modules.lines.items() if lines > most[name]} == {}
    assert LONG.keys() <= modules.lines.keys()


def write(root, **files):
    for package in PACKAGES:
        (root / package).mkdir(exist_ok=True)
        (root / package / "__init__.py").touch()
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return read_modules(root)


@pytest.mark.parametrize(
    "text",
    [
        "from .b import name\n",
        "from . import b\n",
        "import lanikai.sim.b\n",
        "from lanikai.sim import b\n",
        "from lanikai.sim.b import name\n",
        "def f():\n    from .b import name\n",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .b import name\n",
    ],
)
def test_every_way_to_import_is_seen(tmp_path, text):
    found = write(tmp_path, sim__a=text, sim__b="from .a import other\n")
    assert circles(found.imports) == [["sim/a.py", "sim/b.py"]]


def test_a_circle_of_folders_is_found_where_no_module_is_in_one(tmp_path):
    found = write(
        tmp_path,
        sim__one__a="from ..two.a import name\n",
        sim__one__b="",
        sim__two__a="",
        sim__two__b="from ..one import b\n",
        sim__c="from .one import a\n",
    )
    assert circles(found.imports) == []
    assert circles(rooms(found, "sim")) == [["one", "two"]]


def test_a_circle_of_three_is_one_and_what_leads_to_it_is_not_in_it():
    edges = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a", "d"], "e": ["d"]}
    assert circles(edges) == [["a", "b", "c"]]
