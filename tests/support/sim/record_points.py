"""An MPI program on a cluster that is recorded, and its replay, recorded again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lanikai.sim.experiments.measure.hosts import open_programs, start_hosts
from lanikai.sim.host.mpi.data.buffers import IN_PLACE
from lanikai.sim.host.mpi.record import Recorder
from lanikai.sim.host.mpi.replay import replay
from lanikai.sim.host.mpi.trace import read_traces
from lanikai.sim.host.mpi.world import run_ranks


async def program(world) -> None:
    """Passes numbers around, of both protocols, and computes."""
    after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for count in (10, 4000):
        numbers = np.arange(float(count))
        if world.rank % 2:
            await world.Recv(numbers, before, 1)
            await world.process.transport.spend(12_345)
            await world.Send(numbers, after, 1)
        else:
            await world.Send(numbers, after, 1)
            await world.Recv(numbers, before, 1)
    await world.Allreduce(IN_PLACE, np.arange(100))
    await world.Barrier()


async def recorded(cluster, spec) -> None:
    """Run the program, or replay `spec["traces"]`; traces go to `spec["folder"]`."""
    worlds = await open_programs(cluster, "mpi", start_hosts(cluster, "mpi"))
    traces = read_traces([Path(path) for path in spec["traces"]]) if spec["traces"] else []

    async def main(world) -> None:
        recorder = Recorder(world, Path(spec["folder"]) / f"rank{world.rank}.txt")
        await (replay(recorder, traces[world.rank], 1.0) if traces else program(recorder))
        recorder.finish()

    await run_ranks(cluster.clock, worlds, main)
