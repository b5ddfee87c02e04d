"""The commands of `lanikai fpga` as far as they go without a tool or a simulator: help, lists, wrong input."""

from __future__ import annotations

import os
import tty

import pytest
from lanikai.sim.cli.program import main
from lanikai.sim.fpga.designs import DESIGNS
from lanikai.sim.fpga.line import BoardLine, open_port
from lanikai.sim.fpga.settings import design_settings, host_settings
from lanikai.sim.fpga.virtual_board import VirtualBoardConfig


@pytest.fixture
def ends(monkeypatch, tmp_path, capsys):
    """Runs `lanikai fpga` in an empty folder; gives its status and what it wrote to either stream."""

    def built(*_):
        raise AssertionError("something was built")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(VirtualBoardConfig, "build", built)
    monkeypatch.setattr("lanikai.sim.fpga.build.build_bitstream", built)
    monkeypatch.setattr("lanikai.sim.fpga.line.open_port", built)

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            main(["fpga", *arguments])
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

    return run


NODE = ("node", "--board", "ulx3s-85f")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("simulate", *NODE, "--link", "none/board"),
            "--link 'none/board' cannot be written: there is no folder 'none'",
        ),
        (("simulate", *NODE, "--link", ""), "--link '' is there already: give the name of a new file"),
        (
            ("simulate", "node", "--board", "ulx3s", "--link", "board"),
            "unknown board 'ulx3s' (did you mean 'ulx3s-85f'?); valid boards: ulx3s-85f, ",
        ),
        (
            ("build", "node", "--board", "icebraker"),
            "unknown board 'icebraker' (did you mean 'icebreaker'?); valid boards: icebreaker, ",
        ),
        (
            ("build", "node", "--board", "icebreaker"),
            "node has no size for icebreaker; boards that have one: ",
        ),
        (("build", "nod", "--board", "icebreaker"), "unknown design 'nod' (did you mean 'node'?); "),
        (("build", *NODE, "--out", ""), "--out '': give the name of a file"),
        (("read", "board", "--out", " "), "--out ' ': give the name of a folder"),
        (
            ("build", "router-loopback", "--board", "ulx3s-85f", "--set", "random=1"),
            "router-loopback: random = 1: must be true or false",
        ),
    ],
    ids=lambda text: " ".join(text)[:40] if isinstance(text, tuple) else "",
)
def test_wrong_input_is_one_line_before_anything_is_built(ends, tmp_path, arguments, message):
    status, out, err = ends(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"lanikai: {message}") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_a_command_the_help_is_printed(ends):
    status, out, err = ends()
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert {line[0] for line in lines if line} >= {"list", "build", "read", "simulate", "Usage:"}
    assert ends("--help") == (0, out, "")


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("command", ["build", "simulate"])
def test_help_tells_the_settings_of_a_design(ends, command, design):
    status, out, err = ends(command, design, "--help")
    assert (status, err) == (0, "")
    for one in design_settings(design):
        assert f"\n  {one.name} " in out
    other = next(name for name in DESIGNS if name != design)
    assert f"Settings of {design} " in out and f"Settings of {other} " not in out
    assert f"Settings of {other} " in ends(command, "--help")[1]


def test_help_tells_what_a_host_sets(ends):
    out = ends("read", "--help")[1]
    for design in DESIGNS:
        for one in host_settings(design):
            assert f"\n  {one.name} " in out
    assert {one.name for one in host_settings("node")} == {"message_bytes", "messages"}
    found = {one.name: one for one in host_settings("router-loopback")}
    assert found["pattern"].default == "uniform; icebreaker: table" and "vls" not in found


def test_the_list_says_where_the_settings_are(ends):
    out = ends("list")[1]
    for name, design in DESIGNS.items():
        assert f"{name}: {design.about}\n  its sizes: lanikai fpga build {name} --help" in out


def test_a_pseudo_terminal_has_no_rate():
    """docs/fpga.md says so of `--baud`: what goes in at one rate comes out at any."""
    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        for baud in (9600, 1_000_000, 6_250_000):
            with BoardLine(port := open_port(os.ttyname(slave), baud), "pty"):
                port.write(b"x")
                assert os.read(master, 1) == b"x"
                os.write(master, b"y")
                assert port.read(1) == b"y"
    finally:
        os.close(master)
        os.close(slave)
