"""Words of a process, or of the other end, that cannot be: refused, and nobody else is touched. In plain Python."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lanikai.firmware.registers import NIC_REGISTERS
from lanikai.firmware.via.agent import Agent
from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.connection import Connection
from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.firmware.via.doorbells import Doorbells
from lanikai.firmware.via.engines import Move, Transfer
from lanikai.firmware.via.layout import Reliability, ViRecord, pack_broken, unpack_broken
from lanikai.firmware.via.parallel.engines import ParallelEngines
from lanikai.firmware.via.receive import Receiving
from lanikai.firmware.via.sending import Sending, refusal
from lanikai.firmware.via.stages import Stages
from lanikai.firmware.via.state import Inbound, Key, Outgoing, ReadRequest, Vi, ViaContext
from lanikai.firmware.via.trace import Stage
from lanikai.firmware.via.wire import NUMBERS, PacketOp, ViaHeader, pack_sequence
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.packet import Header, Kind

RECORD = ViRecord(
    send_ring=0, receive_ring=512, route=0, node=1, channel=2, reliability=Reliability.RELIABLE_DELIVERY
)
ENTRIES = 8


def context() -> ViaContext:
    """A card's state, with eight descriptors a queue."""
    nic = preset(NicConfig, "tiny", owners=4, receive_doorbells="merged", completion_queues=4, regions=4)
    return ViaContext(node=0, nic=nic, config=ViaConfig(queue_entries=ENTRIES), clock=lambda: 0)


def connected(card: ViaContext, channel: int = 1) -> Vi:
    """A VI of it that is connected."""
    vi = card.vi(channel)
    vi.look(RECORD)
    return vi


