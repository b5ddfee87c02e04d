"""A backend without RTL for the experiment `transfer`: it reads the file that the spec names, wherever it runs."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanikai.sim.experiments.framework.backend import Job, Measured, Progress

from support.sim.fake_backend import CLOCK_HZ, FakeModel


@dataclass(frozen=True)
class FileBackend:
    """Answers with the hash of the file. `runs`: a folder that gets a file for each run, with the path that it read."""

    runs: str

    def build(self, system: Any, variant: str, progress: Progress) -> FakeModel:
        return FakeModel()

    def run(self, model: FakeModel, job: Job, progress: Progress) -> Measured:
        content = Path(job.spec["file"]).read_bytes()
        (Path(self.runs) / f"{uuid.uuid4()}").write_text(job.spec["file"])
        digest = hashlib.sha256(content).hexdigest()
        values = {
            "clock_hz": CLOCK_HZ,
            "payload_bytes": len(content),
            "transfer_cycles": 1000,
            "latency_cycles": [1000],
            "sha256_sent": digest,
            "sha256_received": digest,
        }
        return Measured(values=values, cycles=1000, wall_seconds=0.1)
