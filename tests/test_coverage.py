"""The tool for coverage: points of Verilator told in lines of the RTL, what counts as run, a run from end to end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import amaranth.tracer
import pytest
from amaranth.back import verilog
from amaranth.hdl import Module
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.rtc import Timer
from support.coverage.counted import Toggle, branches_run, keep_sources, kept_sources, toggles
from support.coverage.marks import PREFIX, Marks
from support.coverage.report import not_taken, report, table
from support.coverage.statements import statement_lines
from support.mutation import places
from support.mutation.places import ROOT

MARK, OTHER = f"{PREFIX}0123456789ab", f"{PREFIX}cdef01234567"
VERILOG = f"""\
(* src = "elsewhere:0" *)
module \\top.sub (clk, go, count);
  (* src = "elsewhere:0" *)
  input clk;
  wire clk;
  (* src = "hdl/link.py:30" *)
  output [1:0] count;
  reg [1:0] count;
  (* src = "hdl/link.py:31" *)
  wire \\go$7 ;
  (* src = "hdl/link.py:32" *)
  reg {MARK};
  (* src = "hdl/link.py:33" *)
  reg {OTHER};
  assign x = count + (* src = "hdl/link.py:34" *) 1'h1;
  always @* begin
    {MARK} = 1'h0;
    if (\\go$7 ) begin
      {MARK} = 1'h1;
    end
    {OTHER}  = 1'h0;
    if (x) begin
      {OTHER}  = 1'h1;
    end
  end
endmodule
"""


def point(count, **fields):
    return "C '" + "".join(f"\x01{key}\x02{value}" for key, value in fields.items()) + f"' {count}\n"


def branch(lines, count):
    return point(
        count, f="a.v", l="18", n="5", t="branch", page="v_branch/top__02Esub", o="if", S=lines, h="top"
    )


def toggle(name, count, module="top__02Esub"):
    return point(count, f="a.v", l="7", n="8", t="toggle", page=f"v_toggle/{module}", o=name, h="top.a")


@pytest.fixture
def counted(tmp_path):
    """Folders of a model and of what a run of it counted, and the file of its marks."""
    model, data = tmp_path / "models" / "key", tmp_path / "data"
    (model / "blocks" / "one").mkdir(parents=True)
    data.mkdir()
    (model / "blocks" / "one" / "a.v").write_text(VERILOG)
    keep_sources(model)
    (data / "key-1-2.dat").write_text(
        branch("18-19", 3)
        + branch("22-23", 0)
        + toggle("count[0]:0->1", 5)
        + toggle("count[0]:1->0", 4)
        + toggle("count[1]:0->1", 0)
        + toggle("go__0247:0->1", 1)
        + toggle(f"{MARK}:0->1", 9)
        + toggle("__0241:0->1", 9)
        + toggle("clk:0->1", 9)
        + toggle("count[0]:0->1", 5, module="other")
    )
    marks = tmp_path / "marks.json"
    branches = {MARK: ["hdl/link.py", [60, 61]], OTHER: ["hdl/link.py", [62]]}
    marks.write_text(json.dumps({"branches": branches, "always": {"hdl/link.py": ["digest", [59]]}}))
    return model, data, marks


def test_points_are_told_in_places_of_the_rtl(counted):
    """A block has the mark that is set in it. A signal without a place, or of another module, is none."""
    model, data, _ = counted
    (run,) = data.glob("*.dat")
    sources = kept_sources(model)
    assert branches_run(run, sources) == {MARK: True, OTHER: False}
    assert dict(toggles(run, sources)) == {
        Toggle("hdl/link.py", 30, "count", 0, True): True,
        Toggle("hdl/link.py", 30, "count", 0, False): True,
        Toggle("hdl/link.py", 30, "count", 1, True): False,
        Toggle("hdl/link.py", 31, "go", 0, True): True,
    }


def test_a_row_counts_lines_that_nothing_built_too(counted):
    model, data, marks = counted
    found = report(data, model.parent, marks)
    row = found["hdl/link.py"]
    lines = statement_lines((ROOT / "hdl/link.py").read_text()) | {59, 60, 61, 62}
    assert (row["lines"], row["lines_run"]) == (len(lines), 3)
    assert 62 in row["not_run"] and 62 not in row["not_built"] and not {59, 60, 61} & set(row["not_run"])
    assert (row["toggles"], row["toggled"], row["still"]) == (4, 3, [[30, "count", 1]])
    assert found["hdl/arbiter/round_robin.py"]["lines_run"] == 0
    assert f"| `hdl/link.py` | {len(lines)} | {300 / len(lines):.1f}% | 4 | 75.0% | 4 | 75.0% |" in table(
        found
    )
    assert not_taken(found) == "- `hdl/link.py`: `62`"
    found["hdl/link.py"] |= {"not_run": [1, 2, 3, 5, 7, 8], "not_built": []}
    assert not_taken(found) == "- `hdl/link.py`: `1-3, 5, 7-8`"


def test_a_second_run_adds_to_the_first(counted):
    model, data, marks = counted
    (data / "key-3-4.dat").write_text(branch("22-23", 1) + toggle("count[1]:0->1", 1))
    row = report(data, model.parent, marks)["hdl/link.py"]
    assert (row["lines_run"], row["toggled"], row["still"]) == (4, 4, [])


def test_lines_of_statements():
    text = (
        "x.eq(\n    y\n)\n"
        "with m.If(x):\n    m.d.comb += [\n        a.eq(b),\n    ]\n"
        "with m.FSM():\n    with m.State('A'):\n        m.next = 'B'\n"
        "other = x == y\n"
    )
    assert statement_lines(text) == {1, 4, 6, 9, 10}


def test_every_branch_has_a_mark_in_verilog(monkeypatch):
    """The marks are set where the branches are, and a branch in two clock domains has one."""
    monkeypatch.setattr(amaranth.tracer, "get_src_loc", places.locate)
    monkeypatch.setattr(Module, "elaborate", Module.elaborate)
    marks = Marks()
    marks.install()
    text = verilog.convert(Timer(preset(NicConfig, "tiny")), name="timer")
    lines = (ROOT / "hdl/nic/rtc.py").read_text().splitlines()
    found = {
        tuple(lines[number - 1].strip() for number in sorted(branch[1])) for branch in marks.branches.values()
    }
    assert found == {
        ("with m.If(self.arm):", "m.d.sync += [self.armed.eq(1), self.time.eq(self.compare)]"),
        ("with m.Elif(self.fired):", "m.d.sync += self.armed.eq(0)"),
    }
    assert set(re.findall(rf"({PREFIX}\w+)\s+= 1'h1;", text)) == marks.branches.keys()
    (always,) = marks.always.values()
    assert [lines[number - 1].strip() for number in always] == [
        "m.d.comb += self.fired.eq(self.armed & reached(self.ticks, self.time))"
    ]


@pytest.mark.full
def test_a_run_counts_what_it_did(tmp_path):
    """A cluster of cards with two processors each, and no agent in its router."""
    result = tmp_path / "coverage.json"
    test = "tests/sim/models/test_processor_pair.py::test_a_lock_keeps_one_processors_accesses_together"
    options = ["--json", str(result), "--folder", str(tmp_path / "work")]
    told = subprocess.run(
        [sys.executable, "-m", "support.coverage", *options, test],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    files = json.loads(result.read_text())["files"]
    assert files["hdl/nic/processor/pair.py"]["lines_run"] > 10
    assert files["hdl/nic/processor/pair.py"]["toggled"] > 10
    assert files["hdl/router/agent.py"]["lines_run"] == 0
