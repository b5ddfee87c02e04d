"""`lanikai sweep` as a process that can be killed, and what becomes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.sim.dask_processes import wait_until

__all__ = ["Client", "alive", "processes"]

WAIT_SECONDS = 3600
"""Longest wait for a sweep, which may have ten thousand points on a busy machine."""


class Client:
    """`lanikai sweep` of so many points of share-senders in a process of its own."""

    def __init__(
        self,
        tmp_path: Path,
        runs: Path,
        points: int,
        *arguments: str,
        slow: float = 0.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.out = tmp_path / "sweep"
        self.log = tmp_path / "client.log"
        seeds = ",".join(map(str, range(points)))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.sim.sweep_client", str(runs), str(slow), "share-senders",
                 "--set", "idt_over_T=[[2,3]]", "--grid", f"seed={seeds}", "--out", str(self.out), *arguments],
                stdout=log, stderr=log, env=dict(os.environ) | dict(environment or {}),
            )  # fmt: skip

    def wait_for(self, points: int) -> None:
        """Wait until so many points stand in the folder."""
        wait_until(lambda: self.done() >= points or self.process.poll() is not None, WAIT_SECONDS)
        assert self.process.poll() is None, self.log.read_text()

    def done(self) -> int:
        """How many points stand in the folder."""
        try:
            return sum(name.endswith(".json") for name in os.listdir(self.out / "points"))
        except FileNotFoundError:
            return 0

    def end(self) -> tuple[int, list[str]]:
        """Its exit status, and the lines that it printed."""
        try:
            return self.process.wait(WAIT_SECONDS), self.log.read_text().splitlines()
        finally:
            self.process.kill()

    def kill(self) -> None:
        """Kill it, at once."""
        self.process.kill()
        self.process.wait()


def alive(pid: int) -> bool:
    """Whether a process runs (one that has ended and waits for its parent does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def processes(runs: Path) -> set[int]:
    """The processes that have run points."""
    return {int(path.read_text() or 0) for path in runs.iterdir()} - {0}
