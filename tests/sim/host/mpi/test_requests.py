"""Requests: one, any, some, all of them; null, cancelled, persistent; the modes of sending."""

from __future__ import annotations

from typing import Any

import pytest
from lanikai.sim.host.mpi import MPI
from lanikai.sim.host.mpi.errors import LengthError, RequestError, TruncationError
from support.sim.fake_transport import SMALL, Ranks

LONG = SMALL.eager_bytes + 1


def test_waitany_and_waitsome_take_what_is_done_and_leave_the_rest() -> None:
    ranks = Ranks(4)

    async def main(world) -> Any:
        if world.rank:
            await ranks.world.sleep(5000 * world.rank)
            await world.Send(bytes([world.rank]), 0, world.rank)
            return None
        buffers = [bytearray(1) for _ in range(3)]
        requests = [await world.Irecv(buffer, 1 + n, 1 + n) for n, buffer in enumerate(buffers)]
        assert await MPI.Request.Testany(requests) == (MPI.UNDEFINED, False)
        assert await MPI.Request.Testsome(requests) == []
        assert not await MPI.Request.Testall(requests)
        status = MPI.Status()
        places = []
        for _ in range(2):
            places.append(await MPI.Request.Waitany(requests, status))
            assert (status.Get_source(), status.Get_tag(), status.Get_count()) == (
                places[-1] + 1,
                places[-1] + 1,
                1,
            )
        statuses: list[MPI.Status] = []
        places += await MPI.Request.Waitsome(requests, statuses)
        assert len(statuses) == 1 and statuses[0].source == 3
        # All are null now.
        assert await MPI.Request.Waitany(requests, status) == MPI.UNDEFINED
        assert await MPI.Request.Testany(requests) == (MPI.UNDEFINED, True)
        assert await MPI.Request.Waitsome(requests) is None and await MPI.Request.Testsome(requests) is None
        assert await MPI.Request.Waitall(requests) and await MPI.Request.Testall(requests)
        assert buffers == [b"\1", b"\2", b"\3"]
        return places

    assert ranks.run(main)[0] == [0, 1, 2]


def test_without_requests_nothing_is_waited_for() -> None:
    ranks = Ranks(1)

    async def main(world) -> None:
        assert await MPI.Request.Waitall([]) and await MPI.Request.Testall([])
        assert await MPI.Request.Waitany([]) == MPI.UNDEFINED
        assert await MPI.Request.Waitsome([]) is None

    ranks.run(main)


def test_a_request_that_was_waited_for_is_null_with_an_empty_status() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank:
            await world.Send(b"1", 0, 5)
            return
        request, status = await world.Irecv(bytearray(1), 1, 5), MPI.Status()
        while not await request.Get_status(status):
            await ranks.world.sleep(10)
        assert status == MPI.Status(1, 5, 1)
        assert await request.Wait(status) and status == MPI.Status(1, 5, 1)
        for call in (request.Wait, request.Test):
            assert await call(status) and status == MPI.Status(MPI.ANY_SOURCE, MPI.ANY_TAG, 0)

    ranks.run(main)


def test_one_failed_request_does_not_hide_the_others() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank:
            for tag, content in enumerate((b"toolong", b"right")):
                await world.Send(content, 0, tag)
            return
        buffers = bytearray(3), bytearray(5)
        requests = [await world.Irecv(buffer, 1, tag) for tag, buffer in enumerate(buffers)]
        with pytest.raises(TruncationError) as caught:
            await MPI.Request.Waitall(requests)
        assert str(caught.value) == (
            "Irecv from rank 1, tag 0, on world: the message from rank 1 with tag 0 has 7 bytes, the buffer 3"
        )
        assert buffers == (b"too", b"right") and all(request.is_null for request in requests)

    ranks.run(main)


