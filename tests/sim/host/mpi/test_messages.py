"""Messages between ranks on a plain transport: whole, in order, each to the receive that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.sim.host.mpi.data.request import Request
from lanikai.sim.host.mpi.data.status import Status
from lanikai.sim.host.mpi.envelope import Envelope, Kind
from lanikai.sim.host.mpi.errors import TruncationError
from lanikai.sim.host.mpi.matching import ANY_SOURCE, ANY_TAG, PROC_NULL
from support.sim.fake_transport import SMALL, Ranks, received

ALL_BUFFERS = SMALL.payload_bytes * SMALL.data_receives
SIZES = [0, 1, SMALL.eager_bytes, SMALL.eager_bytes + 1, 64, ALL_BUFFERS + 1, 3 * ALL_BUFFERS]


@dataclass(frozen=True)
class Message:
    source: int
    target: int
    second: bool  # in the second communicator
    tag: int
    size: int


@st.composite
def programs(draw) -> tuple[int, list[Message], int]:
    size = draw(st.integers(2, 4))
    message = st.builds(
        Message,
        source=st.integers(0, size - 1),
        target=st.integers(0, size - 1),
        second=st.booleans(),
        tag=st.integers(0, 2),
        size=st.sampled_from(SIZES),
    )
    return size, draw(st.lists(message, max_size=25)), draw(st.integers(0, 2**32))


WILD = ["exact", "any source", "any tag", "any"]


def receives_of(messages: list[Message], how: str, rng) -> list[tuple[int, int]]:
    """Source and tag of receives that take all of these messages, whatever the order in which they come."""
    asked = [
        (
            ANY_SOURCE if how in ("any source", "any") else one.source,
            ANY_TAG if how in ("any tag", "any") else one.tag,
        )
        for one in messages
    ]
    rng.shuffle(asked)
    return asked


@given(programs(), st.lists(st.sampled_from(WILD), min_size=8, max_size=8))
@settings(max_examples=120, deadline=None)
def test_each_receive_gets_the_oldest_message_that_suits_it(program, hows) -> None:
    size, messages, seed = program
    ranks = Ranks(size, seed=seed)

    def content(number: int) -> bytes:
        return bytes((number * 37 + place) % 251 for place in range(messages[number].size))

    async def main(world) -> dict[bool, list[tuple[tuple[int, int], Status, bytes]]]:
        rng = ranks.random
        comms = {False: world, True: await world.Dup()}
        mine = [n for n, one in enumerate(messages) if one.source == world.rank]
        steps: list[tuple[str, Any]] = [("send", number) for number in mine]
        for second in (False, True):
            to_me = [m for m in messages if m.target == world.rank and m.second == second]
            how = hows[world.rank * 2 + second]
            receives = [("receive", (second, *one)) for one in receives_of(to_me, how, rng)]
            for receive in receives:  # anywhere among the sends, the order of each kind kept
                steps.insert(rng.randint(0, len(steps)), receive)
        sends = iter(mine)
        steps = [("send", next(sends)) if kind == "send" else (kind, what) for kind, what in steps]
        requests, posted = [], {False: [], True: []}
        for kind, what in steps:
            if rng.random() < 0.3:
                await ranks.world.sleep(rng.choice((1, 50, 2000)))  # so that messages come unexpected
            if kind == "send":
                one = messages[what]
                buffer = bytearray(content(what))
                request = await comms[one.second].Isend(buffer, one.target, one.tag)
                requests.append(request)
                if request.done:
                    buffer[:] = b"\xaa" * len(buffer)  # the buffer is the caller's again
            else:
                second, source, tag = what
                buffer = bytearray(max(SIZES))
                request = await comms[second].Irecv(buffer, source, tag)
                requests.append(request)
                posted[second].append(((source, tag), request, buffer))
        statuses: list[Status] = []
        await Request.Waitall(requests, statuses)
        found = {id(request): status for request, status in zip(requests, statuses, strict=True)}
        return {
            second: [(asked, found[id(r)], bytes(b[: found[id(r)].length])) for asked, r, b in posts]
            for second, posts in posted.items()
        }

    results = ranks.run(main)
    for rank in range(size):
        for second in (False, True):
            left = [n for n, one in enumerate(messages) if one.target == rank and one.second == second]
            for (source, tag), status, data in results[rank][second]:
                assert source in (status.source, ANY_SOURCE) and tag in (status.tag, ANY_TAG)
                # The oldest that suits, among those that the sender sent and nobody has received yet.
                suiting = [
                    n
                    for n in left
                    if messages[n].source == status.source and tag in (messages[n].tag, ANY_TAG)
                ]
                assert (status.tag, data) == (messages[suiting[0]].tag, content(suiting[0]))
                left.remove(suiting[0])
            assert not left


@pytest.mark.parametrize("late", ["receiver", "sender"])
@pytest.mark.parametrize("size", SIZES)
def test_a_message_of_any_size_expected_or_not(size, late) -> None:
    ranks = Ranks(2)
    data = bytes(place % 251 for place in range(size))

    async def main(world) -> Status | None:
        if (world.rank == 1) == (late == "receiver"):
            await ranks.world.sleep(5000)
        if world.rank == 0:
            await world.Send(data, 1, 9)
            return None
        buffer = bytearray(size + 3)
        status = await received(world, buffer, 0, 9)
        assert buffer == data + b"\0\0\0"
        return status

    assert ranks.run(main) == [None, Status(0, 9, size)]


def test_a_short_message_does_not_overtake_a_long_one() -> None:
    ranks = Ranks(2)

    async def main(world) -> Any:
        if world.rank == 0:
            first = await world.Isend(b"L" * 1000, 1, 5)
            second = await world.Isend(b"s", 1, 5)
            return await Request.Waitall([first, second])
        await ranks.world.sleep(3000)
        buffer = bytearray(1000)
        lengths = [(await received(world, buffer, ANY_SOURCE, ANY_TAG)).length for _ in range(2)]
        return lengths

    assert ranks.run(main)[1] == [1000, 1]


def test_eager_sends_end_before_their_receives_begin_and_long_ones_do_not() -> None:
    ranks = Ranks(2)
    ended = {}

    async def main(world) -> None:
        if world.rank == 0:
            for name, size in (("eager", SMALL.eager_bytes), ("rendezvous", SMALL.eager_bytes + 1)):
                await world.Send(bytes(size), 1)
                ended[name] = ranks.world.cycle
        else:
            await ranks.world.sleep(10_000)
            for _ in range(2):
                await world.Recv(bytearray(100))

    ranks.run(main)
    assert ended["eager"] < 1000 and ended["rendezvous"] > 10_000


def test_more_messages_than_the_receiver_has_buffers_wait_at_the_sender() -> None:
    ranks = Ranks(2)

    async def main(world) -> Any:
        if world.rank == 0:
            requests = [await world.Isend(bytes([n]), 1, n) for n in range(30)]
            assert not requests[-1].done
            await Request.Waitall(requests)
        else:
            await ranks.world.sleep(10_000)
            buffer = bytearray(1)
            got = []
            for n in reversed(range(30)):  # all but the last one come unexpected
                await world.Recv(buffer, 0, n)
                got.append(buffer[0])
            return got

    assert ranks.run(main)[1] == list(reversed(range(30)))


@pytest.mark.parametrize("size", [SMALL.eager_bytes, 200])
def test_a_message_that_is_too_long_fills_the_buffer_and_says_so(size) -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(bytes([7]) * size, 1, 3)
            await world.Send(b"next", 1, 3)
        else:
            for room in (10, 0):
                buffer = bytearray(room)
                if room:
                    with pytest.raises(TruncationError) as caught:
                        await world.Recv(buffer, 0, 3)
                    assert str(caught.value) == (
                        "Recv from rank 0, tag 3, on world: the message from rank 0 with tag 3 has "
                        f"{size} bytes, the buffer 10"
                    )
                    assert buffer == bytes([7]) * 10
            buffer = bytearray(4)
            assert (await received(world, buffer, 0, 3)).length == 4 and buffer == b"next"

    ranks.run(main)


def test_a_long_message_into_nothing() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(bytes(500), 1)
        else:
            with pytest.raises(TruncationError, match="500 bytes, the buffer 0"):
                await world.Recv(bytearray())

    ranks.run(main)


def test_long_messages_to_two_ranks_go_on_in_turn() -> None:
    """Neither waits for the other's end: fragments to both alternate once both are granted. There are credits for all
    of them, so that no lack of them makes the turns."""
    ranks = Ranks(3, config=SMALL.replace(data_receives=3 * 64))

    async def main(world) -> None:
        if world.rank == 0:
            await Request.Waitall([await world.Isend(bytes(40 * 32), peer) for peer in (1, 2)])
        else:
            await world.Recv(bytearray(40 * 32), 0)

    ranks.run(main)
    sent = [peer for peer, data in ranks.transports[0].sent if Envelope.unpack(data).kind is Kind.DATA]
    assert sent.count(1) == sent.count(2) == 40
    assert abs(sent[:40].count(1) - sent[:40].count(2)) <= 8


def test_two_ranks_that_send_long_messages_to_each_other_with_sendrecv() -> None:
    ranks = Ranks(3)

    async def main(world) -> bytes:
        buffer = bytearray(3 * ALL_BUFFERS)
        mine = bytes([world.rank]) * len(buffer)
        right, left = (world.rank + 1) % 3, (world.rank - 1) % 3
        status = Status()
        await world.Sendrecv(mine, right, 1, buffer, left, 1, status)
        assert status == Status(left, 1, len(buffer))
        return bytes(buffer)

    assert ranks.run(main) == [bytes([(rank - 1) % 3]) * 3 * ALL_BUFFERS for rank in range(3)]


def test_to_oneself_and_to_nobody() -> None:
    ranks = Ranks(1)

    async def main(world) -> None:
        early = bytearray(1000)
        request = await world.Irecv(early, 0, 1)
        await world.Send(b"a" * 1000, 0, 1)
        status = Status()
        await request.Wait(status)
        assert status.length == 1000 and early == b"a" * 1000
        await world.Send(b"b" * 1000, 0, 2)  # buffered: it is received later
        late = bytearray(1000)
        await world.Recv(late, 0, 2)
        assert late == b"b" * 1000
        await world.Send(b"x", PROC_NULL)
        assert await received(world, bytearray(1), PROC_NULL) == Status(PROC_NULL, ANY_TAG, 0)

    ranks.run(main)


def test_numpy_arrays_parts_of_buffers_test_and_probe() -> None:
    ranks = Ranks(2)

    async def main(world) -> None:
        if world.rank == 0:
            await world.Send(np.arange(10.0), 1, 1)
            await world.Send([b"abcdef", 3], 1, 2)
            request = await world.Irecv(bytearray(1), 1)
            assert not await request.Test()
            await world.Send(b"", 1, 4)
            status = Status()
            while not await request.Test(status):
                await ranks.world.sleep(10)
            assert status.length == 0
        else:
            status = Status()
            await world.Probe(ANY_SOURCE, 1, status)
            values = np.empty(status.length // 8)
            await world.Recv(values, status.source, status.tag)
            assert list(values) == list(range(10))
            buffer = bytearray(8)
            assert (await received(world, [buffer, 5], 0, 2)).length == 3 and buffer[:3] == b"abc"
            await world.Recv(bytearray(), 0, 4)
            await world.Send(b"", 0)

    ranks.run(main)


def test_the_same_seed_gives_the_same_cycles() -> None:
    def once() -> int:
        ranks = Ranks(4, seed=5)

        async def main(world) -> None:
            for step in range(1, 4):
                await world.Sendrecv(
                    bytes(200), (world.rank + step) % 4, 0, bytearray(200), (world.rank - step) % 4
                )

        ranks.run(main)
        return ranks.world.cycle

    assert once() == once()