def done(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


def part(cls: type, **attributes: object) -> Any:
    """An object of a class that has these attributes alone."""
    made = cast(Any, object.__new__(cls))
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("receive", [False, True])
@pytest.mark.parametrize("origin", [0, NUMBERS - 3])
def test_a_doorbell_that_takes_descriptors_back_is_refused(receive, origin):
    """Below what was said before, or above what the queue holds; also where the count wraps. The same again is good."""
    card = context()
    vi = connected(card)
    queue = vi.receive if receive else vi.send
    queue.posted, queue.completed, queue.taken = origin, origin, origin
    doorbells = part(Doorbells, context=card)

    def ring(count: int) -> int:
        done(doorbells.rung(vi.channel, (origin + count) % NUMBERS, receive=receive))
        return queue.waiting

    assert ring(5) == 5 and not card.drops
    queue.take()
    queue.completed = (origin + 1) % NUMBERS
    queue.take()
    assert [ring(4), ring(1), ring(0), ring(ENTRIES + 2)] == [3] * 4
    assert card.drops["overrun"] == 4
    assert [ring(5), ring(ENTRIES + 1)] == [3, ENTRIES - 1]


@pytest.mark.parametrize("op", [Op.RDMA_WRITE, Op.RDMA_READ])
def test_remote_memory_has_an_address_that_a_packet_can_say(op):
    """No bytes at 2^32 are as little there as one: the header has no place for it."""
    for address, size, handle, good in (
        (0xFFFFFFFF, 0, 5, True),
        (0xFFFFFFFF, 1, 5, True),
        (0xFFFFFFFF, 2, 5, False),
        (1 << 32, 0, 5, False),
        (1 << 63, 0, 5, False),
        (0, 0, 1 << 16, False),
    ):
        descriptor = Descriptor(op=op, segments=(Segment(0, 1, size),), remote=Segment(address, handle))
        wanted = CompletionStatus.OK if good else CompletionStatus.REMOTE_ACCESS
        assert refusal(descriptor, RECORD) == wanted


def test_a_message_that_may_not_go_yet_keeps_its_stamp():
    """With as many messages under way as a queue has places, the next one waits, and its stamp with it."""
    card = context()
    vi = connected(card)
    taken = []

    class Step:
        async def __aenter__(self):
            return None

        async def __aexit__(self, *what):
            return None

    async def look_up(vi):
        return vi.record

    async def descriptor(queue, record, index, key, *, stamp):
        taken.append((index, stamp))
        vi.under_way[-1].gone = True
        return Descriptor(op=Op.SEND, segments=()), CompletionStatus.OK

    sending = part(
        Sending,
        context=card,
        processor=part(type("Processor", (), {}), step=lambda name: Step()),
        stages=part(Stages, look_up=look_up, descriptor=descriptor),
    )
    stamps = [70, 71]
    vi.send.posted = 1
    vi.under_way.extend([None] * ENTRIES)
    done(sending.send(vi, take_stamp=lambda: stamps.pop(0)))
    assert not taken and stamps == [70, 71] and vi.send.waiting == 1
    vi.under_way.clear()
    done(sending.send(vi, take_stamp=lambda: stamps.pop(0)))
    assert taken == [(0, 70)] and stamps == [71] and not vi.send.waiting


def test_one_read_is_answered_in_a_turn():
    """A process that reads without end waits behind the answers of other VIs."""
    card = context()
    one, other = connected(card), connected(card, 2)
    answered = []

    async def read(vi, record, request):
        answered.append((vi.channel, request.number))
        if len(answered) < 5:
            one.reads.append(ReadRequest(request.number + 1, 0, 0, 4))

    async def say(vi, record, kind, number, status):
        answered.append((vi.channel, kind))

    sending = part(Sending, context=card, _read=read, _answer=say)
    one.reads.append(ReadRequest(0, 0, 0, 4))
    other.ack = 0
    card.answer(one)
    card.answer(other)
    while card.answers:
        done(sending.answer(card.answers.popleft()))
    assert answered == [(1, 0), (2, Kind.ACK), (1, 1), (1, 2), (1, 3)]


def test_an_answer_to_a_message_that_was_not_sent_ends_nothing():
    """Also where the numbers wrap."""
    card = context()
    vi = connected(card)
    ended = []

    async def end_send(message, status):
        ended.append(message.number)

    connection = part(Connection, context=card, stages=SimpleNamespace(end_send=end_send))
    vi.number = 1
    for place, number in enumerate((NUMBERS - 1, 0)):
        message = Outgoing(vi, place)
        message.number = number
        vi.under_way.append(message)
    for number in (1, 2, NUMBERS // 2 - 1):
        done(connection.acknowledged(vi, number))
    assert not ended and card.drops == {"unknown": 3}
    done(connection.acknowledged(vi, NUMBERS - 1))
    assert ended == [NUMBERS - 1]
    done(connection.acknowledged(vi, 0))
    assert ended[1:] == [NUMBERS - 1, 0]


def test_the_rest_of_a_message_is_waited_for_from_its_last_packet_on():
    """Waits that began later than the message, and end later than its rest may come, do not hold up its end."""
    now, patience = 0, 1000
    card = context()
    card.clock = lambda: now
    vi, other = connected(card), connected(card, 2)
    ends, armed = [], []

    async def arm():
        while connection._waits and connection._waits[0].over:
            connection._waits.popleft()
        armed.append(connection._waits[0].due_cycle if connection._waits else None)

    async def lost(vi):
        vi.inbound = None
        ends.append(("rest", now))

    async def end(vi, status, *, failed):
        failed.gone = True
        ends.append(("answer", now))

    connection = part(
        Connection, context=card, _waits=deque(), _armed=False, _patience_cycles=patience, _arm=arm
    )
    connection.lost, connection.end = lost, end
    vi.inbound = inbound = Inbound(ViaHeader(connection=0, number=0), Key(1, 0, receive=True), now)
    done(connection.watch_inbound(vi, inbound))
    now = inbound.touched_cycle = 300
    now = 400
    done(connection.watch(Outgoing(other, 0)))
    while connection._waits:
        now = min(wait.due_cycle for wait in connection._waits)
        done(connection.timer())
        assert armed[-1] is None or armed[-1] > now
    assert ends == [("rest", 300 + patience), ("answer", 400 + patience)]


def test_the_agent_hears_which_connection_has_ended():
    """Its VI may have another one when the agent hears of it."""
    card = context()
    vi, told = connected(card), []
    vi.look(dataclasses.replace(RECORD, connection=77))

    async def flush(vi):
        pass

    async def tell(channel, connection, reason):
        told.append((channel, connection, reason))

    connection = part(Connection, stages=SimpleNamespace(flush=flush), agent=SimpleNamespace(tell=tell))
    for _ in range(2):  # it ends once
        done(connection.end(vi, CompletionStatus.TRANSPORT))
    assert told == [(vi.channel, 77, CompletionStatus.TRANSPORT)]
    assert unpack_broken(pack_broken(508, 65_535)) == (508, 65_535)


def test_doorbells_of_before_are_taken_before_a_vi_begins_anew():
    """The second processor's queue may still have one when the agent closes the VI, and opens it again."""
    card = context()
    vi = connected(card)
    past = [5]

    async def drain():
        for posted in past:
            done(part(Doorbells, context=card).rung(vi.channel, posted, receive=True))
        past.clear()

    async def flush(vi):
        vi.receive.drop()

    async def quiet(channel):
        pass

    agent = part(
        Agent, context=card, engines=SimpleNamespace(quiet=quiet), _flush=flush, _drain=drain, _late=deque()
    )
    register = NIC_REGISTERS["DOORBELL_CHANNEL"]
    for opened in (0, 1):
        done(agent.written(register.offset, register.pack(channel=vi.channel, owner=1, open=opened)))
        assert (vi.receive.posted, vi.receive.waiting) == (0, 0) and not past
    assert vi.channel in card.declared


def test_packets_that_make_no_sense_are_told_from_good_ones():
    """A refusal without a reason that there is; a last packet before the message's end, or behind it."""
    receiving = part(Receiving, context=context())

    def why(kind: Kind = Kind.DATA, *, size: int = 0, **changes: Any) -> str:
        via = ViaHeader(connection=0, number=0, **changes)
        header = Header(
            kind=kind, source=1, flow=1, length=16 + via.immediate_bytes + size, sequence=pack_sequence(2, 0)
        )
        return receiving._refusal(header, via, RECORD)

    reasons = {
        int(one) for one in CompletionStatus if one.name in ("TRANSPORT", "NO_DESCRIPTOR", "REMOTE_ACCESS")
    }
    for status in range(32):
        assert why(Kind.NACK, status=status) == ("" if status in reasons else "unknown")
    assert why(size=8, length=8) == why(size=4, length=8, last=False) == why(Kind.ACK) == ""
    assert why(op=PacketOp.READ_REQUEST, length=100) == ""
    assert why(size=4, length=8) == why(size=12, length=8) == "unknown"
    assert why(size=4, offset=8, length=8) == why(op=PacketOp.READ_ANSWER, size=4, length=8) == "unknown"


def test_all_parts_of_a_message_say_the_same_of_it():
    first = ViaHeader(
        op=PacketOp.RDMA_WRITE, connection=0, number=3, tag=5, address=64, length=12, last=False
    )
    inbound = Inbound(first, Key(1, 3, receive=True), 0)
    inbound.offset = 8

    def next_part(**changes: Any) -> ViaHeader:
        same = {"op": first.op, "number": 3, "tag": 5, "address": 64, "length": 12, "offset": 8}
        return ViaHeader(connection=0, **{**same, **changes})

    assert inbound.goes_on(next_part())
    for name, value in {"op": 0, "number": 4, "tag": 6, "address": 68, "length": 16, "offset": 4}.items():
        assert not inbound.goes_on(next_part(**{name: PacketOp(value) if name == "op" else value})), name


def test_a_late_end_takes_no_descriptor_back():
    """Descriptors behind it have been flushed meanwhile: as many as before have ended."""
    card = context()
    vi = connected(card)
    told = []

    async def tell(queue, record, index, size, status, key):
        told.append(index)

    stages = part(Stages, context=card, _tell=tell)
    vi.receive.posted = vi.receive.taken = vi.receive.completed = 4
    inbound = Inbound(ViaHeader(connection=0, number=0), Key(1, 0, receive=True), 0)
    for index, completed in ((2, 4), (4, 5)):
        inbound.index = index
        done(stages.end_receive(vi, inbound, CompletionStatus.OK))
        assert vi.receive.completed == completed
    assert told == [2, 4]


@pytest.mark.parametrize(("entries", "lists"), [(0, [5]), (2, [2, 2, 1]), (8, [5])])
def test_a_descriptor_of_many_segments_is_moved_list_by_list(entries, lists):
    """In the parallel design, where the card's queue holds fewer moves; the first error is the status."""
    made, spent = [], []

    @asynccontextmanager
    async def step(name):
        yield

    async def spend(**steps):
        spent.append(steps)

    async def wait():
        pass

    async def submit(moves, *, stamp, started):
        assert not entries or len(moves) <= entries
        made.append([move.address for move in moves])
        started()
        bad = CompletionStatus.OUTSIDE if 0 in made[-1] else CompletionStatus.NO_PAGE
        return SimpleNamespace(ended=SimpleNamespace(wait=wait), status=bad)

    card = context()
    card.nic = card.nic.replace(host_dma_queue_entries=entries)
    engines = part(
        ParallelEngines,
        context=card,
        host=SimpleNamespace(submit=submit),
        processor=SimpleNamespace(step=step, spend=spend, port=SimpleNamespace(cycle=0)),
    )
    moves = [Move(address=16 * i, sram=0, bytes=16, to_host=True, tag=1, channel=1) for i in range(5)]

    def move(some: list[Move]) -> CompletionStatus:
        stages = (Stage.PROGRAM_DATA, Stage.DATA)
        transfer = Transfer(moves=some, step="program_up", key=Key(1, 0), stages=stages, extra={"page": 3})
        return done(engines.move(transfer))

    assert move(moves) == CompletionStatus.OUTSIDE
    assert [len(one) for one in made] == lists and [at for one in made for at in one] == [
        one.address for one in moves
    ]
    assert spent == [{"page": 3}]
    assert move([]) == CompletionStatus.OK and len(made) == len(lists)


def test_the_sequential_design_has_one_buffer_each_way():
    for name in ("send_buffers", "receive_buffers"):
        with pytest.raises(ConfigError, match=f"{name} = 2: the sequential design has one"):
            ViaConfig(**{name: 2})
        assert getattr(ViaConfig(design="parallel", **{name: 2}), name) == 2
