"""Groups, communicators made of them, and grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.errors import CommunicatorError, RankError
from support.sim.fake_transport import Ranks


def test_groups_are_sets_in_an_order() -> None:
    ranks = Ranks(6)
    world = ranks.worlds[2]
    whole = world.Get_group()
    assert (whole.size, whole.rank, whole.Get_size(), whole.Get_rank()) == (
        6,
        2,
        6,
        2,
    ) and whole == world.group
    odd, low = whole.Incl([5, 3, 1]), whole.Range_incl([(0, 3, 1)])
    assert odd.world_ranks == (5, 3, 1) and low.world_ranks == (0, 1, 2, 3)
    assert whole.Excl([0, 2]).world_ranks == (1, 3, 4, 5)
    assert whole.Range_incl([(5, 0, -2)]).world_ranks == (5, 3, 1)
    assert whole.Range_excl([(0, 5, 2)]).world_ranks == (1, 3, 5)
    assert odd.Union(low).world_ranks == (5, 3, 1, 0, 2) and MPI.Group.Union(low, odd).world_ranks == (
        0,
        1,
        2,
        3,
        5,
    )
    assert odd.Intersection(low).world_ranks == (3, 1) and odd.Difference(low).world_ranks == (5,)
    assert odd.rank == MPI.UNDEFINED and odd.Difference(odd).size == 0
    assert odd.Translate_ranks([0, 1, MPI.PROC_NULL], low) == [MPI.UNDEFINED, 3, MPI.PROC_NULL]
    assert odd.Translate_ranks() == [5, 3, 1] and low.Translate_ranks(None, whole) == [0, 1, 2, 3]
    assert odd.Compare(whole.Incl([1, 3, 5])) == MPI.SIMILAR and odd.Compare(odd) == MPI.IDENT
    assert MPI.Group.Compare(odd, low) == MPI.UNEQUAL
    odd.Free()
    for call, message in (
        (lambda: whole.Incl([6]), "Incl: rank 6: the group has ranks 0 to 5"),
        (lambda: whole.Excl([1, 1]), "Excl: rank 1 is named twice"),
        (lambda: whole.Incl([1.0]), "Incl: rank = 1.0: a whole number"),
        (
            lambda: whole.Range_incl([(0, 5, 0)]),
            "Range_incl: (0, 5, 0): (first, last, step), a step that is not 0",
        ),
        (lambda: whole.Range_incl([(0, 5, 1.5)]), "Range_incl: range = 1.5: a whole number"),
        (lambda: odd.Translate_ranks([3], low), "Translate_ranks: rank 3: the group has ranks 0 to 2"),
    ):
        with pytest.raises(RankError) as caught:
            call()
        assert str(caught.value) == message


def test_a_communicator_of_a_group_has_its_order() -> None:
    ranks = Ranks(5, seed=4)

    async def main(world) -> tuple | None:
        group = world.Get_group().Incl([4, 0, 2])
        made = await world.Create(group)
        assert (made is None) == (world.rank not in (0, 2, 4))
        await world.Barrier()
        if made is MPI.COMM_NULL:
            return None
        everybody = await made.allgather(world.rank)
        inner = await made.Create(made.Get_group().Incl([1]))
        if inner is not None:
            assert inner.size == 1 and await inner.allreduce(7) == 7
        with pytest.raises(CommunicatorError) as caught:
            await made.Create(world.Get_group())
        assert str(caught.value) == "Create of world.Create: rank 1 of the world is not in it"
        return made.rank, everybody

    assert ranks.run(main) == [(1, [4, 0, 2]), None, (2, [4, 0, 2]), None, (0, [4, 0, 2])]


def test_communicators_compared() -> None:
    ranks = Ranks(3)

    async def main(world) -> list[int]:
        copy, back, part = await world.Dup(), await world.Split(0, -world.rank), await world.Split(world.rank)
        copy.Set_name("mine")
        assert (copy.Get_name(), world.Get_name(), copy.Get_size(), back.Get_rank()) == (
            "mine",
            "world",
            3,
            2 - world.rank,
        )
        return [MPI.Comm.Compare(world, other) for other in (world, copy, back, part)]

    assert ranks.run(main) == [[MPI.IDENT, MPI.CONGRUENT, MPI.SIMILAR, MPI.UNEQUAL]] * 3


def test_a_grid_and_its_neighbours() -> None:
    ranks = Ranks(7, seed=1)

    async def main(world) -> None:
        grid = await world.Create_cart([2, 3], periods=[False, True], reorder=True)
        if world.rank == 6:
            assert grid is None
            return
        row, column = divmod(grid.rank, 3)
        assert grid.Get_topo() == ([2, 3], [False, True], [row, column])
        assert (grid.dim, grid.ndim, grid.Get_dim(), grid.coords) == (2, 2, 2, [row, column])
        assert [grid.Get_cart_rank(grid.Get_coords(r)) for r in range(6)] == list(range(6))
        assert grid.Get_cart_rank([1, -1]) == 5 and grid.Get_cart_rank([0, 4]) == 1
        up, down = grid.Shift(0, 1)
        assert (up, down) == ((MPI.PROC_NULL, 3 + column) if row == 0 else (column, MPI.PROC_NULL))
        left, right = grid.Shift(1, 1)
        assert (left, right) == (row * 3 + (column - 1) % 3, row * 3 + (column + 1) % 3)
        assert grid.Shift(1, -2) == (row * 3 + (column + 2) % 3, row * 3 + (column - 2) % 3)
        # Messages along both directions, over the edge to nobody.
        got = np.full(1, -1)
        await grid.Sendrecv(np.array([grid.rank]), down, 0, got, up, 0)
        assert got[0] == (-1 if row == 0 else column)
        await grid.Sendrecv_replace(got, right, 0, left, 0)
        assert got[0] == (-1 if row == 0 else (column - 1) % 3)
        lines = await grid.Sub([False, True])
        assert (lines.dims, lines.periods, lines.rank, lines.size) == ([3], [True], column, 3)
        assert await lines.allreduce(grid.rank) == sum(range(row * 3, row * 3 + 3))
        alone = await grid.Sub([False, False])
        assert (alone.size, alone.dims, alone.coords, alone.Get_cart_rank([])) == (1, [], [], 0)
        copy = await grid.Dup()
        assert isinstance(copy, MPI.Cartcomm) and copy.Shift(1, 1) == (left, right)
        for call, message in (
            (lambda: grid.Get_coords(6), "Get_coords on world.Create_cart: rank = 6: ranks are 0 to 5"),
            (
                lambda: grid.Get_cart_rank([2, 0]),
                "Get_cart_rank on world.Create_cart: coords = [2, 0]: direction 0 has places 0 to 1",
            ),
            (
                lambda: grid.Get_cart_rank([1]),
                "Get_cart_rank on world.Create_cart: coords = [1]: 2, one a direction",
            ),
            (lambda: grid.Shift(2, 1), "Shift on world.Create_cart: direction = 2: 0 to 1"),
            (lambda: grid.Shift(0, 1.5), "Shift on world.Create_cart: disp = 1.5: a whole number"),
        ):
            with pytest.raises(RankError) as caught:
                call()
            assert str(caught.value) == message

    ranks.run(main)


def test_grids_that_cannot_be() -> None:
    ranks = Ranks(4)

    async def main(world) -> None:
        for dims, periods, message in (
            ([3, 2], None, "dims = [3, 2]: 6 ranks, it has 4"),
            ([2, 0], None, "dims = [2, 0]: each 1 or more"),
            ([2, 2], [True] * 3, "periods = [True, True, True]: 2, one a direction"),
        ):
            with pytest.raises(CommunicatorError) as caught:
                await world.Create_cart(dims, periods)
            assert str(caught.value) == f"Create_cart of world: {message}"
        grid = await world.Create_cart([2, 2])
        with pytest.raises(CommunicatorError, match=r"remain_dims = \[True\]: 2, one a direction$"):
            await grid.Sub([True])

    ranks.run(main)


@pytest.mark.parametrize("count", [1, 2, 7, 12, 14, 64, 100, 385, 2310, 13860])
@pytest.mark.parametrize("directions", [1, 2, 3, 4])
def test_sizes_of_grids_fall_and_make_up_the_number(count, directions) -> None:
    dims = MPI.Compute_dims(count, directions)
    assert math.prod(dims) == count and dims == sorted(dims, reverse=True) and len(dims) == directions


def test_sizes_of_grids_that_are_given_stay() -> None:
    assert MPI.Compute_dims(12, [0, 3]) == [4, 3] and MPI.Compute_dims(64, 4) == [4, 4, 2, 2]
    assert MPI.Compute_dims(6, [2, 3]) == [2, 3] and MPI.Compute_dims(12, [0, 2, 0]) == [3, 2, 2]
    for count, dims in ((7, [2, 0]), (6, [2, 2]), (0, [0]), (4, [-1, 0])):
        with pytest.raises(CommunicatorError, match="do not make a grid of"):
            MPI.Compute_dims(count, dims)
    with pytest.raises(CommunicatorError, match=r"^Compute_dims: dims = 1.5: a whole number$"):
        MPI.Compute_dims(4, 1.5)


def test_many_communicators_one_after_the_other() -> None:
    ranks = Ranks(2)

    async def main(world) -> int:
        for _ in range(200):
            await (await world.Dup()).Free()
        return world.process.next_context

    assert ranks.run(main) == [2 + 2 * 200] * 2
