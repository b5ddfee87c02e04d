"""Probes, messages that they take, and the rank that is nobody."""

from __future__ import annotations

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.errors import RequestError, TruncationError
from support.sim.fake_transport import SMALL, Ranks

LONG = SMALL.eager_bytes * 3
NOBODY = MPI.Status(MPI.PROC_NULL, MPI.ANY_TAG, 0)


def test_everything_with_nobody_is_done_at_once() -> None:
    ranks = Ranks(1)

    async def main(world) -> None:
        null, status, buffer = MPI.PROC_NULL, MPI.Status(), bytearray(b"kept")

        def told() -> bool:
            same, status.source = status == NOBODY, 77
            return same and buffer == b"kept"

        assert await world.Probe(null, 3, status) and told()
        assert await world.Iprobe(null, 3, status) and told()
        for message in (await world.Mprobe(null, 3, status), await world.Improbe(null, 3, status)):
            await message.Recv(buffer, status)
            assert told()
        assert await (await world.mprobe(null)).recv(status) is None and told()
        await world.Recv(buffer, null, 3, status)
        assert told()
        await (await world.Irecv(buffer, null)).Wait(status)
        assert told()
        await world.Sendrecv(b"x", null, 0, buffer, null, 0, status)
        assert told()
        await world.Sendrecv_replace(buffer, null, 0, null, 0, status)
        assert told()
        assert await world.recv(None, null, 0, status) is None and told()
        assert await (await world.irecv(source=null)).wait() is None
        for send in (world.Send, world.Ssend, world.Bsend, world.Rsend, world.send, world.ssend, world.bsend):
            await send(b"x", null)
        for begin in (world.Isend, world.Issend, world.Ibsend, world.Irsend, world.isend, world.issend):
            await (await begin(b"x", null)).Wait(status)
        for prepare in (
            world.Send_init,
            world.Ssend_init,
            world.Bsend_init,
            world.Rsend_init,
            world.Recv_init,
        ):
            request = await prepare(buffer, null)
            await request.Start()
            await request.Wait()

    ranks.run(main)


@pytest.mark.parametrize("size", [0, 5, LONG])
def test_a_probe_leaves_the_message_and_a_matched_one_takes_it(size) -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            for tag in (1, 1, 2):
                await world.Send(bytes([tag]) * size, 1, tag)
            return
        status = MPI.Status()
        assert not await world.Iprobe(0, 9)
        assert await world.Improbe(0, 9) is None
        for _ in range(2):
            assert await world.Probe(0, 2 if size <= SMALL.eager_bytes else 1, status)
        await world.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        assert status == MPI.Status(0, 1, size)
        first = await world.Mprobe(MPI.ANY_SOURCE, 1, status)
        assert status.Get_count() == size
        second = await world.Mprobe(0, 1)  # the next one: the first has been taken
        assert not await world.Iprobe(0, 1)
        late, early = bytearray(size), bytearray(size)
        request = await second.Irecv(late)
        await first.Recv(early, status)
        await request.Wait()
        assert early == late == b"\1" * size and status == MPI.Status(0, 1, size)
        with pytest.raises(RequestError) as caught:
            await first.Recv(early)
        assert str(caught.value) == "Message.Recv on world: the message has been received already"
        await world.Recv(bytearray(size), 0, 2)

    if size > SMALL.eager_bytes:

        async def long(world) -> None:
            if world.rank == 0:
                requests = [await world.Isend(bytes([tag]) * size, 1, tag) for tag in (1, 1, 2)]
                await MPI.Request.Waitall(requests)
            else:
                await main(world)

        ranks.run(long)
    else:
        ranks.run(main)


def test_a_matched_message_that_is_too_long() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(bytes(LONG), 1)
        else:
            message = await world.Mprobe(0)
            with pytest.raises(
                TruncationError, match=r"^Message.Recv from rank 0, tag 0, on world: the message"
            ):
                await message.Recv(bytearray(3))

    ranks.run(main)


def test_iprobe_finds_a_message_without_anybody_waiting() -> None:
    ranks = Ranks(2)

    async def main(world) -> int:
        if world.rank == 0:
            await ranks.world.sleep(3000)
            await world.Send(np.arange(4), 1)
            return 0
        looks, status = 0, MPI.Status()
        while not await world.Iprobe(status=status):
            looks += 1
            await ranks.world.sleep(100)
        values = np.empty(status.Get_count(MPI.LONG), int)
        await world.Recv(values, status.Get_source(), status.Get_tag())
        assert values.tolist() == [0, 1, 2, 3]
        return looks

    assert ranks.run(main)[1] > 10


def test_get_count_of_what_is_no_whole_number() -> None:
    status = MPI.Status(0, 0, 12)
    assert [status.Get_count(t) for t in (MPI.BYTE, MPI.INT, MPI.DOUBLE, "i2", np.float32)] == [
        12,
        3,
        MPI.UNDEFINED,
        6,
        3,
    ]
    assert MPI.Status(0, 0, 0).Get_count(MPI.DOUBLE) == 0
