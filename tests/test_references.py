"""Names in docstrings, comments, descriptions and pages exist in the code."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from support import references
from support.references import OUTSIDE, ROOT, Tree, exists, missing, product_files, read

FILES = [
    name for name in product_files() if name.endswith(".md") or name.startswith(("hdl/", "firmware/", "sim/"))
]
PROSE = [
    name
    for name in FILES
    if name.endswith((".py", ".md", ".rdl", ".toml", ".cpp", ".h", ".sv")) and name != "docs/blocks.md"
]
"""Files with prose, without the catalogue, which is made of names that the code puts together (`ar` + `len`)."""


THIS = "tests/test_references.py"
"""This file: it has names that do not exist, to be found."""
TESTS = [name for name in product_files() if name.startswith("tests/") and name.endswith(".py")]


@pytest.fixture(scope="module")
def tree() -> Tree:
    """The tree of names of the code, and paths of all files: the names that the code's own prose may use."""
    tree = read([name for name in product_files() if not name.startswith("tests/")])
    paths = [Path(name) for name in TESTS]
    tree.files |= {*TESTS, *(str(parent) for path in paths for parent in path.parents)}
    return tree


def test_every_name_in_prose_exists(tree):
    wrong = [str(reference) for name in PROSE for reference in missing(tree, name)]
    assert not wrong, "names that do not exist:\n" + "\n".join(wrong)


@pytest.mark.full
def test_every_name_in_the_tests_prose_exists(tree):
    """In tests names of tests count, too."""
    both = read(TESTS, copy.deepcopy(tree))
    wrong = [str(reference) for name in TESTS for reference in missing(both, name) if name != THIS]
    assert not wrong, "names that do not exist:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "lanikai.hdl.arbiter.VL_ARBITERS",
        "packet.HeaderLayout",
        "NicConfig.no_such_field",
        "NicConfig(no_such_field=3)",
        "hdl/router/no_such_file.py",
        "no_such_file.py",
        "no_such_function()",
        "../papers/yum-2006.txt",
    ],
)
def test_a_name_that_does_not_exist_is_found(tree, text):
    assert not exists(tree, text)


@pytest.mark.parametrize(
    "text",
    [
        "NicConfig.tick_cycles",
        "NicConfig(flows=16, rate_structure='tree')",
        "hdl/nic/*.rdl",
        "host/mpi/trace.py",
        "HOST_DMA_PROTECT.entries",
        "RATE_",
        "tx__payload",
        "points/NN/",
        "results.json",
        "lanikai run NAME --json -",
    ],
)
def test_a_name_that_exists_is_not(tree, text):
    assert exists(tree, text)


def test_registers_without_backticks_and_comments_are_read(tmp_path, monkeypatch, tree):
    (tmp_path / "one.py").write_text(
        '"""Writes NO_SUCH_REGISTER."""\n\nvalue = 1  # see `no_such_name`,\n# or `NicConfig`\n'
        "field = Field(\n    1, description='as `NicConfig.'\n    'no_such_field` says'\n)\n"
    )
    monkeypatch.setattr(references, "ROOT", tmp_path)
    found = sorted((reference.line, reference.text) for reference in missing(tree, "one.py"))
    assert found == [(1, "NO_SUCH_REGISTER"), (3, "no_such_name"), (6, "NicConfig.no_such_field")]
    for name, text in {
        "two.rdl": 'reg { desc = "See NO_SUCH_REGISTER."; } A;',
        "three.cpp": "int a;  // `no_such()`",
    }.items():
        (tmp_path / name).write_text(text)
        assert len(missing(tree, name)) == 1


def test_names_from_outside_are_still_named():
    files = {*PROSE, *TESTS} - {"tests/support/references.py"}
    text = " ".join(" ".join((ROOT / name).read_text().split()) for name in files)
    assert not [name for name in OUTSIDE if name not in text]
