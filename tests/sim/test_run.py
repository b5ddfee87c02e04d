"""Runs: results, progress, seeds, errors, interrupts, many at once."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lanikai.sim.errors import MissingTool, SimulationError
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("counter")


def test_result(counter, tmp_path):
    """The coroutine's value, the cycles simulated, progress, and the seed's random numbers."""
    told = []
    first = run(
        counter,
        "support.sim.counter_points:count",
        {"a": [1]},
        out_dir=tmp_path,
        seed=3,
        progress=lambda fraction, text: told.append((fraction, text)),
    )
    assert first.value["spec"] == {"a": [1]}
    assert told == [(0.5, "half way")]
    assert first.cycles == 8 and first.seconds > 0 and first.cycles_per_second > 0
    assert first.log == tmp_path / "simulation.log" and first.log.exists() and first.waves is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["simulation.log"]
    assert (
        run(counter, "support.sim.counter_points:count", {}, out_dir=tmp_path, seed=3).value["random"]
        == first.value["random"]
    )
    assert (
        run(counter, "support.sim.counter_points:count", {}, out_dir=tmp_path, seed=4).value["random"]
        != first.value["random"]
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("fail", "ValueError: the third cycle is unlucky"),
        ("fail_beside", "KeyError: 'beside'"),
        (
            "bytes_back",
            "TypeError: what the coroutine returns must be JSON: Object of type bytes is not JSON serializable",
        ),
        ("crash", "the simulator ended with status 7 and no result"),
        ("absent", "AttributeError: module 'support.sim.counter_points' has no attribute 'absent'"),
    ],
)
def test_errors(counter, tmp_path, entry, message):
    """One line with the log's place; the traceback is in the log."""
    with pytest.raises(SimulationError) as caught:
        run(counter, f"support.sim.counter_points:{entry}", {}, out_dir=tmp_path)
    log = tmp_path / "simulation.log"
    assert str(caught.value) == f"{message} (log: {log})"
    if entry.startswith("fail"):
        text = log.read_text()
        assert text.count("Traceback (most recent call last)") == 1 and message.partition(":")[0] in text
        assert "FAIL=1" in text and "lanikai_run passed" not in text


def test_a_script_beside_files_named_as_the_library(counter, tmp_path, monkeypatch):
    """The folder of a script comes first in its `sys.path`. What lies there keeps no simulator from starting."""
    (tmp_path / "enum.py").write_text("raise SystemExit('not the library')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = "support.sim.counter_points:count"
    result = run(counter, entry, {}, out_dir=tmp_path / "run", seed=3, timeout_seconds=60)
    assert result.cycles == 8


def test_timeout(counter, tmp_path):
    """A run that takes too long is ended, and says so; one that does not is not."""
    with pytest.raises(SimulationError) as caught:
        run(counter, "support.sim.counter_points:forever", {}, out_dir=tmp_path, timeout_seconds=3)
    assert str(caught.value) == f"not done after 3 s (log: {tmp_path / 'simulation.log'})"
    assert not simulators(tmp_path)
    assert (
        run(counter, "support.sim.counter_points:count", {}, out_dir=tmp_path, timeout_seconds=60).cycles == 8
    )


def test_many_at_once(counter, tmp_path):
    """Runs beside each other have their own results."""

    def one(seed):
        return run(
            counter, "support.sim.counter_points:count", {"n": seed}, out_dir=tmp_path / str(seed), seed=seed
        ).value["spec"]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, range(3))) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_missing_libpython(counter, tmp_path, monkeypatch):
    """The shared library that embeds Python is missing: its package is named."""
    monkeypatch.setattr("find_libpython.find_libpython", lambda: None)
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(
        MissingTool, match=f"^{name} is missing; install it with: sudo apt-get install {name}$"
    ):
        run(counter, "support.sim.counter_points:count", {}, out_dir=tmp_path)


RUNNER = """
import sys
from pathlib import Path
from lanikai.sim.build.model import build
from lanikai.sim.run import run
from support.sim.counter import counter_design
run(build(counter_design()), "support.sim.counter_points:forever", {}, out_dir=Path(sys.argv[1]),
    progress=lambda fraction, text: print(text, flush=True))
"""


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left(counter, tmp_path, kill):
    """However the program ends that started it, the simulator ends."""
    # A folder of its own for what would be temporary: other programs leave and make files in the system's.
    scratch = tmp_path / "temporary"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(scratch)},
    )
    assert process.stdout.readline() == "started\n"
    assert simulators(tmp_path)
    process.send_signal(kill)
    process.wait(30)
    process.stdout.close()
    deadline = time.monotonic() + 30
    while simulators(tmp_path):
        assert time.monotonic() < deadline, "a simulator is left"
        time.sleep(0.02)
    # Even what nobody could clean up stands in the run's own folder.
    assert not list(scratch.iterdir())


def simulators(folder):
    """Processes that work in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(entry.name)
        except OSError:
            continue
    return found
