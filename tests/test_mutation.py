"""The tool for mutation: which mutants it finds, that each changes the RTL, what it needs to know of the tree."""

from __future__ import annotations

import json
import linecache
import os
import resource
import subprocess
import sys
from itertools import count

import amaranth.tracer
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Const, Module, Signal, signed, unsigned
from amaranth.sim import Simulator
from lanikai.hdl.arbiter.round_robin import RoundRobinArbiter
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.traffic.random import Xoroshiro
from support.mutation import places
from support.mutation.campaign import WHOLE, Campaign
from support.mutation.changes import fitted
from support.mutation.child import ChildFailed, TimedOut, in_child
from support.mutation.outcomes import in_order
from support.mutation.own_tests import named, own_tests, rtl_files
from support.mutation.places import ROOT, text_at
from support.mutation.rewrite import Mutant, Rewriter
from support.mutation.runs import Baseline, digest
from support.mutation.survivors import explanations, page, survivors


@pytest.fixture
def rewriting(monkeypatch):
    """A function that has a rewriter go through all that is elaborated from then on."""
    monkeypatch.setattr(amaranth.tracer, "get_src_loc", places.locate)
    elaborate = Module.elaborate

    def begin(rewriter):
        def changed(module, platform):
            return rewriter.fragment(elaborate(module, platform))

        monkeypatch.setattr(Module, "elaborate", changed)
        return rewriter

    return begin


def text(component):
    return rtlil.convert(component, name="top", emit_src=False)


def found_in(make, rewriting):
    found = set()
    rewriting(Rewriter(found.add))
    text(make())
    return sorted(found)


def test_what_is_found_in_an_arbiter(rewriting):
    """Every operator, constant, condition and assignment of the file, in words of its source."""
    found = found_in(lambda: RoundRobinArbiter(size=4), rewriting)
    said = {
        (text_at(one.file, one.span), one.change) for one in found if one.file == "hdl/arbiter/round_robin.py"
    }
    assert said >= {
        ("self.requests & above", "& -> |"),
        ("Mux(later.any(), later, self.requests)", "Mux: swapped"),
        ("later.any()", "any -> all"),
        ("~pick", "~ dropped"),
        ("~pick + 1", "+ -> -"),
        ("~pick + 1", "constant + 1"),
        ("later.eq(self.requests & above)", "assignment dropped"),
        ("with m.If(self.advance & self.requests.any()):", "condition negated"),
        ("with m.If(self.advance & self.requests.any()):", "condition always"),
        ("with m.If(self.advance & self.requests.any()):", "condition never"),
    }
    # `works_when` stands in a file of its own.
    assert {one.file for one in found} == {"hdl/arbiter/round_robin.py", "hdl/working.py"}


@pytest.mark.parametrize(
    "make",
    [lambda: RoundRobinArbiter(size=3), lambda: Credits(vls=3, depth=5), Xoroshiro],
    ids=["arbiter", "credits", "random"],
)
def test_every_mutant_changes_the_rtl_and_nothing_does_without_one(make, rewriting):
    found = found_in(make, rewriting)
    plain = text(make())
    assert len(found) > 10
    for mutant in found:
        rewriter = rewriting(Rewriter(active=mutant))
        assert text(make()) != plain, mutant
        assert rewriter.applied
    rewriting(Rewriter())
    assert text(make()) == plain


def test_a_changed_value_keeps_its_shape():
    value = Signal(8)
    for shape in (unsigned(3), unsigned(12), signed(3), signed(12)):
        assert fitted(value, shape).shape() == shape
    m, out = Module(), Signal(signed(12))
    m.d.comb += out.eq(fitted(Const(-3, signed(4)), signed(12)))

    async def bench(ctx):
        assert ctx.get(out) == -3

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_changed_copy_of_a_file_is_no_place_in_it():
    copy = {"__name__": f"lanikai.hdl.link{places.COPIES}", "locate": places.locate}
    exec(compile("place = locate()", str(ROOT / "hdl" / "link.py"), "exec"), copy)
    assert copy["place"].file is None
    copy["__name__"] = "lanikai.hdl.link"
    exec(compile("place = locate()", str(ROOT / "hdl" / "link.py"), "exec"), copy)
    assert copy["place"].file == "hdl/link.py"


def test_every_file_of_the_rtl_has_tests():
    """A file is one of RTL if it assigns anything."""
    missing = [name for name in rtl_files() if ".eq(" in (ROOT / name).read_text() and not own_tests(name)]
    assert not missing, "name their tests in tests/support/mutation/own_tests.toml"
    assert named().keys() <= set(rtl_files())
    gone = [test for name in rtl_files() for test in own_tests(name) if not (ROOT / test).exists()]
    assert not gone


