"""Messages of Python objects."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.errors import BufferKindError, TruncationError
from support.sim.fake_transport import Ranks

OBJECTS = [None, 0, -1.5, "text", b"bytes", [1, [2, (3,)]], {"k": {1, 2}}, "long " * 400, 3 + 4j, True]


@pytest.mark.parametrize("mode", ["send", "ssend", "bsend", "isend", "issend", "ibsend"])
def test_objects_arrive_as_they_were(mode) -> None:
    ranks = Ranks(2, seed=1)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Attach_buffer(100_000)
            for tag, obj in enumerate(OBJECTS):
                request = await getattr(world, mode)(obj, dest=1, tag=tag)
                if request is not None:
                    assert await request.wait() is None
        else:
            status = MPI.Status()
            for tag, obj in enumerate(OBJECTS):
                got = await world.recv(source=MPI.ANY_SOURCE, tag=tag, status=status)
                assert got == obj and type(got) is type(obj)
                assert (status.source, status.tag) == (0, tag) and status.length > 0

    ranks.run(main)


def test_requests_return_what_they_received() -> None:
    ranks = Ranks(3, seed=2)

    async def main(world) -> None:
        if world.rank:
            for tag in range(3):
                await world.send((world.rank, tag, "x" * 100 * tag), 0, tag)
            return
        order = [(source, tag) for tag in (2, 0, 1) for source in (1, 2)]
        requests = [await world.irecv(source=source, tag=tag) for source, tag in order]
        place, first = await MPI.Request.waitany(requests)
        assert first[:2] == order[place]
        places, found = await MPI.Request.waitsome(requests)
        assert [one[:2] for one in found] == [order[p] for p in places] and place not in places
        done, rest = await MPI.Request.testall(requests)
        while not done:
            done, rest = await MPI.Request.testall(requests)
            await ranks.world.sleep(50)
        assert {one[:2] for one in rest if one} == set(order) - {order[p] for p in (place, *places)}

    ranks.run(main)


def test_objects_as_they_are_when_the_send_begins() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            mine = ["first"]
            request = await world.issend(mine, 1)
            mine.append("second")
            await request.wait()
        else:
            await ranks.world.sleep(5000)
            assert await world.recv() == ["first"]

    ranks.run(main)


def test_sendrecv_probes_and_messages_of_objects() -> None:
    ranks = Ranks(3)

    async def main(world) -> None:
        right, left = (world.rank + 1) % 3, (world.rank - 1) % 3
        status = MPI.Status()
        got = await world.sendrecv({"from": world.rank}, right, 4, None, left, 4, status)
        assert got == {"from": left} and status.source == left
        request = await world.isend("probed", right, 5)
        assert await world.probe(left, 5, status) and status.tag == 5
        assert await world.iprobe(left, 5)
        message = await world.mprobe(left, 5)
        assert await world.improbe(left, 5) is None
        assert await (await message.irecv()).wait() == "probed"
        await request.wait()

    ranks.run(main)


def test_into_memory_of_the_callers() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.send("fits", 1)
            await world.send("x" * 500, 1)
        else:
            memory = bytearray(100)
            assert await world.recv(memory, 0) == "fits" and b"fits" in memory
            with pytest.raises(TruncationError, match="bytes, the buffer 100"):
                await world.recv(memory, 0)

    ranks.run(main)


def test_what_has_no_pickle_and_what_is_none() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            with pytest.raises(
                BufferKindError, match=r"^send to rank 1, tag 0, on world: lock cannot be pickled: "
            ):
                await world.send(threading.Lock(), 1)
            await world.Send(np.arange(5), 1)
        else:
            with pytest.raises(BufferKindError) as caught:
                await world.recv()
            assert "the message is no pickled object" in str(caught.value)
            assert str(caught.value).endswith("; receive it with Recv")

    ranks.run(main)
