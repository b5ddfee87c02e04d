"""Every collective operation, on buffers and on objects, blocking and not, against what numpy says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.errors import BufferKindError, CollectiveError, LengthError, RankFailedError
from support.sim.fake_transport import Ranks

SIZES = [1, 2, 3, 4, 5, 7]


async def both(world: Any, name: str, *arguments: Callable[[], Any], **options: Any) -> list[Any]:
    """Make the call blocking and as a request. Returns the content of its second argument after each."""
    found = []
    for begun in (False, True):
        given = [make() for make in arguments]
        if begun:
            request = await getattr(world, "I" + name.lower())(*given, **options)
            await request.Wait()
        else:
            await getattr(world, name)(*given, **options)
        found.append(given[-1])
    return found


@pytest.mark.parametrize("size", SIZES)
def test_data_go_where_they_belong(size) -> None:
    ranks = Ranks(size, seed=size)
    length = 5

    def mine(rank: int, kind: Any = int) -> np.ndarray:
        return (np.arange(length) + 100 * rank).astype(kind)

    async def main(world) -> None:
        rank = world.rank
        whole = np.concatenate([mine(r) for r in range(size)])
        empty = lambda: np.full(length * size, -1)  # noqa: E731
        for root in range(size):
            for got in await both(
                world, "Bcast", lambda root=root: mine(root if rank == root else 99), root=root
            ):
                assert (got == mine(root)).all()
            at_root = (lambda: empty()) if rank == root else (lambda: None)
            for got in await both(world, "Gather", lambda: mine(rank), at_root, root=root):
                assert got is None or (got == whole).all()
            out = (lambda: whole) if rank == root else (lambda: None)
            for got in await both(world, "Scatter", out, lambda: np.full(length, -1), root=root):
                assert (got == mine(rank)).all()
        for got in await both(world, "Allgather", lambda: mine(rank), empty):
            assert (got == whole).all()
        table = np.arange(size * size).reshape(size, size)
        for got in await both(world, "Alltoall", lambda: table[rank].copy(), lambda: np.zeros(size, int)):
            assert (got == table[:, rank]).all()
        await (await world.Ibarrier()).Wait()

    ranks.run(main)


@pytest.mark.parametrize("size", SIZES)
def test_parts_of_any_length(size) -> None:
    """Rank r has r elements, rank 0 none; displacements leave gaps and run backwards."""
    ranks = Ranks(size, seed=size)
    counts = list(range(size))
    places = [sum(counts[:r]) + r for r in range(size)]

    async def main(world) -> None:
        rank, root = world.rank, size - 1
        mine = np.full(rank, rank, "i4")
        room = sum(counts) + size
        expected = np.full(room, -1, "i4")
        for r in range(size):
            expected[places[r] : places[r] + r] = r
        spec = lambda: [np.full(room, -1, "i4"), counts, places, MPI.INT]  # noqa: E731
        for got in await both(world, "Allgatherv", lambda: mine, spec):
            assert (got[0] == expected).all()
        at_root = spec if rank == root else (lambda: None)
        for got in await both(world, "Gatherv", lambda: mine, at_root, root=root):
            assert got is None or (got[0] == expected).all()
        out = (lambda: [expected, counts, places, MPI.INT]) if rank == root else (lambda: None)
        for got in await both(world, "Scatterv", out, lambda: np.full(rank, -1, "i4"), root=root):
            assert (got == rank).all() and len(got) == rank
        # Rank r sends d + r elements of the value 10 r + d to rank d.
        given = [rank + dest for dest in range(size)]
        sends = np.concatenate([np.full(rank + dest, 10 * rank + dest) for dest in range(size)])
        for got in await both(
            world, "Alltoallv", lambda: [sends, given], lambda: [np.zeros(sum(given), int), given]
        ):
            want = np.concatenate([np.full(source + rank, 10 * source + rank) for source in range(size)])
            assert (got[0] == want).all()

    ranks.run(main)


OPS = [MPI.SUM, MPI.PROD, MPI.MIN, MPI.MAX, MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BOR, MPI.BXOR]
UFUNCS = [
    np.add,
    np.multiply,
    np.minimum,
    np.maximum,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
]


@given(
    st.sampled_from(SIZES), st.integers(0, len(OPS) - 1), st.sampled_from(["i1", "u2", "i4", "i8", "f8", "?"]),
    st.integers(0, 12), st.integers(0, 2**32 - 1),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_reductions_are_what_numpy_says(size, number, kind, length, seed) -> None:
    if kind == "f8" and number >= 7:
        number -= 7  # bits of floating-point numbers are no MPI operands
    op, ufunc = OPS[number], UFUNCS[number]
    rng = np.random.default_rng(seed)
    everybody = rng.integers(0, 4, (size, size * length)).astype(kind)
    prefixes = [everybody[0]]
    for row in everybody[1:]:
        prefixes.append(np.asarray(ufunc(prefixes[-1], row)).astype(kind))
    total = prefixes[-1]
    counts = (
        [length * 2 if r == 0 else 0 if r == 1 else length for r in range(size)] if size > 1 else [length]
    )
    ranks = Ranks(size, seed=seed % 1000)

    async def main(world) -> None:
        rank, root = world.rank, seed % size
        mine, room = everybody[rank], lambda: np.zeros(size * length, kind)
        for got in await both(world, "Allreduce", lambda: mine, room, op=op):
            assert (got == total).all()
        at_root = room if rank == root else (lambda: None)
        for got in await both(world, "Reduce", lambda: mine, at_root, op=op, root=root):
            assert got is None or (got == total).all()
        for got in await both(world, "Scan", lambda: mine, room, op=op):
            assert (got == prefixes[rank]).all()
        for got in await both(world, "Exscan", lambda: mine, room, op=op):
            assert (got == (prefixes[rank - 1] if rank else 0)).all()
        for got in await both(
            world, "Reduce_scatter_block", lambda: mine, lambda: np.zeros(length, kind), op=op
        ):
            assert (got == total[rank * length : (rank + 1) * length]).all()
        start = sum(counts[:rank])
        room_v = lambda: np.zeros(counts[rank], kind)  # noqa: E731
        for begun in (False, True):
            got = room_v()
            if begun:
                await (await world.Ireduce_scatter(mine, got, counts, op)).Wait()
            else:
                await world.Reduce_scatter(mine, got, counts, op)
            assert (got == total[start : start + counts[rank]]).all()
        assert (mine == everybody[rank]).all()

    ranks.run(main)


@pytest.mark.parametrize("size", SIZES)
def test_in_place(size) -> None:
    ranks = Ranks(size, seed=size)

    async def main(world) -> None:
        rank, root = world.rank, size // 2
        mine = np.array([rank, rank + 0.5])
        total = [sum(range(size)), sum(range(size)) + size / 2]
        got = mine.copy()
        await world.Allreduce(MPI.IN_PLACE, got)
        assert got.tolist() == total
        got = mine.copy()
        await (
            world.Reduce(MPI.IN_PLACE, got, root=root) if rank == root else world.Reduce(got, None, root=root)
        )
        assert got.tolist() == (total if rank == root else mine.tolist())
        everybody = np.full((size, 2), -1.0)
        everybody[rank] = mine
        await world.Allgather(MPI.IN_PLACE, everybody)
        assert everybody.tolist() == [[r, r + 0.5] for r in range(size)]
        if rank == root:
            got = np.full((size, 2), -1.0)
            got[root] = mine
            await world.Gather(MPI.IN_PLACE, got, root)
            assert (got == everybody).all()
            await world.Scatter(got, MPI.IN_PLACE, root)
            assert (got == everybody).all()
        else:
            await world.Gather(mine, None, root)
            got = np.zeros(2)
            await world.Scatter(None, got, root)
            assert (got == mine).all()
        table = np.arange(size) + 10 * rank
        await world.Alltoall(MPI.IN_PLACE, table)
        assert table.tolist() == [10 * r + rank for r in range(size)]
        got = mine.copy()
        await world.Scan(MPI.IN_PLACE, got)
        assert got.tolist() == [sum(range(rank + 1)), sum(range(rank + 1)) + (rank + 1) / 2]
        got = np.arange(size) + rank
        await world.Reduce_scatter_block(MPI.IN_PLACE, got)
        assert got[0] == size * rank + sum(range(size))
        if size > 1 and rank != root:
            with pytest.raises(BufferKindError, match="sendbuf = IN_PLACE at a rank that is not the root"):
                await world.Gather(MPI.IN_PLACE, None, root)

    ranks.run(main, ending=False)


@pytest.mark.parametrize("size", SIZES)
def test_objects(size) -> None:
    ranks = Ranks(size, seed=size)

    async def main(world) -> None:
        rank = world.rank
        mine = {"rank": rank, "text": "x" * (rank * 40)}
        everybody = [{"rank": r, "text": "x" * (r * 40)} for r in range(size)]
        for root in range(size):
            assert await world.bcast(mine if rank == root else None, root) == everybody[root]
            assert await world.gather(mine, root) == (everybody if rank == root else None)
            assert await world.scatter(everybody if rank == root else None, root) == mine
            assert await world.reduce([rank], root=root) == (list(range(size)) if rank == root else None)
        assert await world.allgather(mine) == everybody
        assert await world.alltoall([(rank, dest) for dest in range(size)]) == [
            (s, rank) for s in range(size)
        ]
        assert await world.allreduce(str(rank)) == "".join(map(str, range(size)))
        assert await world.allreduce(rank, MPI.MAX) == size - 1 and await world.allreduce(rank, MPI.MIN) == 0
        assert await world.allreduce((rank % 2, rank), MPI.MAXLOC) == ((1, 1) if size > 1 else (0, 0))
        assert await world.allreduce((rank % 2, rank), MPI.MINLOC) == (0, 0)
        assert await world.scan([rank]) == list(range(rank + 1))
        assert await world.exscan([rank]) == (list(range(rank)) if rank else None)
        assert (await world.allreduce(np.array([rank, 1]), MPI.MAX)).tolist() == [size - 1, 1]
        await world.barrier()

    ranks.run(main)


def test_objects_that_do_not_go_together() -> None:
    async def shapes(world) -> None:
        await world.allreduce(np.zeros((2, 3) if world.rank else (3, 2)))

    async def types(world) -> None:
        await world.allreduce(np.zeros(2, "i4" if world.rank else "i8"))

    async def few(world) -> None:
        await world.scatter([1] if world.rank == 0 else None)

    async def number(world) -> None:
        await world.alltoall(5)

    for main, line in (
        (
            shapes,
            "rank 1 gave an array of float64 with the shape (2, 3), rank 0 one of float64 with the shape (3, 2)",
        ),
        (types, "rank 1 gave an array of int32 with the shape (2,), rank 0 one of int64 with the shape (2,)"),
        (few, "scatter on world: 1 objects: 2, one a rank"),
        (number, "alltoall on world: int: a sequence of 2 objects"),
    ):
        with pytest.raises(RankFailedError) as caught:
            Ranks(2).run(main)
        assert line in str(caught.value)


def test_elements_that_do_not_go_together_are_an_error_at_once() -> None:
    """Elements of equal bytes are an error, too: two int32 are no int64."""
    two, one = np.array([1, 2], "i4"), np.array([5], "i8")
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (
            lambda w: w.Allreduce(MPI.IN_PLACE, two.copy() if w.rank else one.copy()),
            "Allreduce on world: rank 1 gave 2 elements of int32, rank 0 has 1 element of int64",
        ),
        (
            lambda w: w.Reduce(two if w.rank else one, None if w.rank else one.copy()),
            "Reduce on world: rank 1 gave 2 elements of int32, rank 0 has 1 element of int64",
        ),
        (
            lambda w: w.Allreduce(MPI.IN_PLACE, one.copy(), MPI.MAX if w.rank else MPI.SUM),
            "Allreduce on world: rank 1 gave MAX, rank 0 SUM",
        ),
        (
            lambda w: w.Allgather(two if w.rank else one, np.zeros(4, "i4") if w.rank else np.zeros(2, "i8")),
            "Allgather on world: rank 1 gave 2 elements of int32, rank 0 has 1 element of int64",
        ),
        (
            lambda w: w.Gather(np.zeros(3) if w.rank else np.zeros(2), None if w.rank else np.zeros(4)),
            "Gather on world: rank 1 gave 3 elements of float64, rank 0 has 2 elements of float64",
        ),
        (
            lambda w: w.Alltoall(
                np.zeros(2, "f4" if w.rank else "i4"), np.zeros(2, "f4" if w.rank else "i4")
            ),
            "Alltoall on world: rank 1 gave 1 element of float32, rank 0 has 1 element of int32",
        ),
        (
            lambda w: w.Scan(MPI.IN_PLACE, np.zeros(2, ">i4" if w.rank == 0 else "<i4")),
            "Scan on world: rank 0 gave 2 elements of another type, rank 1 has 2 elements of int32",
        ),
    ]
    for call, line in cases:

        async def main(world, call=call) -> None:
            await call(world)

        with pytest.raises(RankFailedError) as caught:
            Ranks(2).run(main)
        # Whichever of the two sees it first says so from its side.
        assert facts(str(caught.value).split("failed: ")[1].split(";")[0]) == facts(line)


def facts(line: str) -> set[tuple[str, str]]:
    """Each rank with its arguments, and the call."""
    call, rest = line.split(": ")
    return {("call", call), *re.findall(r"rank (\d) (?:gave |has )?([^,]+)", rest)}


def test_a_ranks_own_buffers_that_do_not_go_together() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        for call, kind, message in (
            (
                world.Allreduce(np.zeros(3), np.zeros(2)),
                CollectiveError,
                "Allreduce on world: sendbuf has 3 elements of float64, recvbuf 2 of float64",
            ),
            (
                world.Reduce_scatter(np.zeros(4), np.zeros(2), [1, 1]),
                CollectiveError,
                "Reduce_scatter on world: recvcounts are 2 elements, sendbuf has 4",
            ),
            (
                world.Reduce_scatter_block(np.zeros(4), np.zeros(1)),
                CollectiveError,
                "Reduce_scatter_block on world: recvbuf has 1 elements of float64: 2 of float64",
            ),
            (
                world.Allgather(np.zeros(1), np.zeros(3)),
                LengthError,
                "Allgather on world: 3 elements are not 2 equal parts",
            ),
        ):
            with pytest.raises(kind) as caught:
                await call
            assert str(caught.value) == message

    ranks.run(main, ending=False)