def test_a_child_gives_its_result_or_is_ended(tmp_path):
    log = tmp_path / "log"
    assert in_child(lambda: {"pid": os.getpid()}, log=log, timeout_s=60)["pid"] != os.getpid()
    with pytest.raises(TimedOut):
        in_child(lambda: subprocess.run(["sleep", "60"]), log=log, timeout_s=0.3)
    with pytest.raises(ChildFailed, match=f"its output is {log}"):
        in_child(lambda: 1 // 0, log=log, timeout_s=60)
    assert "ZeroDivisionError" in log.read_text()


def test_a_child_is_ended_that_takes_too_much_processor_time(tmp_path):
    def work():
        resource.setrlimit(resource.RLIMIT_CPU, (1, resource.RLIM_INFINITY))
        for _ in count():
            pass

    with pytest.raises(TimedOut):
        in_child(work, log=tmp_path / "log", timeout_s=600)


def test_the_quickest_case_of_each_test_is_first():
    """A test that killed others is ahead of one that is as quick."""
    seconds = {"a[1]": 0.3, "a[2]": 0.2, "b": 1.0, "c[1]": 1.0, "c[2]": 1.1}
    assert in_order([*seconds], seconds, {}) == ["a[2]", "b", "c[1]", "a[1]", "c[2]"]
    assert in_order([*seconds], seconds, {"c[2]": 1}) == ["a[2]", "c[2]", "b", "a[1]", "c[1]"]


def test_a_smaller_choice_is_part_of_a_whole_one(tmp_path):
    mutants = {Mutant("hdl/link.py", (line, 0, line, 1), "assignment dropped"): [] for line in range(60)}

    def chosen(count, seed=1):
        campaign = Campaign(seed=seed, count=count, cache=tmp_path, result=tmp_path / "result.json")
        return set(campaign.choice("hdl/link.py", Baseline(mutants, {})))

    assert [len(chosen(number)) for number in (3, WHOLE, 40, 99)] == [3, WHOLE, 40, 60]
    assert chosen(3) < chosen(8) < chosen(WHOLE) and chosen(8) != chosen(8, seed=2)


def test_a_file_that_its_tests_do_not_elaborate_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("support.mutation.campaign.baseline", lambda *_, **__: Baseline({}, {}))
    campaign = Campaign(seed=1, count=1, cache=tmp_path, result=tmp_path / "result.json")
    assert campaign.file("hdl/nic/dma/dma_gate.py") == 1
    assert capsys.readouterr().out.startswith(
        "hdl/nic/dma/dma_gate.py: no mutant is possible in tests/hdl/nic/dma/test_dma_gate.py, "
    )
    assert not (tmp_path / "result.json").exists()


def test_every_survivor_is_explained_and_every_explanation_is_of_one():
    entries = explanations()
    assert len({one.survivor for one in entries}) == len(entries)
    assert {one.survivor for one in entries} == set(survivors())
    for one in entries:
        assert one.text in " ".join((ROOT / one.file).read_text().split()), f"stale: {one.file}: {one.text}"
        assert one.reason.endswith(".")
    assert "not explained yet" not in page()


def run(*arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-m", "support.mutation", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_wrong_input_is_told_in_one_line():
    told = run("hdl/none.py")
    assert (told.returncode, told.stderr) == (
        2,
        "error: hdl/none.py: no file of hdl/; name one as hdl/link.py\n",
    )
    told = run("--count", "0")
    assert (told.returncode, told.stderr) == (2, "error: --count 0: at least 1\n")


@pytest.mark.full
def test_a_survivor_is_run_again_against_a_new_test(tmp_path):
    file, text, change = "hdl/arbiter/round_robin.py", "later.any()", "any -> all"
    lines = (ROOT / file).read_text().splitlines()
    line = next(number for number, one in enumerate(lines, 1) if text in one)
    alive = {"line": line, "text": text, "change": change, "tests": 3}
    row = {
        "digest": digest([file]),
        "run": 1,
        "killed": 0,
        "timed out": 0,
        "survived": 1,
        "survivors": [alive],
    }
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"files": {file: row}}))
    told = run("--json", str(result), "--test", "tests/hdl/arbiter/test_round_robin.py", file)
    assert told.returncode == 0, told.stdout + told.stderr
    row = json.loads(result.read_text())["files"][file]
    assert (row["killed"], row["survived"], row["survivors"]) == (1, 0, [])
    told = run("--json", str(result), "--test", "tests/hdl/arbiter/test_round_robin.py", file)
    assert (told.returncode, told.stderr) == (2, "error: no survivor of these files is in these tests\n")


@pytest.mark.full
def test_mutants_of_an_arbiter_are_killed_and_a_harmless_one_is_not(tmp_path):
    """A whole run. `working` is a wire that nothing in a test takes, so its only statement may be dropped."""
    result = tmp_path / "result.json"
    told = run("--count", "3", "--json", str(result), "hdl/arbiter/round_robin.py")
    assert told.returncode == 0, told.stdout
    assert json.loads(result.read_text())["files"]["hdl/arbiter/round_robin.py"]["killed"] == 3
    told = run("--count", "3", "--json", str(result), "hdl/working.py")
    assert told.returncode == 1
    assert "hdl/working.py:26: working.eq(Cat(*needs).any()): assignment dropped" in told.stdout
    linecache.clearcache()
