"""Refusals before anything is sent, and their words; attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.host.mpi.comm.attributes import TAG_UB, Keyval
from lanikai.sim.host.mpi.config import MpiConfig, MpiCosts
from lanikai.sim.host.mpi.data.request import Request
from lanikai.sim.host.mpi.envelope import Envelope, Kind
from lanikai.sim.host.mpi.errors import (
    AttributeKeyError,
    BufferKindError,
    LengthError,
    MpiError,
    RankBusyError,
    RankError,
    RequestError,
    TagError,
)
from support.sim.fake_transport import SMALL, Ranks


def test_wrong_arguments() -> None:
    ranks = Ranks(3)

    async def main(world) -> None:
        if world.rank:
            return
        sent = len(ranks.transports[0].sent)
        frozen = b"1234"

        async def check(kind: type[MpiError], message: str, call: Any) -> None:
            with pytest.raises(kind) as caught:
                await call
            assert str(caught.value) == message
            assert isinstance(caught.value, MpiError) and caught.value.exit_status == 2
            assert len(ranks.transports[0].sent) == sent

        await check(RankError, "Send on world: dest = 3: ranks are 0 to 2", world.Send(b"", 3))
        await check(RankError, "Isend on world: dest = -1: ranks are 0 to 2", world.Isend(b"", -1))
        await check(RankError, "Recv on world: source = 7: ranks are 0 to 2", world.Recv(bytearray(), 7))
        await check(RankError, "Irecv on world: source = -5: ranks are 0 to 2", world.Irecv(bytearray(), -5))
        await check(RankError, "Bcast on world: root = 3: ranks are 0 to 2", world.Bcast(b"", 3))
        await check(RankError, "Probe on world: source = 3: ranks are 0 to 2", world.Probe(3))
        await check(TagError, "Send on world: tag = -1: 0 to 2147483647", world.Send(b"", 1, -1))
        await check(TagError, f"Send on world: tag = {2**31}: 0 to 2147483647", world.Send(b"", 1, 2**31))
        await check(
            TagError,
            "Recv on world: tag = -2: 0 to 2147483647, or ANY_TAG",
            world.Recv(bytearray(), 1, -2),
        )
        await check(
            LengthError,
            "Send to rank 1, tag 0, on world: count = -1: 0 to the buffer's 4 elements",
            world.Send([frozen, -1], 1),
        )
        await check(
            LengthError,
            "Recv from any rank, any tag, on world: count = 5: 0 to the buffer's 4 elements",
            world.Recv([bytearray(4), 5]),
        )
        await check(
            BufferKindError,
            "Recv from rank 1, tag 2, on world: the buffer cannot be written; give a bytearray or a numpy "
            "array",
            world.Recv(frozen, 1, 2),
        )
        await check(
            BufferKindError,
            "Send to rank 1, tag 0, on world: str is no buffer; give bytes, a bytearray or a numpy array",
            world.Send("text", 1),
        )
        await check(
            BufferKindError,
            "Send to rank 1, tag 0, on world: an array of Python objects; use the call in lower case",
            world.Send(np.array([None]), 1),
        )
        await check(
            RequestError,
            "Waitall: int is no request; Isend, Irecv and others return them",
            Request.Waitall([5]),
        )
        mine = await world.Irecv(bytearray(1), tag=99)
        theirs = await ranks.worlds[1].Irecv(bytearray(1))
        await check(
            RequestError,
            "Waitall on rank 0 of the world: the request is another rank's",
            Request.Waitall([mine, theirs]),
        )
        await mine.Cancel()
        await check(
            RankError,
            "Sendrecv on world: dest = 9: ranks are 0 to 2",
            world.Sendrecv(b"", 9, 0, bytearray()),
        )
        assert not world.process._matcher.waiting  # the receive of that sendrecv has not begun

    ranks.run(main, ending=False)


def test_a_rank_is_one_thread() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            ranks.world.spawn(world.Recv(bytearray(1)), "first")
            await ranks.world.sleep(100)
            with pytest.raises(RankBusyError) as caught:
                await world.Barrier()
            assert str(caught.value) == (
                "Barrier on world on rank 0 of the world, which is inside Recv on world: a rank is one thread; "
                "await one call after the other"
            )
            await ranks.world.sleep(5000)
            await world.Send(b"", 1)  # the first call has ended
        else:
            await ranks.world.sleep(1000)
            await world.Send(b"x", 0)
            await world.Recv(bytearray())

    ranks.run(main)


def test_a_rank_that_waits_says_for_what() -> None:
    ranks = Ranks(2)
    process = ranks.worlds[1].process

    async def main(world) -> None:
        if world.rank == 0:
            await ranks.world.sleep(1000)
            assert process.pending and process.waiting() == ["rank 1: Recv from rank 0, tag 4, on world"]
            state = "\n".join(process.state())
            assert "inside Recv on world" in state and "1 receives without a message" in state
            await world.Send(b"", 1, 4)
        else:
            await world.Recv(bytearray(), 0, 4)
        assert not world.process.pending

    ranks.run(main)


def test_attributes_are_set_got_deleted_copied_and_freed() -> None:
    ranks = Ranks(2)
    deleted = []

    async def delete(communicator, keyval, value) -> None:
        deleted.append((communicator.rank, communicator.name, value))

    kept, private = Keyval("kept", copy=True, delete=delete), Keyval("private", delete=delete)

    async def main(world) -> None:
        assert world.Get_attr(TAG_UB) == 2**31 - 1
        assert world.Get_attr(kept) is None
        with pytest.raises(AttributeKeyError) as caught:
            await world.Delete_attr(kept)
        assert str(caught.value) == "world has no attribute kept: Set_attr first"
        for call in (world.Set_attr(TAG_UB, 5), world.Delete_attr(TAG_UB)):
            with pytest.raises(AttributeKeyError, match="TAG_UB is not to be"):
                await call
        await world.Set_attr(kept, 1)
        await world.Set_attr(kept, 2)  # deletes what was there
        await world.Set_attr(private, "p")
        assert world.Get_attr(kept) == 2
        copy = await world.Dup()
        assert copy.Get_attr(kept) == 2 and copy.Get_attr(TAG_UB) == 2**31 - 1
        assert copy.Get_attr(private) is None
        part = await world.Split(0)
        assert part.Get_attr(kept) is None
        await copy.Free()
        await world.Delete_attr(private)
        assert world.Get_attr(private) is None

    ranks.run(main)
    mine = [(name, value) for rank, name, value in deleted if rank == 0]
    assert mine == [("world", 1), ("world.Dup", 2), ("world", "p")]


def test_a_header_is_its_32_bytes() -> None:
    envelope = Envelope(
        kind=Kind.DATA,
        credits=3,
        context=4,
        source=5,
        tag=2**31 - 1,
        length=2**32 - 1,
        offset=6,
        send=7,
        receive=8,
    )
    assert len(envelope.pack()) == 32 and Envelope.unpack(envelope.pack() + b"payload") == envelope
    assert [kind.control for kind in Kind] == [False, False, True, False, True]


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ConfigError) as caught:
        MpiConfig(fragment_bytes=1024, eager_bytes=993)
    assert str(caught.value) == "MpiConfig: eager_bytes = 993: at most 992, a fragment's payload"
    assert MpiConfig(fragment_bytes=1024, eager_bytes=992).payload_bytes == 992
    assert [SMALL.credits(ranks) for ranks in (1, 2, 5, 9, 100)] == [8, 8, 2, 1, 1]


def test_costs_are_rounded_up() -> None:
    costs = MpiCosts(copy_ns_per_kb=1000, reduce_ns_per_kb=2000)
    assert [costs.copy_ns(length) for length in (0, 1, 1024, 1025)] == [0, 1, 1000, 1001]
    assert costs.reduce_ns(512) == 1000
