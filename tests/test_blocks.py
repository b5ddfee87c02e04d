"""The catalogue of blocks: every public component is there, and its docstring says latency and throughput."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest
from amaranth import Module
from amaranth.hdl import Fragment
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from support.references import ROOT

spec = importlib.util.spec_from_file_location("catalogue", ROOT / "docs" / "catalogue.py")
catalogue = sys.modules["catalogue"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(catalogue)

BLOCKS = catalogue.blocks()


@pytest.mark.parametrize("block", BLOCKS, ids=[block.__name__ for block in BLOCKS])
def test_a_block_says_what_it_is_how_late_and_how_fast(block):
    assert 3 <= len(catalogue.first_sentence(block)) < 250
    for name in catalogue.FIELDS:
        assert catalogue.field(block, name), f"{block.__name__}: its docstring has no `{name}:`"
    assert block in catalogue.instances(), "no system of docs/catalogue.py has one"


def test_every_block_has_a_name_of_its_own():
    names = [block.__name__ for block in BLOCKS]
    assert len(set(names)) == len(names) > 80


def test_every_proof_and_every_measured_area_is_of_a_block():
    names = {block.__name__ for block in BLOCKS}
    proved = {file for block in BLOCKS for file in catalogue.proofs_of(block)}
    assert proved == {f"tests/formal/{path.name}" for path in (ROOT / "tests" / "formal").glob("test_*.py")}
    rows = json.loads((ROOT / "docs" / "synthesis.json").read_text())["rows"]
    assert rows and {row["class"] for row in rows} <= names


class Example(wiring.Component):
    """A block (Doe, Trans. 1). It does nothing.

    Latency: 2 cycles. Throughput: one
    a cycle. Reset: idle.
    """

    def __init__(self) -> None:
        super().__init__({"pair": In(wiring.Signature({"a": Out(3), "b": In(2)})), "many": Out(4).array(2)})

    def elaborate(self, platform: object) -> Module:
        return Module()


class Derived(Example):
    """Another one."""


def test_fields_and_ports_are_read():
    assert catalogue.first_sentence(Example) == "A block (Doe, Trans. 1)."
    assert catalogue.field(Example, "Latency") == catalogue.field(Derived, "Latency") == "2 cycles."
    assert catalogue.field(Example, "Throughput") == "One a cycle."
    assert catalogue.field(Example, "Source") is None
    example = Example()
    assert Fragment.get(example, None)
    assert list(catalogue.port_rows(example)) == [
        "| `pair` | in | `a` 3 |",
        "| `pair` | out | `b` 2 |",
        "| `many` | out | 4 x 2 |",
    ]


class Twins(wiring.Component):
    """Interfaces of one kind and size, and ports of one width."""

    def __init__(self, size: int) -> None:
        pairs = {f"p{number}": In(wiring.Signature({"a": Out(3)})) for number in range(size)}
        super().__init__({**pairs, "x": In(1), "y": In(1)})

    def elaborate(self, platform: object) -> Module:
        return Module()


def test_interfaces_of_one_kind_share_rows_and_ports_do_not():
    ports = ["| `x` | in | 1 |", "| `y` | in | 1 |"]
    few, many = [], []
    for size, rows in ((2, few), (27, many)):
        twins = Twins(size)
        rows += catalogue.port_rows(twins)
        assert Fragment.get(twins, None)
    assert few == ["| `p0`, `p1` | in | `a` 3 |", *ports]
    assert many == ["| `p0` to `p26` (27 of them) | in | `a` 3 |", *ports]
