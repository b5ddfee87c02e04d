"""A backend without RTL: it answers at once, as a perfect rate control unit would, from the point's spec alone.

It is in a module of its own, so that the processes of the pool can import it.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from typing import Any

from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.framework.backend import Job, Measured, Progress

CLOCK_HZ = 33_000_000
PACKET_CYCLES = 1652  # 50.06 us: 4096 bytes at 81.8 MB/s


@dataclass(frozen=True)
class FakeModel:
    cached: bool = False
    seconds: float = 0.25


@dataclass(frozen=True)
class FakeBackend:
    """A backend that answers from the spec.

    - `delays`: seconds that each point takes, by the number of its flows.
    - `fault`: what `run` does instead of answering.
    - `skew`: factor on the first flow's packets.
    """

    delays: tuple[tuple[int, float], ...] = ()
    fault: str = ""
    skew: float = 1.0

    def build(self, cluster: Any, variant: str, progress: Progress) -> FakeModel:
        progress(0.5, "building")
        return FakeModel()

    def run(self, model: FakeModel, job: Job, progress: Progress) -> Measured:
        progress(0.5, "half way")
        if self.fault == "simulation":
            raise SimulationError("nothing has moved for 100000 cycles")
        if self.fault == "crash":
            raise ZeroDivisionError("a bug")
        if self.fault == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(job.folder / "point.fst"))
        if self.fault == "sleep":
            (job.folder / "started").touch()
            time.sleep(60)
        idts = [flow["idt_ticks"] for flow in job.spec["flows"]]
        time.sleep(dict(self.delays).get(len(idts), 0.0))
        total = sum(1 / idt for idt in idts)
        packets = [job.spec["window_packets"] / idt / total for idt in idts]
        packets[0] *= self.skew
        cycles = job.spec["window_packets"] * PACKET_CYCLES
        log = job.folder / "point.log"
        log.write_text("the simulator's own words\n")
        return Measured(
            values={
                "payload_bytes": [round(4096 * count) for count in packets],
                "window_cycles": cycles,
                "window_packets": job.spec["window_packets"],
                "clock_hz": CLOCK_HZ,
            },
            cycles=cycles + 10_000,
            wall_seconds=0.5,
            log=str(log),
        )
