"""Calls of every kind over GM, and the end of programs that cannot go on."""

from __future__ import annotations

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.comm.intracomm import Intracomm
from lanikai.sim.host.mpi.data.request import Request
from lanikai.sim.host.mpi.errors import DeadlockError
from support.firmware.python_cluster import Cluster
from support.sim.gm_ranks import run


async def everything(world: Intracomm) -> None:
    """A little of every kind of call."""
    rank, size = world.rank, world.size
    right, left = (rank + 1) % size, (rank - 1) % size
    total = np.zeros(300)
    begun = [await world.Iallreduce(np.full(300, float(rank)), total), await world.Ibarrier()]
    request = await world.Issend(np.arange(600.0), right, 1)
    status = MPI.Status()
    message = await world.Mprobe(left, 1, status)
    got = np.zeros((300, 2), order="F")
    await message.Recv(got)
    assert status.Get_count(MPI.DOUBLE) == 600 and got.ravel().tolist() == list(range(600))
    await Request.Waitall([request, *begun])
    assert (total == sum(range(size))).all()
    assert await world.sendrecv({"a": "b" * 900}, right, source=left) == {"a": "b" * 900}
    grid = await world.Create_cart([size], [True])
    assert grid is not None and grid.Shift(0, 1) == (left, right)
    persistent = [await grid.Recv_init(got, left), await grid.Send_init(total, right)]
    for _ in range(2):
        await MPI.Prequest.Startall(persistent)
        await Request.Waitall(persistent)
    assert await grid.allgather(rank) == list(range(size))
    table = np.arange(size) + 10 * rank
    await grid.Alltoall(MPI.IN_PLACE, table)
    assert table.tolist() == [10 * r + rank for r in range(size)]
    began = world.Wtime()
    await world.process.transport.spend(1_000_000)
    assert world.Wtime() - began == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("nodes", [[0, 1, 2], [0, 0, 1, 2]])
def test_every_kind_of_call_over_gm(nodes) -> None:
    run(Cluster(3, nic={"flows": 32}), everything, nodes)


def test_ranks_that_wait_for_each_other_over_gm_are_told_so() -> None:
    cluster = Cluster(2)

    async def main(world: Intracomm) -> None:
        await world.Send(bytes(5000), 1 - world.rank, 1)

    with pytest.raises(DeadlockError) as caught:
        run(cluster, main)
    assert str(caught.value) == (
        "deadlock: rank 0 waits in Send to rank 1, tag 1, on world; rank 1 waits in Send to rank 0, tag 1, on world"
    )
    assert cluster.world.cycle < 1_000_000
