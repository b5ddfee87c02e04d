"""The documentation: links lead somewhere, commands exist, pages made from the code are up to date."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from lanikai.hdl.router.allocators import ALLOCATORS
from lanikai.hdl.router.routing import ROUTING
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS
from lanikai.sim.cli import program
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.registry import find

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
names = [str(page.relative_to(ROOT)) for page in PAGES]


def commands() -> list[str]:
    """Every line of every shell block of every page, without its comment."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
            found += [shlex.join(shlex.split(line, comments=True)) for line in block.splitlines()]
    return [line for line in dict.fromkeys(found) if line]


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith(("http://", "https://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_paths_that_a_page_names_exist(page):
    text = page.read_text()
    written = re.findall(r"^Put this into `([\w./]+)`", text, re.MULTILINE)  # by the reader of a guide
    for path in re.findall(r"`((?:hdl|firmware|sim|tests|docs)/[\w./-]*)`", text):
        assert path in written or (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_no_page_is_empty(page):
    assert len(page.read_text().split()) > 50


def load_generate():
    """The module `docs/generate.py`."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


def test_page_of_a_bench_beside_a_peer():
    """A row for each case, ours and the peer's side by side; nothing without a peer."""
    generate = load_generate()
    row = {"case": "mesh4x4@0.1", "seeds": [1, 2], "cycles_per_second": 2e5, "peer_cycles_per_second": 1e5}
    row |= {"ratio": 2.0, "spread": 0.1, "latency_cycles": 70.0, "peer_latency_cycles": 71.5}
    row |= {"accepted": 0.1, "peer_accepted": 0.0995}
    lines = generate.beside_lines({"peer": "booksim2", "differences": ["It differs."], "rows": [row]})
    assert lines[-1] == "| mesh4x4@0.1 | 200.0 | 100.0 | 2.00 | 10% | 70.0 | 71.5 | 0.100 | 0.100 |"
    assert lines[-3].count("|") == lines[-2].count("|") == lines[-1].count("|") and "- It differs." in lines
    assert generate.beside_lines(None) == []


def test_pages_made_from_the_code_are_up_to_date():
    for name, page in load_generate().PAGES.items():
        assert (ROOT / "docs" / name).read_text() == page(), f"run: python docs/generate.py ({name})"


VARIABLE = re.compile(
    r"""(?:environ(?:\.get)?[\[(]|environ\.setdefault\(|getenv\(|_VARIABLE = |RECORD = )["']([A-Z_]+)["']"""
)
"""A name of an environment variable where code reads it."""
OF_OTHERS = {"PATH", "PYTEST_CURRENT_TEST", "STAND_IN"}
"""The system's own, one of pytest, and one between a test and its stand-in for a program."""


def test_a_page_has_every_environment_variable():
    """Those of the package, and those of the tests."""
    folders = [ROOT / name for name in ("api", "constraints", "hdl", "firmware", "sim", "tests")]
    texts = [path.read_text() for one in folders for path in one.rglob("*") if path.suffix in (".py", ".cpp")]
    read = {name for text in texts for name in VARIABLE.findall(text)} - OF_OTHERS
    assert {"LANIKAI_CACHE_DIR", "LANIKAI_CXX", "LANIKAI_JOB", "LANIKAI_COVERAGE"} <= read
    described = set(re.findall(r"`([A-Z_]+)`", (ROOT / "docs" / "environment.md").read_text()))
    assert read - described == set()


@pytest.mark.parametrize(
    ("registry", "page"),
    [(VL_ARBITERS, "arbiters.md"), (ALLOCATORS, "network-load.md"), (ROUTING, "router.md")],
    ids=["VL arbiters", "allocators", "routing functions"],
)
def test_a_page_has_a_row_for_every_name_of_a_registry(registry, page):
    rows = [
        line.split("|")[1]
        for line in (ROOT / "docs" / page).read_text().splitlines()
        if line.startswith("| `")
    ]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert not registry.keys() - named


@pytest.mark.parametrize("command", commands())
def test_a_command_in_the_documentation_is_right(command, monkeypatch, capsys):
    """`make` targets exist; `lanikai` commands run, those that would build as far as that point."""
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    if program == "make":
        done = subprocess.run(["make", "--dry-run", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    elif program == "lanikai":
        check(arguments, monkeypatch)
    else:
        pytest.fail(f"no rule for {program!r}")


def check(arguments: list[str], monkeypatch) -> None:
    """Run a command as far as it goes without a simulator."""

    class Reached(Exception):
        pass

    def stop(*_, **__):
        raise Reached

    if arguments[0] == "run" and "--help" not in arguments:
        settings = [arguments[n + 1] for n, word in enumerate(arguments) if word == "--set"]
        experiment = find(arguments[1])
        assert experiment.points(parse(experiment, settings), "quick")
        monkeypatch.setattr("lanikai.sim.experiments.framework.run_folder.RunFolder", stop)
        with pytest.raises(Reached):
            program.app(arguments, prog_name="lanikai", standalone_mode=False)
    elif arguments[0] == "bench":
        monkeypatch.setattr("lanikai.sim.speed.report.earlier", lambda path: {})
        monkeypatch.setattr("lanikai.sim.speed.cases.BenchCase.system", stop)
        monkeypatch.setattr("lanikai.sim.speed.beside.find_program", lambda peer, named: Path(peer.name))
        monkeypatch.setattr(
            "lanikai.sim.experiments.framework.run_folder.check_file", lambda path, what: None
        )
        with pytest.raises(Reached):
            program.app(arguments, prog_name="lanikai", standalone_mode=False)
    elif arguments[0] == "sweep":
        monkeypatch.setattr("lanikai.sim.sweeps.store.SweepFolder", stop)
        with pytest.raises(Reached):
            program.app(arguments, prog_name="lanikai", standalone_mode=False)
    elif (
        arguments[:2] in (["fpga", "build"], ["fpga", "simulate"], ["fpga", "read"])
        and "--help" not in arguments
    ):
        monkeypatch.setattr("lanikai.sim.fpga.build.build_bitstream", stop)
        monkeypatch.setattr("lanikai.sim.systems.base.SystemConfig.build", stop)
        monkeypatch.setattr("lanikai.sim.fpga.line.open_port", stop)
        with pytest.raises(Reached):
            program.app(arguments, prog_name="lanikai", standalone_mode=False)
    elif arguments[0] == "report":
        monkeypatch.setattr("lanikai.sim.report.report.make_report", stop)
        with pytest.raises(Reached):
            program.app(arguments, prog_name="lanikai", standalone_mode=False)
    elif arguments[0] == "verilog":
        monkeypatch.setattr("lanikai.sim.export.export.export", stop)
        with pytest.raises(Reached):
            program.app(arguments, prog_name="lanikai", standalone_mode=False)
    else:
        with pytest.raises(SystemExit) as caught:
            program.main(arguments)
        assert caught.value.code in (0, 3)
