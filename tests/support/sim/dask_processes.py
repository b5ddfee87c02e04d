"""A Dask cluster of processes that can be killed: a scheduler on a port of this machine, and its workers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["DaskProcesses", "wait_until"]


def wait_until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until `what` is true. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


class DaskProcesses:
    """`scheduler` and `workers` are processes; `address` is the scheduler's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        """Start a scheduler, and workers (without nannies, so that a worker is one process)."""
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start another worker."""
        self.workers.append(
            self._start("dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--local-directory",
                        str(self._folder / f"worker-{len(self.workers)}"))
        )  # fmt: skip

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *arguments],
            env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """Kill all of it."""
        for process in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            process.kill()
            process.wait()
        self.workers.clear()


@contextlib.contextmanager
def dask_processes(folder: Path) -> Iterator[DaskProcesses]:
    """The cluster, not yet started; it is gone afterwards."""
    cluster = DaskProcesses(folder)
    try:
        yield cluster
    finally:
        cluster.kill()
