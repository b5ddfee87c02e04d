"""Python types of arguments, and buffers of all kinds."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.data.buffers import data_of, parts_of
from lanikai.sim.host.mpi.errors import (
    ArgumentError,
    AttributeKeyError,
    BufferKindError,
    CommunicatorError,
    DatatypeError,
    LengthError,
    MpiError,
    OperationError,
    RankError,
    RequestError,
    TagError,
)
from support.sim.fake_transport import SMALL, Ranks

BAD_NUMBERS = [1.5, 1.0, "1", None, [1], np.float64(1)]


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=repr)
def test_numbers_of_other_types_are_refused_by_every_call(bad) -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank:
            return
        buffer = bytearray(8)
        sends = [world.Send, world.Isend]
        sends += [world.Ssend, world.Bsend, world.Rsend, world.Issend, world.Ibsend, world.Irsend]
        sends += [world.send, world.ssend, world.bsend, world.isend, world.issend, world.ibsend]
        sends += [world.Send_init, world.Ssend_init, world.Bsend_init, world.Rsend_init]
        receives = [world.Recv, world.Irecv, world.Recv_init, world.recv, world.irecv]
        probes = [world.Probe, world.Iprobe, world.Mprobe, world.Improbe, world.probe, world.iprobe]
        roots = [world.Bcast, world.Ibcast, world.bcast, world.gather, world.scatter]
        wrong: list[tuple[type[MpiError], str, Any]] = []
        for send in sends:
            wrong += [(RankError, "dest", send(buffer, bad, 0)), (TagError, "tag", send(buffer, 1, bad))]
        for receive in receives:
            wrong += [
                (RankError, "source", receive(buffer, bad, 0)),
                (TagError, "tag", receive(buffer, 1, bad)),
            ]
        for probe in probes:
            wrong += [(RankError, "source", probe(bad, 0)), (TagError, "tag", probe(1, bad))]
        wrong += [(RankError, "root", root(buffer, bad)) for root in roots]
        for collective in (
            world.Gather,
            world.Scatter,
            world.Igather,
            world.Iscatter,
            world.Gatherv,
            world.Scatterv,
        ):
            wrong.append((RankError, "root", collective(buffer, buffer, bad)))
        for reduce in (world.Reduce, world.Ireduce):
            wrong.append((RankError, "root", reduce(buffer, buffer, MPI.SUM, bad)))
        wrong += [
            (RankError, "root", world.reduce(1, MPI.SUM, bad)),
            (RankError, "dest", world.Sendrecv(buffer, bad, 0, buffer, 1, 0)),
            (TagError, "tag", world.Sendrecv(buffer, 1, bad, buffer, 1, 0)),
            (TagError, "tag", world.Sendrecv(buffer, 1, 0, buffer, 1, bad)),
            (RankError, "source", world.sendrecv(buffer, 1, 0, None, bad, 0)),
            (TagError, "tag", world.Sendrecv_replace(buffer, 1, bad)),
            (CommunicatorError, "color", world.Split(bad)),
            (CommunicatorError, "key", world.Split(0, bad)),
            (CommunicatorError, "errorcode", world.Abort(bad)),
        ]
        if not isinstance(bad, list):
            wrong.append((CommunicatorError, "dims", world.Create_cart([2, bad])))
        sent = len(ranks.transports[0].sent)
        for kind, name, call in wrong:
            with pytest.raises(kind) as caught:
                await call
            assert str(caught.value).endswith(f"{name} = {bad!r}: a whole number"), str(caught.value)
        assert len(ranks.transports[0].sent) == sent and not world.process._matcher.waiting

    ranks.run(main, ending=False)


def test_numpy_whole_numbers_are_numbers() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(b"x", np.int64(1), np.uint8(7))
        else:
            await world.Recv(bytearray(1), np.int32(0), np.int8(7))

    ranks.run(main)


def test_other_arguments_of_wrong_types() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank:
            return
        with pytest.raises(ArgumentError, match=r"^Recv on world: status = 5: a Status, or None$"):
            await world.Recv(bytearray(1), 1, 0, 5)
        request = await world.Irecv(bytearray(1), 1, 0)
        for call in (request.Wait, request.Test, request.wait, request.test, request.Get_status):
            with pytest.raises(ArgumentError, match=r": status = 5: a Status, or None$"):
                await call(5)
        kinds = MPI.Request
        for several in (
            kinds.Waitall,
            kinds.Testall,
            kinds.Waitsome,
            kinds.Testsome,
            kinds.waitall,
            kinds.waitsome,
        ):
            with pytest.raises(ArgumentError, match=r"^statuses = 5: a list of Status, or None$"):
                await several([request], 5)
            with pytest.raises(RequestError, match=r": Request is no list of requests$"):
                await several(request)
        for any_of in (kinds.Waitany, kinds.Testany, kinds.waitany, kinds.testany):
            with pytest.raises(ArgumentError, match=r": status = 5: a Status, or None$"):
                await any_of([request], 5)
        await request.Cancel()
        await request.Wait()
        with pytest.raises(ArgumentError, match=r"^Create_keyval: delete_fn = True: a function of "):
            world.Create_keyval(None, True)
        with pytest.raises(OperationError) as caught:
            await world.Allreduce(np.zeros(1), np.zeros(1), "sum")
        assert str(caught.value) == "Allreduce on world: op = 'sum': MPI.SUM, MPI.MAX, ... or an Op.Create"
        with pytest.raises(OperationError, match=r"op = None"):
            await world.allreduce(1, None)
        with pytest.raises(OperationError, match=r"^Op.Create: 5 is no function"):
            MPI.Op.Create(5)
        with pytest.raises(
            AttributeKeyError, match=r"^Set_attr on world: 'k' is no key; Create_keyval makes one$"
        ):
            await world.Set_attr("k", 1)
        with pytest.raises(CommunicatorError, match=r"^Create of world: list is no Group$"):
            await world.Create([0])

    ranks.run(main, ending=False)


NAMES = {
    "an integer": (1, "int is no buffer"),
    "a string": ("text", "str is no buffer"),
    "objects": (np.array([None]), "an array of Python objects; use the call in lower case"),
    "too many parts": ([b"", 0, "u1", 4], "a list of 4: [data, count, datatype]"),
    "a list of numbers": ([1, 2], "int is no buffer"),
    "no list": ([], "a list of 0"),
    "no type": ([b"1234", 1, 5], "5 is no element type; [data, count, datatype]"),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_buffer(name) -> None:
    given, message = NAMES[name]
    with pytest.raises(BufferKindError) as caught:
        data_of(given, "Send")
    assert message in str(caught.value)


def test_counts_types_and_parts() -> None:
    four = np.arange(4, dtype="i4")
    assert data_of([four, 2], "x").count == 2 and data_of([four, MPI.BYTE], "x").count == 16
    assert data_of((four, 3, MPI.SHORT), "x").array.tolist() == [0, 0, 1]
    assert data_of(None, "x").count == 0 and data_of(np.float64(2.5), "x").array.tolist() == [2.5]
    assert data_of(array.array("d", [1, 2]), "x").dtype == float
    for spec, message in (
        ([four, 5], "x: count = 5: 0 to the buffer's 4 elements"),
        ([four, -1], "x: count = -1: 0 to the buffer's 4 elements"),
        ([four, 1.0], "x: count = 1.0: a whole number"),
        ([b"abc", MPI.INT], "x: 3 bytes are no whole number of int32"),
    ):
        with pytest.raises(LengthError) as caught:
            data_of(spec, "x")
        assert str(caught.value) == message
    with pytest.raises(DatatypeError, match=r"x: 'nonsense' is no element type; give MPI.INT"):
        data_of([four, "nonsense"], "x")
    with pytest.raises(BufferKindError, match="cannot be written"):
        data_of(b"frozen", "x", writable=True)
    parts = parts_of([np.arange(10), [1, 2, 3], [7, 4, 0], MPI.LONG], 3, "x")
    assert [parts.part(rank).array.tolist() for rank in range(3)] == [[7], [4, 5], [0, 1, 2]]
    assert parts_of([np.arange(10), ([4, 6], [6, 0])], 2, "x").displacements == [6, 0]
    assert parts_of([np.arange(10), [4, 6]], 2, "x").displacements == [0, 4]
    assert parts_of(np.arange(9), 3, "x").counts == [3, 3, 3]
    for spec, message in (
        (np.arange(10), "x: 10 elements are not 3 equal parts"),
        ([np.arange(10), [1, 2]], "x: counts: 2 numbers: 3, one a rank"),
        ([np.arange(10), [5, 5, 1]], "x: 1 elements at 10 for rank 2: the buffer has 10"),
        ([np.arange(10), [5, -1, 1]], "x: -1 elements at 5 for rank 1: the buffer has 10"),
    ):
        with pytest.raises(LengthError) as caught:
            parts_of(spec, 3, "x")
        assert str(caught.value) == message


LAYOUTS = {
    "C": lambda a: np.ascontiguousarray(a),
    "Fortran": lambda a: np.asfortranarray(a),
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
}
TYPES = ["i1", "u2", "i4", "i8", "f4", "f8", "c16", "?", ">i4", "S3", [("a", "i4"), ("b", "f8")]]


@given(
    st.sampled_from(list(LAYOUTS)),
    st.sampled_from(list(LAYOUTS)),
    st.sampled_from(TYPES),
    st.integers(0, 5),
    st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_arrays_of_any_layout_arrive_index_by_index(out, into, kind, rows, columns) -> None:
    whole = np.frombuffer(np.random.default_rng(rows * 7 + columns).bytes(rows * columns * 16), "u1")
    dtype = np.dtype(kind)
    values = np.zeros((rows, columns), dtype)
    raw = (whole[: values.nbytes] & (1 if kind == "?" else 0x3F)).tobytes()
    values = np.frombuffer(raw, dtype).reshape(rows, columns)
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(LAYOUTS[out](values), 1)
        else:
            target = LAYOUTS[into](np.zeros((rows, columns), dtype))
            status = MPI.Status()
            await world.Recv(target, 0, status=status)
            assert target.tobytes() == values.tobytes() and status.Get_count(dtype) == rows * columns

    ranks.run(main)


def test_what_is_between_strided_elements_stays() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        whole = np.full((4, 6), -1)
        if world.rank == 0:
            await world.Send(np.arange(8).reshape(4, 2), 1)
            await world.Send(np.array([8, 9, 7]), 1)
        else:
            part = whole[:, 1::3]
            await world.Recv(part, 0)
            assert whole.tolist() == [[-1, 2 * r, -1, -1, 2 * r + 1, -1] for r in range(4)]
            await world.Recv(part, 0)  # a shorter message: the rest stays, too
            assert part.ravel().tolist() == [8, 9, 7, 3, 4, 5, 6, 7]

    ranks.run(main)


def test_a_message_is_what_was_there_when_it_was_sent_or_longer() -> None:
    """The cases are typed buffers beyond the eager border, of every kind at once."""
    ranks = Ranks(2)
    count = SMALL.eager_bytes

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(array.array("i", range(count)), 1)
            await world.Send(memoryview(b"q" * count), 1)
        else:
            got = array.array("i", [0] * count)
            await world.Recv(got, 0)
            assert list(got) == list(range(count))
            raw = bytearray(count)
            await world.Recv(memoryview(raw), 0)
            assert raw == b"q" * count

    ranks.run(main)
