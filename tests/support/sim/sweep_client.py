"""`lanikai sweep` on a backend without RTL, as a process of its own that can be killed: RUNS SLOW ARGUMENTS...

RUNS is the folder that counts runs, SLOW the seconds that each point takes.
"""

from __future__ import annotations

import sys

from lanikai.sim.cli import backend, program
from lanikai.sim.sweeps import dask_cluster

from support.sim.sweep_backend import SweepBackend

if __name__ == "__main__":
    runs, slow, *arguments = sys.argv[1:]
    backend.make = lambda threads: SweepBackend(runs=runs, slow=float(slow))
    dask_cluster.FILL_SECONDS = 2.0
    program.main(["sweep", *arguments])
