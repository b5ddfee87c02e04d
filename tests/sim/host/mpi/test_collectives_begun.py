"""Collective operations that go on beside the program."""

from __future__ import annotations

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.errors import CollectiveError
from support.sim.fake_transport import Ranks


def test_several_collective_operations_go_on_at_once_beside_messages() -> None:
    """They are begun in one order and waited for in another. Each has its own messages, however late they are."""
    for seed in range(4):
        ranks = Ranks(5, seed=seed)

        async def main(world, ranks=ranks) -> None:
            rank, size = world.rank, world.size
            data = bytearray(b"%d" % rank * 100) if rank == 0 else bytearray(100)
            total, gathered = np.zeros(40), np.zeros(size, int)
            highest = np.zeros(1, int)
            requests = [
                await world.Ibcast(data, 0),
                await world.Iallreduce(np.full(40, rank + 1.0), total),
                await world.Iallgather(np.array([rank]), gathered),
                await world.Ibarrier(),
                await world.Iallreduce(np.array([rank]), highest, op=MPI.MAX),
            ]
            right, left = (rank + 1) % size, (rank - 1) % size
            got = bytearray(1)
            await world.Sendrecv(bytes([rank]), right, 5, got, left, 5)
            assert got[0] == left
            square = np.array([rank])
            await world.Allreduce(MPI.IN_PLACE, square)  # a blocking one, begun after all of these
            assert square[0] == 10
            ranks.random.shuffle(requests)
            await MPI.Request.Waitall(requests)
            assert bytes(data) == b"0" * 100 and (total == 15).all() and highest[0] == 4
            assert gathered.tolist() == [0, 1, 2, 3, 4]

        ranks.run(main)


def test_a_non_blocking_operation_goes_on_inside_other_calls() -> None:
    """Rank 1 never waits for its part before rank 2, behind it in the tree, has its own."""
    ranks = Ranks(3)

    async def main(world) -> int:
        data = np.arange(50) if world.rank == 0 else np.zeros(50, int)
        request = await world.Ibarrier()
        again = await world.Ibcast(data)
        while not await MPI.Request.Testall([request, again]):
            await ranks.world.sleep(200)
        assert data.tolist() == list(range(50))
        return ranks.world.cycle

    ranks.run(main)


def test_an_error_in_a_non_blocking_operation_is_its_requests() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        request = await world.Iallreduce(MPI.IN_PLACE, np.zeros(2 + world.rank))
        with pytest.raises(
            CollectiveError, match=r"Iallreduce on world: rank \d gave \d elements of float64"
        ):
            await request.Wait()

    ranks.run(main, ending=False)
