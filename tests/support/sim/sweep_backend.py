"""A backend for sweeps without RTL: it answers from the point's spec and seed alone, and misbehaves on demand.

It is in a module of its own, so that processes of the pool and Dask's workers can import it.
"""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.framework.backend import Job, Measured, Progress

from support.sim.fake_backend import FakeBackend, FakeModel


@dataclass(frozen=True)
class SweepBackend:
    """A backend that misbehaves.

    - `runs`: a folder that gets a file for each run of a point, named after its window, with the process that ran it.
    - `flaky`, `broken`: windows whose first run, or every run, fails.
    - `crash`: windows that raise an error that nobody expects.
    - `slow`: seconds that each point takes.
    """

    runs: str
    flaky: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()
    crash: tuple[int, ...] = ()
    slow: float = 0.0

    def build(self, system: Any, variant: str, progress: Progress) -> FakeModel:
        return FakeModel()

    def run(self, model: FakeModel, job: Job, progress: Progress) -> Measured:
        size = job.spec["flows"][0]["message_bytes"]
        seen = list(Path(self.runs).glob(f"{size}-*"))
        (Path(self.runs) / f"{size}-{uuid.uuid4()}").write_text(str(os.getpid()))
        time.sleep(self.slow)
        if size in self.broken or (size in self.flaky and not seen):
            (job.folder / "point.log").write_text("its last words\n")
            raise SimulationError("nothing has moved for 100000 cycles")
        if size in self.crash:
            raise ZeroDivisionError("a bug")
        return FakeBackend().run(model, job, progress)
