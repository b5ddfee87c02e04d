"""Help of an experiment, completion in a shell, colours, and the time that a run still takes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from lanikai.sim.cli.program import main
from lanikai.sim.experiments.framework import display
from lanikai.sim.experiments.framework.base import Point
from lanikai.sim.experiments.registry import EXPERIMENTS
from rich.console import Console

PROGRAM = (sys.executable, "-c", "from lanikai.sim.cli.program import main; main()")


def told(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    captured = capsys.readouterr()
    assert (caught.value.code, captured.err) == (0, "")
    return captured.out


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_help_tells_of_an_experiment(capsys, name):
    text = told(capsys, "run", name, "--help")
    words = " ".join(text.split())
    assert " ".join(EXPERIMENTS[name].asks.split()[:4]) in words and "Source: " in words
    for key, field in EXPERIMENTS[name].Parameters.model_fields.items():
        assert f"\n  {key} " in text or f"\n  {key}\n" in text
        assert field.is_required() or "[default: " in text
    assert max(map(len, text.splitlines())) <= 80


def test_help_of_a_published_set_up(capsys):
    text = told(capsys, "run", "-h", "via-qos-load")
    assert "Published set-up: classes of 2, 8 and 32 MB/s" in text
    assert "Published set-up" not in told(capsys, "run", "--help")
    assert "message_bytes" in told(capsys, "sweep", "share-senders", "--help")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("lanikai run share-s", ["share-senders"]),
        ("lanikai sweep via-c", ["via-cbr"]),
        ("lanikai run network-load --set hot", ["hot_node=", "hot_fraction="]),
        ("lanikai sweep share-senders --grid mes", ["message_bytes="]),
        ("lanikai run nothing --set hot", []),
    ],
)
def test_completion(tmp_path, line, offered):
    done = subprocess.run(
        PROGRAM,
        env=os.environ
        | {
            "_LANIKAI_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - 1),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color(tmp_path, environment, coloured):
    done = subprocess.run(
        [*PROGRAM, "doctor"],
        env={name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        | {"FORCE_COLOR": "1", "TERM": "xterm"}
        | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ("\x1b[32m" in done.stdout) == coloured


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "unknown command 'rnu' (did you mean 'run'?); valid commands: "),
        (["fpga", "biuld"], "unknown command 'biuld' (did you mean 'build'?); valid commands: build, "),
        (["run"], "Missing argument 'NAME'. (see `lanikai run --help`)"),
        (["fpga", "list", "x"], "Got unexpected extra argument(s) (x) (see `lanikai fpga list --help`)"),
        (["--nothing"], "No such option: --nothing (see `lanikai --help`)"),
    ],
)
def test_wrong_usage_says_what_would_be_right(capsys, arguments, said):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    error = " ".join(capsys.readouterr().err.split())
    assert caught.value.code == 2 and error.startswith(f"lanikai: {said}")


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "share-senders", "--help"], ["list"], ["run", "x"]]
)
def test_a_terminal_of_any_width(tmp_path, columns, arguments):
    """On a terminal no line is longer than it is wide."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    child = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave,
        env={name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")},
    )  # fmt: skip
    os.close(slave)
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(master, 65536):
            said += more
    os.close(master)
    assert child.wait() == (2 if arguments[-1] == "x" else 0)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()
    assert len(lines) > 5 and max(map(len, lines)) <= columns


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (125, "2:05"), (3600, "1:00:00"), (7325, "2:02:05")]
)
def test_clock(seconds, text):
    assert display.clock(seconds) == text


def test_a_run_says_how_much_time_is_left():
    now = [0.0]
    console = Console(record=True, width=160, file=open(os.devnull, "w"))  # noqa: SIM115
    points = [Point(label=name, parameters={}, spec={}) for name in ("one", "two")]
    bars = display.RunProgress(console, points, now=lambda: now[0])
    for at, (index, fraction) in enumerate([(0, 0.0), (0, 0.5), (0, 1.0), (1, 0.5), (1, 1.0)]):
        now[0] = 10.0 * at
        bars.report(index, fraction, f"{fraction:.0%}")
    lines = console.export_text().splitlines()
    # Half a point takes 10 s. At the end nothing is left to say.
    assert lines == [
        "one: 0%",
        "one: 50%; 0:30 left",
        "one: 100%; 0:20 left",
        "two: 50%; 0:10 left",
        "two: 100%",
    ]
