"""Operations: places of extremes, users' own, the types that they take."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.data.datatypes import DATATYPES
from lanikai.sim.host.mpi.errors import OperationError
from support.sim.fake_transport import Ranks

SIZES = [1, 2, 3, 5, 6]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["INT_INT", "FLOAT_INT", "DOUBLE_INT", "LONG_INT", "SHORT_INT"])
def test_the_place_of_the_greatest_and_the_least(size, kind) -> None:
    values = [[(7 * r + 3 * c) % 5 for c in range(6)] for r in range(size)]
    ranks = Ranks(size, seed=size)

    async def main(world) -> None:
        mine = np.zeros(6, DATATYPES[kind].dtype)
        mine["value"], mine["index"] = values[world.rank], world.rank
        for op, best in ((MPI.MAXLOC, max), (MPI.MINLOC, min)):
            got = np.empty_like(mine)
            await world.Allreduce([mine, getattr(MPI, kind)], [got, getattr(MPI, kind)], op)
            for column in range(6):
                found = [values[r][column] for r in range(size)]
                assert (got["value"][column], got["index"][column]) == (best(found), found.index(best(found)))

    ranks.run(main)


def matrices(a: Any, b: Any, datatype: Any) -> None:
    """b = a times b, as 2 x 2 matrices: associative, and it does not commute."""
    first, second = a.reshape(-1, 2, 2), b.reshape(-1, 2, 2)
    second[:] = first @ second


@pytest.mark.parametrize("size", SIZES)
def test_an_operation_that_does_not_commute_is_combined_in_the_ranks_order(size) -> None:
    op = MPI.Op.Create(matrices)
    assert not op.Is_commutative() and MPI.SUM.Is_commutative()
    factors = np.random.default_rng(size).integers(-2, 3, (size, 3, 2, 2))
    products = [factors[0]]
    for factor in factors[1:]:
        products.append(products[-1] @ factor)
    ranks = Ranks(size, seed=size)

    async def main(world) -> None:
        rank, mine = world.rank, factors[world.rank].copy()
        got = np.empty_like(mine)
        await world.Allreduce(mine, got, op)
        assert (got == products[-1]).all()
        for root in range(size):
            await world.Reduce(mine, got if rank == root else None, op, root)
        assert (got == products[-1]).all()
        await world.Scan(mine, got, op)
        assert (got == products[rank]).all()
        got[:] = 0
        await world.Exscan(mine, got, op)
        assert (got == (products[rank - 1] if rank else 0)).all()
        await (await world.Iallreduce(mine, got, op)).Wait()
        assert (got == products[-1]).all() and (mine == factors[rank]).all()
        whole = np.tile(mine[:1], (size, 1, 1))
        part = np.empty((1, 2, 2), int)
        await world.Reduce_scatter_block(whole, part, op)
        assert (part == products[-1][:1]).all()

    ranks.run(main)


@pytest.mark.parametrize("size", SIZES)
def test_a_users_operation_on_objects(size) -> None:
    op = MPI.Op.Create(lambda a, b, datatype: f"({a}{b})", commute=True)
    ranks = Ranks(size, seed=size)

    async def main(world) -> str:
        return await world.allreduce(str(world.rank), op)

    expected = "0"
    for rank in range(1, size):
        expected = f"({expected}{rank})"
    assert ranks.run(main) == [expected] * size


def test_types_that_an_operation_does_not_have() -> None:
    ranks = Ranks(1)
    pair = DATATYPES["DOUBLE_INT"].dtype
    cases = [
        (MPI.BAND, "f8", "BAND of float64: it takes whole numbers, truth values"),
        (MPI.BXOR, "c16", "BXOR of complex128: it takes whole numbers, truth values"),
        (MPI.MAX, "c16", "MAX of complex128: it takes numbers that have an order"),
        (MPI.SUM, "S4", "SUM of bytes32: it takes numbers"),
        (MPI.MAXLOC, "f8", "MAXLOC of float64: it takes a value and an index, as MPI.DOUBLE_INT"),
        (MPI.SUM, pair, f"SUM of {pair.name}: it takes numbers"),
    ]

    async def main(world) -> None:
        for op, kind, message in cases:
            with pytest.raises(OperationError) as caught:
                await world.Allreduce(np.zeros(2, kind), np.zeros(2, kind), op)
            assert str(caught.value) == f"Allreduce on world: {message}"
        for op in (MPI.SUM, MPI.PROD, MPI.LAND):
            got = np.zeros(1, "c16")
            await world.Allreduce(np.array([1j]), got, op)

    ranks.run(main)


def test_whole_numbers_wrap_as_their_type_does_and_nan_stays() -> None:
    ranks = Ranks(3)

    async def main(world) -> None:
        got = np.zeros(1, "i1")
        await world.Allreduce(np.array([100], "i1"), got)
        assert got[0] == np.int64(300).astype("i1")
        far = np.zeros(1)
        await world.Allreduce(np.array([np.nan if world.rank == 1 else 1.0]), far, MPI.MAX)
        assert np.isnan(far[0])

    ranks.run(main)


def test_types_have_mpis_names_and_sizes() -> None:
    assert (MPI.INT.Get_size(), MPI.DOUBLE.size, MPI.BYTE.Get_extent(), MPI.LONG.Get_name()) == (
        4,
        8,
        (0, 1),
        "LONG",
    )
    assert all(getattr(MPI, name) is one for name, one in DATATYPES.items())
    assert MPI.DOUBLE_INT.extent == 16
    with pytest.raises(
        AttributeError, match=r"^MPI.COMM_WORLD: ranks share a process here; take the `world` of each"
    ):
        _ = MPI.COMM_WORLD
    names = sorted(DATATYPES)
    assert all(one != other for one, other in pairwise(names))