def test_cancel_ends_what_has_not_begun_and_nothing_else() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        status = MPI.Status()
        if world.rank == 0:
            buffer = bytearray(1)
            gone = await world.Irecv(buffer, MPI.ANY_SOURCE, 1)
            await gone.Cancel()
            assert await gone.Wait(status) and status.Is_cancelled()
            await world.Barrier()
            await world.Recv(buffer, 1, 1)  # the message is not lost with the receive that was cancelled
            assert buffer == b"m"
            late = await world.Irecv(buffer, 1, 2)
            while not await late.Get_status():
                await ranks.world.sleep(10)
            await late.Cancel()
            await late.Wait(status)
            assert not status.Is_cancelled() and status.Get_count() == 1
        else:
            await world.Barrier()
            await world.Send(b"m", 0, 1)
            await world.Send(b"n", 0, 2)

    ranks.run(main)


def test_a_send_that_waits_for_a_credit_can_be_cancelled() -> None:
    ranks = Ranks(2)

    async def main(world) -> list[int]:
        if world.rank == 0:
            sends = [await world.Isend(bytes([n]), 1, n) for n in range(20)]
            status, cancelled = MPI.Status(), []
            await sends[-1].Cancel()
            for number, request in enumerate(sends):
                await request.Wait(status)
                if status.Is_cancelled():
                    cancelled.append(number)
            await world.Send(b"", 1, 99)
            return cancelled
        await ranks.world.sleep(5000)
        buffer, got = bytearray(1), []
        while True:
            status = MPI.Status()
            await world.Recv(buffer, 0, MPI.ANY_TAG, status)
            if status.tag == 99:
                return got
            got.append(status.tag)

    cancelled, got = ranks.run(main)
    assert cancelled == [19] and got == list(range(19))


@pytest.mark.parametrize("size", [0, 1, LONG])
def test_a_synchronous_send_waits_for_its_receive_however_short(size) -> None:
    ranks = Ranks(2)
    ended = {}

    async def main(world) -> None:
        if world.rank == 0:
            request = await world.Issend(bytes(size), 1)
            assert not await request.Test()
            await request.Wait()
            ended["issend"] = ranks.world.cycle
            await world.Ssend(bytes(size), 1)
            ended["ssend"] = ranks.world.cycle
        else:
            for at in (10_000, 20_000):
                await ranks.world.sleep(at - ranks.world.cycle)
                await world.Recv(bytearray(size), 0)

    ranks.run(main)
    assert 10_000 < ended["issend"] < 20_000 < ended["ssend"]


def test_a_synchronous_send_to_oneself_waits_too() -> None:
    ranks = Ranks(1)

    async def main(world) -> None:
        request = await world.Issend(b"self", 0, 3)
        assert not await request.Test()
        buffer = bytearray(4)
        await world.Recv(buffer, 0, 3)
        assert await request.Test() and buffer == b"self"

    ranks.run(main)


def test_buffered_sends_return_at_once_and_use_the_attached_memory() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            with pytest.raises(LengthError) as caught:
                await world.Bsend(b"x", 1)
            assert str(caught.value) == (
                "Bsend to rank 1, tag 0, on world: 1 bytes: the attached buffer has 0 bytes left; Attach_buffer a "
                "larger one"
            )
            await world.Attach_buffer(bytearray(150))
            with pytest.raises(LengthError, match="a buffer is attached already"):
                await world.Attach_buffer(10)
            mine = bytearray(b"a" * 100)
            await world.Bsend(mine, 1)
            mine[:] = b"b" * 100  # what is sent is a copy
            assert ranks.world.cycle < 10_000
            with pytest.raises(LengthError, match="100 bytes: the attached buffer has 50 bytes left"):
                await world.Ibsend(mine, 1)
            assert await world.Detach_buffer() == 150
            assert ranks.world.cycle > 10_000  # it waited for the message
            with pytest.raises(LengthError, match="no buffer is attached"):
                await world.Detach_buffer()
        else:
            await ranks.world.sleep(10_000)
            buffer = bytearray(100)
            await world.Recv(buffer, 0)
            assert buffer == b"a" * 100

    ranks.run(main)


