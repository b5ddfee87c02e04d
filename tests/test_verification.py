"""Proofs, their declarations and the page about them are in step; the SAT engine finds what it should and no more."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from amaranth import Signal
from amaranth.hdl import Assert, Assume, Cover
from support.formal.harness import ProofFailed, Spec, prove
from support.formal.registry import RECORD, begin_record, declared, gathered, note, write_record
from support.formal.sat import Circuit, bounded, covered, inductive
from support.formal.table import how_far, merged, table
from support.references import ROOT

FORMAL = ROOT / "tests" / "formal"
DECLARED = declared()


def proving_tests() -> set[tuple[str, str]]:
    """File and name of every test in `tests/formal/` that calls `prove`."""
    found = set()
    for path in FORMAL.glob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                calls = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
                if any(isinstance(call, ast.Name) and call.id == "prove" for call in calls):
                    found.add((path.name, node.name))
    return found


def test_every_test_that_proves_is_declared():
    assert {(one.file, one.name) for one in DECLARED} == proving_tests()


def test_every_proof_has_mutants_of_its_specification():
    proofs = {(one.file, one.name): one for one in DECLARED if one.block}
    mutated = {(one.file, one.of) for one in DECLARED if one.of}
    assert mutated <= proofs.keys()
    for (file, name), one in proofs.items():
        assert (file, one.like or name) in mutated, f"{file}: {name} has no mutant"


def test_the_rows_of_the_last_run_are_of_tests_that_are_there():
    rows = json.loads((ROOT / "docs" / "verification.json").read_text())["rows"]
    assert rows and {(row["file"], row["name"]) for row in rows} <= proving_tests()


def test_a_record_becomes_rows_and_rows_a_table():
    line = {
        "file": "test_x.py",
        "name": "test_a",
        "seconds": 1.26,
        "runs": [{"mode": "bmc", "depth": 9, "expect": "pass"}],
    }
    rows = gathered(
        [json.dumps(line), json.dumps(line | {"runs": [{"mode": "prove", "depth": 2, "expect": "pass"}]})]
    )
    assert rows == [
        {
            "file": "test_x.py",
            "name": "test_a",
            "cases": 2,
            "seconds": 2.6,
            "runs": {"bmc 9 pass": 1, "prove 2 pass": 1},
        }
    ]
    assert how_far(rows[0]["runs"]) == "for ever, by induction over 2 cycles; 9 cycles"
    assert how_far({"bmc 9 pass": 1, "bmc 12 pass": 3, "bmc 3 fail": 2}) == "9 to 12 cycles"
    assert merged(rows, []) == []  # no such test is declared


def test_a_run_of_no_recorded_test_is_in_no_record(tmp_path, monkeypatch):
    """Such as `prove` in a test of another folder in the same process."""
    monkeypatch.setenv(RECORD, str(tmp_path / "record"))
    note("bmc", 3, "pass")
    begin_record()
    note("prove", 2, "pass")
    write_record("test_x.py", "test_a", 1.0)
    (row,) = gathered((tmp_path / "record").read_text().splitlines())
    assert row["runs"] == {"prove 2 pass": 1}


def test_the_table_counts_the_mutants_that_were_caught(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "@proof(block='A, each b', states='it goes')\ndef test_a(): ...\n"
        "@proof(block='A', states='further', like=test_a)\ndef test_b(): ...\n"
        "@mutants_of(test_a)\n@other\ndef test_c(): ...\n"
    )
    rows = [
        {"file": "test_x.py", "name": "test_a", "seconds": 3, "runs": {"bmc 9 pass": 1}},
        {"file": "test_x.py", "name": "test_c", "seconds": 4, "runs": {"bmc 9 fail": 2}},
    ]
    assert table(rows, declared(tmp_path)).splitlines()[2:] == [
        "| `A`, each b | it goes | 9 cycles | 2 | 7 | `tests/formal/test_x.py` |",
        "| `A` | further | not in the last run | those of: it goes |  | `tests/formal/test_x.py` |",
    ]


def test_a_bad_state_is_found_in_its_cycle_and_not_before():
    # high' = (~high & low) | (high & ~low) is the negation of gate 7: ~(~6 & ~8), where 8 = high & ~low.
    circuit = Circuit(
        inputs=1,
        latches=[(5, 0), (17, 0)],
        gates=[(6, 4), (7, 5), (7, 4), (6, 5), (13, 15)],
        bad=[8],
        constraints=[],
    )
    assert bounded(circuit, 3) == "pass"
    assert bounded(circuit, 4) == "fail 3 0"
    assert covered(circuit, 3) == "fail 0"
    assert covered(circuit, 4) == "pass"


def test_induction_needs_its_depth():
    """A shift register of three that is fed with 0: from anywhere it is empty after three cycles."""
    # Variables 1 to 3: latches. Bad: the last one is set.
    circuit = Circuit(inputs=0, latches=[(0, 0), (2, 0), (4, 0)], gates=[], bad=[6], constraints=[])
    assert inductive(circuit, 1) == "fail induction 0"
    assert inductive(circuit, 3) == "pass"


def test_what_starts_anywhere_and_what_is_assumed():
    free = Circuit(inputs=0, latches=[(2, None)], gates=[], bad=[2], constraints=[])
    assert bounded(free, 1) == "fail 0 0"
    assert bounded(Circuit(0, free.latches, [], [2], [3]), 3) == "pass"


def small(limit: int) -> Spec:
    spec = Spec()
    count, step = Signal(3), spec.free(1, "step")
    spec.m.d.sync += count.eq(count + step)
    spec.m.d.comb += [Assume(~step | (count < 5)), Assert(count <= limit), Cover(count == 5)]
    return spec


@pytest.mark.full
@pytest.mark.parametrize("engine", ["sat", "smt"])
def test_both_engines_say_the_same(engine, tmp_path):
    prove(small(5), tmp_path / "ever", depth=2, engine=engine)
    prove(small(5), tmp_path / "cover", mode="cover", depth=6, engine=engine)
    prove(small(4), tmp_path / "bmc", mode="bmc", depth=5, engine=engine)
    prove(small(4), tmp_path / "fail", mode="bmc", depth=6, expect="fail", engine=engine)
    with pytest.raises(ProofFailed, match=r"Unreached|cover"):
        prove(small(5), tmp_path / "unreached", mode="cover", depth=5, engine=engine)
    with pytest.raises(ProofFailed, match="Assert failed"):
        prove(small(4), tmp_path / "wrong", mode="bmc", depth=6, engine=engine)
    assert Path(tmp_path / "wrong" / "spec" / "engine_0" / "trace.vcd").exists()
