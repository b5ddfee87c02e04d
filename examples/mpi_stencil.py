"""An MPI stencil: each rank averages its cells with their neighbours and exchanges its borders, over cards in RTL."""

import numpy as np

import lanikai

CELLS, STEPS = 256, 3


async def stencil(host):
    world = host.mpi
    left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    cells = np.zeros(CELLS + 2)  # a border cell at each end
    if world.rank == 0:
        cells[1] = 1000.0
    start = world.Wtime()
    for _ in range(STEPS):
        await world.Sendrecv(cells[1:2], dest=left, recvbuf=cells[-1:], source=right)
        await world.Sendrecv(cells[-2:-1], dest=right, recvbuf=cells[:1], source=left)
        cells[1:-1] = (cells[:-2] + cells[1:-1] + cells[2:]) / 3
    total = np.empty(1)
    await world.Allreduce(cells[1:-1].sum().reshape(1), total)
    return {
        "us_a_step": (world.Wtime() - start) * 1e6 / STEPS,
        "warm_cells": int((cells[1:-1] > 0).sum()),
        "total": total.item(),
    }


run = lanikai.Cluster(nodes=4).run(stencil, interface="mpi")
print(run.frame)