def test_persistent_requests_begin_as_often_as_they_are_started() -> None:
    ranks = Ranks(2)

    async def main(world) -> list[bytes]:
        peer, got = 1 - world.rank, []
        out, into = bytearray(LONG), bytearray(LONG)
        send = await world.Send_init(out, peer, 4)
        receive = await world.Recv_init(into, peer, 4)
        assert await receive.Wait() and await send.Test()  # inactive: nothing to wait for
        for turn in range(5):
            out[:] = bytes([turn * 2 + world.rank]) * LONG
            await MPI.Prequest.Startall([receive, send])
            with pytest.raises(RequestError) as caught:
                await send.Start()
            assert str(caught.value) == (
                f"Start: Send_init to rank {peer}, tag 4, on world has begun already: wait for it first"
            )
            status: list[MPI.Status] = []
            await MPI.Request.Waitall([receive, send], status)
            assert status[0] == MPI.Status(peer, 4, LONG)
            got.append(bytes(into[:1]))
        await send.Free()
        return got

    assert ranks.run(main) == [[bytes([turn * 2 + 1 - rank]) for turn in range(5)] for rank in range(2)]


@pytest.mark.parametrize("mode", ["Ssend_init", "Rsend_init", "Bsend_init"])
def test_persistent_sends_of_other_modes(mode) -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Attach_buffer(100)
            send = await getattr(world, mode)(b"abc", 1)
            for _ in range(2):
                await send.Start()
                await send.Wait()
        else:
            for _ in range(2):
                buffer = bytearray(3)
                await world.Recv(buffer, 0)
                assert buffer == b"abc"

    ranks.run(main)


def test_a_persistent_receive_that_is_cancelled_can_be_started_again() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            buffer, status = bytearray(1), MPI.Status()
            receive = await world.Recv_init(buffer, 1)
            await receive.Start()
            await receive.Cancel()
            await receive.Wait(status)
            assert status.Is_cancelled()
            await world.Barrier()
            await receive.Start()
            await receive.Wait(status)
            assert buffer == b"y" and not status.Is_cancelled()
        else:
            await world.Barrier()
            await world.Send(b"y", 0)

    ranks.run(main)


def test_a_freed_request_goes_on_and_is_null() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            request, status = await world.Isend(bytes([7]) * LONG, 1), MPI.Status(4, 4, 4)
            await request.Free()
            assert await request.Wait(status) and status == MPI.Status()
            assert await MPI.Request.Waitall([request])
            assert await MPI.Request.Waitany([request]) == MPI.UNDEFINED
        else:
            await ranks.world.sleep(3000)
            buffer = bytearray(LONG)
            await world.Recv(buffer, 0)
            assert buffer == bytes([7]) * LONG

    ranks.run(main)


def test_a_receive_goes_on_when_its_communicator_is_freed() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        copy, buffer = await world.Dup(), bytearray(LONG)
        request = await copy.Irecv(buffer, 1 - world.rank, 1)
        send = await copy.Isend(bytes([world.rank]) * LONG, 1 - world.rank, 1)
        await copy.Free()
        await MPI.Request.Waitall([send, request])
        assert buffer == bytes([1 - world.rank]) * LONG

    ranks.run(main)


def test_long_messages_of_four_ranks_to_whoever_asks_keep_their_order() -> None:
    ranks = Ranks(5, seed=9)

    async def main(world) -> None:
        if world.rank:
            for tag in range(5):
                await world.Send(bytes([world.rank]) * (LONG * 3), 0, tag)
            return
        seen, status = [0] * 5, MPI.Status()
        for _ in range(20):
            buffer = bytearray(LONG * 3)
            await world.Recv(buffer, status=status)
            assert buffer == bytes([status.source]) * len(buffer) and status.tag == seen[status.source]
            seen[status.source] += 1

    ranks.run(main)


def test_a_thousand_requests_both_ways() -> None:
    ranks = Ranks(2, seed=3)

    async def main(world) -> None:
        peer = 1 - world.rank
        buffers = [bytearray(n % 70) for n in range(300)]
        receives = [await world.Irecv(buffer, peer, n) for n, buffer in enumerate(buffers)]
        sends = [await world.Isend(bytes([n & 255]) * (n % 70), peer, n) for n in reversed(range(300))]
        await MPI.Request.Waitall(sends + receives)
        assert all(buffer == bytes([n & 255]) * (n % 70) for n, buffer in enumerate(buffers))

    ranks.run(main)
