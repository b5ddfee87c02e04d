"""A sweep of trivial points by the library, and where each of them ran."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lanikai.sim.experiments.registry import find
from lanikai.sim.sweeps.grid import cases, tasks
from lanikai.sim.sweeps.store import SweepFolder
from lanikai.sim.sweeps.sweep import SweepReport, run_sweep

from support.sim.sweep_backend import SweepBackend

TABLES = ("table.csv", "table.parquet", "claims.csv", "failures.csv")


def sweep_points(
    folder: Path,
    executor: Any,
    *,
    points: int,
    backend: Any,
    progress: Callable[[float, str], None] = lambda done, text: None,
) -> SweepReport:
    """Run `points` points, one for each seed from 0, into `folder`."""
    experiment = find("share-senders")
    seeds = ",".join(map(str, range(points)))
    found = cases(experiment, "quick", grid=[f"seed={seeds}"], settings=["idt_over_T=[[2,3]]"], seed=1)
    with SweepFolder(folder, {"experiment": experiment.name, "size": "quick"}) as place:
        return run_sweep(
            experiment,
            found,
            tasks(experiment, "quick", found),
            folder=place,
            executor=executor,
            backend=backend,
            timeout_seconds=60,
            progress=progress,
            failed=lambda label, why, again: None,
        )


def run_points(
    tmp_path: Path,
    executor: Any,
    *,
    points: int,
    slow: float = 0.0,
    progress: Callable[[float, str], None] = lambda done, text: None,
) -> dict[str, int]:
    """Run points in a new folder; the process that ran each, by the name of its file in a folder of the test."""
    runs = tmp_path / f"runs-{time.monotonic_ns()}"
    runs.mkdir()
    backend = SweepBackend(runs=str(runs), slow=slow)
    report = sweep_points(
        tmp_path / f"sweep-{runs.name}", executor, points=points, backend=backend, progress=progress
    )
    assert report.points == points and not report.failures
    return {path.name: int(path.read_text()) for path in runs.iterdir()}


def tables(folder: Path) -> dict[str, bytes]:
    """The tables of a sweep, byte for byte."""
    return {name: (folder / name).read_bytes() for name in TABLES}
