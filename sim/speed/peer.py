"""Other simulators beside ours: what a peer declares, and runs of its program with their processor time.

A peer is a subclass of `Peer` in a file of its own, and a line in `PEERS` (`peers.py`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import SimulationError, UserError
from .cases import BenchCase

__all__ = ["Peer", "PeerRun", "Stretch", "find_program", "run_peer"]

TIMEOUT_SECONDS = 1800.0
"""Longest run of a peer."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A run that a peer is asked for: so many cycles are measured after so many of warm-up."""

    warmup_cycles: int
    cycles: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """A run of a peer.

    - `cycles`: all cycles that it simulated.
    - `latency_cycles`: the mean latency of a packet, from its birth to its last flit.
    - `accepted`: flits a node and cycle.
    - `seconds`, `wall_seconds`: processor time of its process, and wall-clock time, start-up included.
    """

    cycles: int
    latency_cycles: float
    accepted: float
    seconds: float = 0.0
    wall_seconds: float = 0.0


class Peer(ABC):
    """Another simulator of networks.

    - `name`: as `--beside` takes it.
    - `programs`: names of its program, looked for on PATH in this order.
    - `good`: exit statuses of a run that has ended well.
    - `differences`: what a comparison has to say, a sentence each.
    """

    name: ClassVar[str]
    programs: ClassVar[Sequence[str]]
    good: ClassVar[Sequence[int]] = (0,)
    differences: ClassVar[Sequence[str]]

    @abstractmethod
    def refuses(self, case: BenchCase) -> str:
        """Why it cannot run the case; empty if it can."""

    @abstractmethod
    def configuration(self, case: BenchCase, stretch: Stretch) -> str:
        """The text of the file that it is given: the case's network, packets, pattern and load."""

    @abstractmethod
    def parse(self, text: str) -> PeerRun:
        """A run from its output. Raises ValueError: the line that is not there."""


def find_program(peer: Peer, named: str | None) -> Path:
    """The peer's program: `named`, or the first one on PATH. Raises UserError."""
    if named is None:
        found = next((place for name in peer.programs if (place := shutil.which(name))), None)
        if found is None:
            raise UserError(
                f"--beside {peer.name}: no {' or '.join(peer.programs)} on PATH; name it: --beside {peer.name}=FILE"
            )
        return Path(found)
    path = Path(named).expanduser()
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        raise UserError(f"--beside {peer.name}={named}: {what}")
    if not os.access(path, os.X_OK):
        raise UserError(f"--beside {peer.name}={named}: it is no program that can be run")
    return path.absolute()


def run_peer(
    peer: Peer, program: Path, case: BenchCase, stretch: Stretch, *, timeout_seconds: float = TIMEOUT_SECONDS
) -> PeerRun:
    """Run the peer's program once, in an empty folder that goes afterwards. Raises SimulationError."""

    def fault(what: str) -> SimulationError:
        return SimulationError(f"--beside {peer.name}: {case.name}: {str(program)!r} {what}")

    with tempfile.TemporaryDirectory(prefix="lanikai-peer-") as scratch:
        folder = Path(scratch)
        (folder / "case.cfg").write_text(peer.configuration(case, stretch))
        began = time.perf_counter()
        with (folder / "output").open("wb") as output:
            try:
                child = subprocess.Popen(
                    [program, "case.cfg"],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise fault(f"cannot be run: {error.strerror}") from None
            late = threading.Event()

            def end() -> None:
                late.set()
                _kill(child.pid)

            timer = threading.Timer(timeout_seconds, end)
            timer.start()
            try:
                _, status, used = os.wait4(child.pid, 0)
                wall_seconds = time.perf_counter() - began
            except BaseException:
                _kill(child.pid)
                child.wait()
                raise
            finally:
                timer.cancel()
                timer.join()
            _kill(child.pid)
        child.returncode = os.waitstatus_to_exitcode(status)
        text = (folder / "output").read_text(errors="replace")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")
    if late.is_set():
        raise fault(f"was not done after {timeout_seconds:g} s")
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        raise fault(f"was ended by {name}; it printed last: {last[:120]}")
    if child.returncode not in peer.good:
        raise fault(f"ended with status {child.returncode}; it printed last: {last[:120]}")
    try:
        run = peer.parse(text)
    except ValueError as error:
        raise fault(f"printed no {error}: is it {peer.name}? it printed last: {last[:120]}") from None
    return PeerRun(
        cycles=run.cycles,
        latency_cycles=run.latency_cycles,
        accepted=run.accepted,
        seconds=used.ru_utime + used.ru_stime,
        wall_seconds=wall_seconds,
    )


def _kill(group: int) -> None:
    """End all that is left of a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
