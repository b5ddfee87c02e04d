"""Collective operations and communicators, for every number of ranks from 1 to 7."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.host.mpi.data.buffers import IN_PLACE
from lanikai.sim.host.mpi.data.ops import LAND, LOR, MAX, MIN, PROD, SUM
from lanikai.sim.host.mpi.data.status import UNDEFINED, Status
from lanikai.sim.host.mpi.errors import CollectiveError, CommunicatorError
from support.sim.fake_transport import Ranks, received

SIZES = range(1, 8)


@pytest.mark.parametrize("size", SIZES)
def test_nobody_leaves_a_barrier_before_all_are_there(size) -> None:
    ranks = Ranks(size, seed=size)

    async def main(world) -> tuple[int, int]:
        await ranks.world.sleep(1 + 3000 * ((world.rank * 3 + 1) % size))
        came = ranks.world.cycle
        await world.Barrier()
        return came, ranks.world.cycle

    times = ranks.run(main)
    assert min(left for _, left in times) >= max(came for came, _ in times)


@pytest.mark.parametrize("size", SIZES)
def test_broadcast_from_every_root(size) -> None:
    ranks = Ranks(size, seed=size)

    async def main(world) -> list[bytes]:
        got = []
        for root in range(size):
            for length in (0, 5, 700):
                mine = bytes([root + 1]) * length
                buffer = mine if world.rank == root else bytearray(length)
                await world.Bcast(buffer, root)
                got.append(bytes(buffer))
        return got

    expected = [bytes([root + 1]) * length for root in range(size) for length in (0, 5, 700)]
    assert ranks.run(main) == [expected] * size


OPERATIONS = {SUM: np.sum, PROD: np.prod, MIN: np.min, MAX: np.max, LAND: np.all, LOR: np.any}


@given(
    st.sampled_from(SIZES),
    st.sampled_from(list(OPERATIONS)),
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_allreduce_is_what_numpy_says(size, operation, length, seed) -> None:
    ranks = Ranks(size, seed=seed)
    low, high = (0, 2) if operation in (LAND, LOR) else (-4, 5)
    everybody = np.random.default_rng(seed).integers(low, high, (size, length))

    async def main(world) -> np.ndarray:
        result = np.empty(length, everybody.dtype)
        await world.Allreduce(everybody[world.rank], result, operation)
        return result

    expected = OPERATIONS[operation](everybody, axis=0)
    for result in ranks.run(main):
        assert (result == expected).all() and result.dtype == everybody.dtype


def test_allreduce_of_floats_is_equal_to_the_bit_everywhere_and_leaves_its_argument() -> None:
    ranks = Ranks(7, seed=1)
    values = np.random.default_rng(1).normal(size=(7, 50)) * 10.0 ** np.arange(50)

    async def main(world) -> bytes:
        mine = values[world.rank].copy()
        result = np.empty_like(mine)
        await world.Allreduce(mine, result)
        assert (mine == values[world.rank]).all()
        return result.tobytes()

    assert len(set(ranks.run(main))) == 1


@pytest.mark.parametrize("size", SIZES)
def test_allgather(size) -> None:
    ranks = Ranks(size, seed=size)

    async def main(world) -> list:
        scalars, rows = np.empty(size, int), np.empty((size, 2))
        await world.Allgather(np.array(world.rank * 10), scalars)
        await world.Allgather(np.array([world.rank, world.rank + 0.5]), rows)
        return [scalars.tolist(), rows.tolist()]

    assert ranks.run(main) == [[[r * 10 for r in range(size)], [[r, r + 0.5] for r in range(size)]]] * size


def test_arguments_that_do_not_go_together() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        with pytest.raises(CollectiveError) as caught:
            await world.Allreduce(IN_PLACE, np.zeros(3 + world.rank))
        mine, theirs = 3 + world.rank, 4 - world.rank
        assert str(caught.value) == (
            f"Allreduce on world: rank {1 - world.rank} gave {theirs} elements of float64, rank {world.rank} has "
            f"{mine} elements of float64"
        )

    ranks.run(main, ending=False)


def test_messages_of_a_communicator_stay_in_it() -> None:
    """The messages have the same ranks, the same tag, and wildcards. A collective operation comes between."""
    ranks = Ranks(2)

    async def main(world) -> list[bytes]:
        first = await world.Dup()
        second = await first.Dup()
        got = []
        if world.rank == 0:
            await second.Send(b"second", 1, 0)
            await world.Send(b"world", 1, 0)
            await first.Send(b"first", 1, 0)
            await second.Barrier()
        else:
            await second.Barrier()  # its messages are not what these receives are given
            for comm in (first, world, second):
                buffer = bytearray(10)
                status = await received(comm, buffer)
                got.append(bytes(buffer[: status.length]))
        return got

    assert ranks.run(main)[1] == [b"first", b"world", b"second"]


def test_split_orders_by_key_then_by_rank_and_leaves_out() -> None:
    ranks = Ranks(6, seed=2)
    colors = [0, 1, 0, UNDEFINED, 1, 0]
    keys = [5, 0, 5, 0, 0, -1]

    async def main(world) -> tuple | None:
        part = await world.Split(colors[world.rank], keys[world.rank])
        if part is None:
            return None
        total = await part.allreduce(world.rank)
        buffer = bytearray(1)
        status = Status()
        right, left = (part.rank + 1) % part.size, (part.rank - 1) % part.size
        await part.Sendrecv(bytes([world.rank]), right, 0, buffer, left, status=status)
        assert status == Status((part.rank - 1) % part.size, 0, 1)
        assert buffer[0] == part.world_ranks[status.source]
        again = await part.Dup()  # of parts that know nothing of one another
        await again.Barrier()
        return part.world_ranks, part.rank, total

    assert ranks.run(main) == [
        ((5, 0, 2), 1, 7),
        ((1, 4), 0, 5),
        ((5, 0, 2), 2, 7),
        None,
        ((1, 4), 1, 5),
        ((5, 0, 2), 0, 7),
    ]


def test_a_wrong_colour_and_a_freed_communicator() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        with pytest.raises(CommunicatorError) as caught:
            await world.Split(-7)
        assert str(caught.value) == "Split of world: color = -7: 0 or more, or UNDEFINED"
        copy = await world.Dup()
        await copy.Barrier()
        await copy.Free()
        for call in (copy.Barrier(), copy.Send(b"", 1), copy.Free(), copy.Dup()):
            with pytest.raises(CommunicatorError, match=r"on world.Dup: the communicator has been freed$"):
                await call
        await world.Barrier()

    ranks.run(main)


def test_a_collective_operation_takes_no_message_of_a_later_communicator() -> None:
    """Two communicators are made one after the other. The messages of the second are not in the first's second context.

    A message of 3 bytes with the tag of collective operations waits for its own receive.
    """
    ranks = Ranks(2)

    async def main(world) -> bytes:
        first, second = await world.Dup(), await world.Dup()
        buffer = bytearray(3)
        if world.rank == 0:
            await second.Send(b"abc", 1, 0)
        await first.Barrier()
        if world.rank == 1:
            await second.Recv(buffer, 0, 0)
        return bytes(buffer)

    assert ranks.run(main)[1] == b"abc"
