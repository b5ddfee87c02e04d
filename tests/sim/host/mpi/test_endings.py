"""Programs that cannot go on end with one line, which names ranks, calls and peers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.comm.attributes import Keyval
from lanikai.sim.host.mpi.errors import (
    AbortError,
    CommunicatorError,
    DeadlockError,
    MpiError,
    RankFailedError,
)
from support.sim.fake_transport import SMALL, Ranks

LONG = bytes(SMALL.eager_bytes + 1)


def fails(
    kind: type[MpiError], main: Any, size: int = 2, *, seed: int | None = None, ending: bool = True
) -> str:
    """The line that a program ends with."""
    with pytest.raises(kind) as caught:
        Ranks(size, seed=seed).run(main, ending=ending)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_two_ranks_that_first_send_to_each_other(seed) -> None:
    async def main(world) -> None:
        await world.Send(LONG, 1 - world.rank, 1)
        await world.Recv(bytearray(LONG), 1 - world.rank, 1)

    assert fails(DeadlockError, main, seed=seed) == (
        "deadlock: rank 0 waits in Send to rank 1, tag 1, on world; rank 1 waits in Send to rank 0, tag 1, on world"
    )


def test_head_to_head_sends_that_fit_the_buffers_are_no_deadlock() -> None:
    async def main(world) -> None:
        await world.Send(b"short", 1 - world.rank, 1)
        await world.Recv(bytearray(5), 1 - world.rank, 1)

    Ranks(2).run(main)


@pytest.mark.parametrize("seed", range(4))
def test_a_ring_of_receives_and_a_rank_that_has_ended(seed) -> None:
    async def main(world) -> None:
        if world.rank < 3:
            await world.Recv(bytearray(1), (world.rank + 1) % 3, 7)

    assert fails(DeadlockError, main, 4, seed=seed, ending=False) == (
        "deadlock: rank 0 waits in Recv from rank 1, tag 7, on world; rank 1 waits in Recv from rank 2, tag 7, on "
        "world; rank 2 waits in Recv from rank 0, tag 7, on world; ended: rank 3"
    )


def test_a_rank_that_leaves_an_isend_that_nobody_receives() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.Isend(LONG, 1, 6)

    assert fails(DeadlockError, main) == (
        "deadlock: rank 0 waits in Finalize for its Isend to rank 1, tag 6, on world; rank 1 waits in Finalize from "
        "rank 0, on world"
    )


def test_an_isend_that_is_received_but_not_waited_for_ends_well() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.Isend(LONG, 1, 6)
        else:
            await world.Recv(bytearray(LONG), 0, 6)

    Ranks(2).run(main)


def test_a_rank_that_waits_for_one_that_has_come_to_its_end() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.recv(source=1, tag=2)

    line = fails(DeadlockError, main)
    assert line.startswith(
        "deadlock: rank 0 waits in recv from rank 1, tag 2, on world; rank 1 waits in Finalize"
    )


def test_no_false_alarm_while_a_rank_computes_and_messages_are_slow() -> None:
    """All other ranks wait meanwhile, over and over, with messages of random delay."""
    for seed in range(6):
        ranks = Ranks(4, seed=seed)

        async def main(world, ranks=ranks) -> None:
            for turn in range(8):
                if world.rank == turn % 4:
                    await ranks.world.sleep(ranks.random.choice((1, 700, 9000)))
                    for peer in range(4):
                        if peer != world.rank:
                            await world.Ssend(LONG * 9, peer, turn)
                else:
                    await world.Recv(bytearray(LONG * 9), turn % 4, turn)

        ranks.run(main)


def test_a_rank_that_raises() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.Recv(bytearray(1), 1, 3)
        await world.process.transport.spend(100_000)
        raise RuntimeError("no more\nof this")

    assert fails(RankFailedError, main) == (
        "rank 1 of the world failed: RuntimeError: no more of this; rank 0 waits in Recv from rank 1, tag 3, on world"
    )


def test_a_rank_whose_call_is_refused() -> None:
    async def main(world) -> None:
        if world.rank:
            await world.Send(b"", 5)

    assert fails(RankFailedError, main).startswith(
        "rank 1 of the world failed: Send on world: dest = 5: ranks are 0 to 1"
    )


def test_abort() -> None:
    async def main(world) -> None:
        if world.rank:
            await world.Abort(3)
        await world.Barrier()

    assert fails(AbortError, main) == "rank 1 of the world called Abort(3) on world"


def test_a_wrong_colour_at_one_rank_alone() -> None:
    """The rank with the wrong colour goes on, to the end; the other one is still in Split."""

    async def main(world) -> None:
        if world.rank == 0:
            await world.Split(1)
        else:
            with pytest.raises(CommunicatorError):
                await world.Split(-7)

    line = fails(RankFailedError, main)
    assert (
        "rank 1 is in Finalize, rank 0 in Split" in line or "rank 0 is in Split, rank 1 in Finalize" in line
    )


def test_different_collective_operations_neither_of_which_waits() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.Bcast(bytearray(4), root=0)
        else:
            await world.Reduce(np.zeros(1), None)

    line = fails(RankFailedError, main)
    assert "has not taken it: all ranks call the same collective operations with the same arguments" in line
    assert "is in Bcast with a message for rank 1" in line or "is in Reduce with a message for rank 0" in line


def test_ranks_that_do_not_agree_on_the_root() -> None:
    async def main(world) -> None:
        await world.Bcast(bytearray(4), root=world.rank)

    line = fails(RankFailedError, main)
    assert "has not taken it: all ranks call the same collective operations with the same arguments" in line


def test_a_rank_that_alone_leaves_a_non_blocking_collective() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.Ibarrier()

    line = fails(RankFailedError, main, 3)
    assert "Barrier" in line and "Finalize" in line


def test_a_users_operation_that_raises_in_a_non_blocking_collective_is_its_requests_error() -> None:
    def divide(a, b, datatype) -> None:
        raise ZeroDivisionError("by nothing")

    async def main(world) -> None:
        request = await world.Iallreduce(np.zeros(1), np.zeros(1), MPI.Op.Create(divide, commute=True))
        with pytest.raises(ZeroDivisionError, match="by nothing"):
            await request.Wait()

    Ranks(2).run(main, ending=False)


def test_a_collective_operation_at_one_rank_and_another_one_at_the_other() -> None:
    async def main(world) -> None:
        if world.rank == 0:
            await world.Allreduce(np.zeros(1), np.zeros(1))
        else:
            await world.Barrier()

    line = fails(RankFailedError, main, ending=False)
    assert (
        "rank 1 is in Barrier, rank 0 in Allreduce" in line
        or "rank 0 is in Allreduce, rank 1 in Barrier" in line
    )


def test_a_collective_that_a_rank_does_not_call() -> None:
    async def main(world) -> None:
        if world.rank != 2:
            await world.Barrier()

    line = fails(DeadlockError, main, 3, ending=False)
    assert line.startswith("deadlock: rank 0 waits in Barrier from rank 2, on world") and line.endswith(
        "ended: rank 2"
    )


def test_the_world_is_not_freed() -> None:
    async def main(world) -> None:
        with pytest.raises(CommunicatorError) as caught:
            await world.Free()
        assert str(caught.value) == "Free on world: the world is not to be freed; it ends with the program"
        await world.Barrier()

    Ranks(2).run(main)


def test_a_delete_function_that_raises_leaves_attribute_and_communicator() -> None:
    async def main(world) -> None:
        refuse = True

        def delete(comm, keyval, value) -> None:
            if refuse:
                raise ValueError("not yet")

        key, other = Keyval("key", delete=delete), world.Create_keyval(True)
        copy = await world.Dup()
        await copy.Set_attr(key, 1)
        await copy.Set_attr(other, 2)
        for call in (copy.Free(), copy.Delete_attr(key), copy.Set_attr(key, 3)):
            with pytest.raises(ValueError, match="not yet"):
                await call
            assert copy.Get_attr(key) == 1 and copy.Get_attr(other) == 2
        await copy.Barrier()
        again = await copy.Dup()
        assert again.Get_attr(other) == 2 and again.Get_attr(key) is None
        refuse = False
        await copy.Free()
        with pytest.raises(CommunicatorError, match="has been freed"):
            copy.Get_attr(key)

    Ranks(2).run(main)


def test_time_is_that_of_the_simulation() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        began = world.Wtime()
        await ranks.world.sleep(2500)
        assert world.Wtime() - began == pytest.approx(2500 * world.Wtick())
        assert world.Wtick() == 1e-6

    ranks.run(main)


def test_a_request_of_one_rank_waited_for_by_its_peers_program_is_refused_while_that_rank_is_busy() -> None:
    ranks = Ranks(2)
    theirs: list[MPI.Request] = []

    async def main(world) -> None:
        if world.rank == 0:
            theirs.append(await world.Irecv(bytearray(1), 1))
            await theirs[0].Wait()
        else:
            await ranks.world.sleep(1000)
            with pytest.raises(MpiError, match="Wait on rank 0 of the world, which is inside Wait"):
                await theirs[0].Wait()
            await world.Send(b"x", 0)

    ranks.run(main)
