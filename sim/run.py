"""Runs of a built simulator: one child process, one coroutine in it, one result.

The child's only connections are its log file and a socket over which progress and the result come as lines of JSON. So
any number of runs can go at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import find_libpython
from cocotb_tools import config as cocotb_config

from .build.model import Model
from .carried import pack
from .errors import MissingTool, SimulationError, UserError
from .extensions import added
from .machine import ONE_THREAD, Threads
from .waves.save_file import write_save_file
from .waves.window import WaveWindow

__all__ = ["Console", "RunResult", "run"]

Progress = Callable[[float, str], None]


class Console(Protocol):
    """The terminal or notebook in which a run's coroutines print, and on which the debugger asks."""

    def show(self, text: str) -> None:
        """Print a piece of text as it is."""

    def ask(self) -> str:
        """A line of input with its newline; empty at its end."""


TIME_STEPS = 10
"""Steps of simulated time in a cycle (`kPeriod` of `native/main.cpp`)."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run.

    - `value`: the value that the coroutine returned.
    - `cycles`, `seconds`: cycles simulated, and the wall-clock time of the simulation alone.
    - `log`: the child's output.
    - `waves`: the FST file, if the model is traced.
    """

    value: Any
    cycles: int
    seconds: float
    log: Path
    waves: Path | None

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles a second of wall-clock time."""
        return self.cycles / self.seconds if self.seconds else 0.0


def run(
    model: Model,
    entry: str,
    spec: Mapping[str, Any],
    *,
    out_dir: Path,
    seed: int = 0,
    progress: Progress | None = None,
    name: str = "simulation",
    edges: bool = False,
    timeout_seconds: float | None = None,
    window: WaveWindow | None = None,
    threads: Threads = ONE_THREAD,
    carried: Any = None,
    console: Console | None = None,
) -> RunResult:
    """Run `entry` ("package.module:coroutine", called with a `Session`) in `model`.

    `spec` (JSON values) becomes `session.spec`; the coroutine returns JSON values. Files are `out_dir/NAME.log` and,
    for a traced model, `out_dir/NAME.fst` with `window` of the run (default: all). `edges` lets coroutines wait for
    the clock's own edges, which third-party bus models need. `threads` evaluate the instances of a composed model;
    results do not depend on them. `carried` becomes `session.carried`: it may hold functions and classes of a script or
    notebook. With a `console` the coroutines' prints come there too, and `breakpoint()` opens the debugger on it.

    After `timeout_seconds` of wall-clock time the run is ended. Interrupted, it leaves no process.

    Raises SimulationError (with its `lines` if a coroutine of the user's failed), MissingTool, and UserError if threads
    were asked for that the model cannot have.
    """
    if threads.asked and threads.count > 1 and not model.composed:
        raise UserError(
            f"--threads {threads.count}: this build of {model.top} is one model, which runs on 1 thread; only systems "
            "composed of blocks have more (docs/speed.md)"
        )
    out_dir = out_dir.resolve()
    out_dir.mkdir(parents=True, exist_ok=True)
    log = out_dir / f"{name}.log"
    waves = out_dir / f"{name}.fst" if model.variant == "waves" else None
    arguments = [str(model.executable), *threads.arguments()]
    if edges:
        arguments.append("--edges")
    if waves:
        arguments += ["--trace", str(waves), *(window.arguments(model.top) if window else [])]
    bring = carried is not None or bool(added())
    ours, theirs = socket.socketpair()
    final: dict[str, Any] = {}
    with (
        ours,
        theirs,
        tempfile.TemporaryDirectory(dir=out_dir, prefix=".scratch-") as scratch,
        log.open("wb") as out,
    ):
        job: dict[str, Any] = {
            "entry": entry,
            "spec": f"{scratch}/spec.json",
            "seed": seed,
            "out_dir": str(out_dir),
            "channel": theirs.fileno(),
            "console": console is not None,
            "carried": None if not bring else f"{scratch}/carried.pkl",
        }
        if bring:
            Path(job["carried"]).write_bytes(pack(carried))
        Path(job["spec"]).write_text(json.dumps(spec))
        environment = _environment(model, job, scratch)
        child = subprocess.Popen(
            arguments,
            cwd=out_dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        with _ended(child, timeout_seconds) as timed_out, ours.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "progress" in message:
                    if progress:
                        progress(message["progress"], message["text"])
                elif console and "print" in message:
                    console.show(message["print"])
                elif console and "ask" in message:
                    if answer := console.ask():
                        ours.sendall(answer.encode())
                    else:
                        ours.shutdown(socket.SHUT_WR)
                else:
                    final = message
            status = child.wait()
    if waves and waves.exists():
        # Also for a run that failed: that is when waves are looked at.
        with contextlib.suppress(ValueError):
            write_save_file(waves, model.enums())
    if "result" in final:
        return RunResult(
            value=final["result"], cycles=final["cycles"], seconds=final["seconds"], log=log, waves=waves
        )
    if "error" in final:
        kind = "" if final["type"] == SimulationError.__name__ else f"{final['type']}: "
        failed = SimulationError(f"{kind}{final['error']} (log: {log})")
        failed.lines = final["lines"]
        raise failed
    if breach := _breach(log):
        raise SimulationError(f"{breach} (log: {log})")
    if timed_out.is_set():
        raise SimulationError(f"not done after {timeout_seconds:g} s (log: {log})")
    raise SimulationError(f"the simulator ended with status {status} and no result (log: {log})")


_BREACH = re.compile(
    rb"(?P<end>\w+): (?P<rule>rule \w+ broken by the \w+: [^\n\[]+)\[(?P<time>\d+)\] %Error: \S+ "
    rb"Assertion failed in (?P<place>\S+?):? "
)
"""The message of a monitor in a debug build (`lanikai.hdl.monitors`), and behind it Verilator's own."""


def _breach(log: Path) -> str:
    """The rule that a monitor saw broken, with the place of the interface and the cycle; "" if that is not how the
    simulator ended."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - (1 << 16)))
        found = _BREACH.search(file.read())
    if found is None:
        return ""
    text = {name: value.decode() for name, value in found.groupdict().items()}
    # A rising edge is what ends a cycle; the first one is at the end of cycle 0 (`native/main.cpp`).
    cycle = int(text["time"]) // TIME_STEPS - 1
    # Verilog's names of an instance of a composition are not Python's (`build/composition.py`).
    place = re.sub(r"\.(\w+)_instance\.\1_block\b", "", text["place"])
    return f"{place}, {text['end']}: {text['rule']}, cycle {cycle}"


@contextlib.contextmanager
def _ended(child: subprocess.Popen[bytes], timeout_seconds: float | None) -> Iterator[threading.Event]:
    """Run the block inside; the child's process group is gone afterwards, whatever happens.

    It goes at the latest when the time is up, and the event says so.
    """
    timed_out = threading.Event()

    def end() -> None:
        timed_out.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    timer = None if timeout_seconds is None else threading.Timer(timeout_seconds, end)
    if timer:
        timer.daemon = True
        timer.start()
    try:
        yield timed_out
    finally:
        if timer:
            timer.cancel()
            timer.join()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _environment(model: Model, job: Mapping[str, Any], scratch: str) -> dict[str, str]:
    """The child's environment: what cocotb's runtime reads, and the job."""
    libpython = find_libpython.find_libpython()
    if libpython is None:
        name = f"libpython{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingTool(name, f"sudo apt-get install {name}")
    libraries = str(cocotb_config.libs_dir)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COCOTB_")}
    paths = [libraries, environment.get("LD_LIBRARY_PATH", "")]
    return environment | {
        "LD_LIBRARY_PATH": os.pathsep.join(path for path in paths if path),
        "PYTHONPATH": os.pathsep.join(_paths()),
        "PYTHONHASHSEED": "0",
        "PYGPI_PYTHON_BIN": sys.executable,
        "GPI_USERS": f"{libpython};{cocotb_config.pygpi_entry_point()}",
        "COCOTB_TOPLEVEL": model.top,
        "COCOTB_TEST_MODULES": "lanikai.sim.inside.entry",
        "COCOTB_RANDOM_SEED": str(job["seed"]),
        "COCOTB_RESULTS_FILE": f"{scratch}/results.xml",
        "COCOTB_ANSI_OUTPUT": "0",
        "TOPLEVEL_LANG": "verilog",
        "LANIKAI_JOB": json.dumps(job),
    }


def _paths() -> list[str]:
    """`sys.path` for the child, with Python's own library first.

    A script's folder stands before the library in `sys.path`. Whatever lies there under the name of a module of the
    library would keep the child's Python from starting: it comes to the library's own modules before any script.
    """
    library = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}

    def own(path: str) -> bool:
        real = os.path.realpath(path)
        return real in library or (
            os.path.dirname(real) in library and os.path.basename(real) == "lib-dynload"
        )

    return sorted((path for path in sys.path if path), key=lambda path: not own(path))
