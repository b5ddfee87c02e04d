"""Descriptors through VIPL: their ends, their codes, looking and waiting, completion queues, RDMA."""

import pytest
from lanikai.firmware.via.descriptor import Descriptor
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import Reliability, ViState
from lanikai.sim.host.via.descriptor import Op, Segment, VipDescriptor, VipStatus, status_bits
from lanikai.sim.host.via.errors import ErrorCode, VipReturn
from support.sim.via_card import CONFIG, NIC, Net
from support.sim.via_processes import End, code_of, failed, join, pair, quiet, run

DONE, RESOURCE = VipStatus.DONE, VipReturn.VIP_ERROR_RESOURCE
RELIABLE = (Reliability.RELIABLE_DELIVERY, Reliability.RELIABLE_RECEPTION)


@pytest.mark.parametrize("level", tuple(Reliability))
def test_messages_with_and_without_immediate_data(level):
    """From two pieces into two pieces, over page ends; then the descriptors are posted again."""
    net = Net()

    async def main():
        a, b = await pair(net, reliability=level)
        a.memory.write(bytes(range(256)) * 20)
        out = VipDescriptor([a.piece(4000, 150), a.piece(7, 50)], immediate=b"data")
        into = VipDescriptor([b.piece(4090, 120), b.piece(1, 90)])
        for immediate in (True, False):
            if not immediate:
                out.request = Descriptor(segments=out.request.segments)
            b.memory.write(bytes(8192))
            await vipl.VipPostRecv(b.vi, into)
            await vipl.VipPostSend(a.vi, out)
            assert await code_of(vipl.VipPostSend(a.vi, out)) is VipReturn.VIP_INVALID_PARAMETER
            assert (await vipl.VipSendWait(a.vi, 50)) is out
            assert (await vipl.VipRecvWait(b.vi, 50)) is into
            assert (out.status, out.length) == (DONE, 200)
            bits = DONE | VipStatus.OP_RECEIVE | (VipStatus.IMMEDIATE if immediate else 0)
            assert (into.status, into.length) == (bits, 200)
            assert into.immediate == (b"data" if immediate else None)
            content = a.memory.read(150, 4000) + a.memory.read(50, 7)
            assert b.memory.read(120, 4090) + b.memory.read(80, 1) == content

    run(net, main)


def test_descriptors_on_a_vi_that_is_not_connected():
    """Those to send end flushed. Those to receive wait for the connection."""
    net = Net()

    async def main():
        a, b = [await End.open(agent) for agent in net.agents]
        await vipl.VipPostSend(a.vi, a.descriptor())
        descriptor = await failed(vipl.VipSendDone(a.vi))
        assert descriptor.status == DONE | VipStatus.DESC_FLUSHED_ERROR and not descriptor.posted
        for offset in (0, 100):
            await vipl.VipPostRecv(b.vi, b.descriptor(offset))
        assert await vipl.VipRecvDone(b.vi) is None
        await join(net, a, b)
        for text in (b"first", b"second"):
            a.memory.write(text)
            await vipl.VipPostSend(a.vi, a.descriptor(0, len(text)))
            await vipl.VipSendWait(a.vi, 50)
        found = [await vipl.VipRecvWait(b.vi, 50) for _ in range(2)]
        assert [one.length for one in found] == [5, 6]
        assert (b.memory.read(5), b.memory.read(6, 100)) == (b"first", b"second")

    run(net, main)


def test_an_empty_queue_a_full_queue_and_time_that_is_over():
    net = Net()

    async def main():
        a, _b = await pair(net)
        for call in (vipl.VipSendDone, vipl.VipRecvDone):
            assert await failed(call(a.vi)) is None
        for wait in (vipl.VipSendWait, vipl.VipRecvWait):
            assert await failed(wait(a.vi, 50)) is None
        for i in range(CONFIG.queue_entries):
            await vipl.VipPostRecv(a.vi, a.descriptor(64 * i))
        says = "VI 1 of node 0: its queue to receive is full: 4 descriptors"
        assert await code_of(vipl.VipPostRecv(a.vi, a.descriptor()), says) is RESOURCE
        start = net.world.cycle
        says = "VI 1 of node 0: no descriptor to receive has ended in 0.5 ms"
        assert await code_of(vipl.VipRecvWait(a.vi, 0.5), says) is VipReturn.VIP_TIMEOUT
        took_ms = (net.world.cycle - start) / net.agents[0].nic.clock_hz * 1000
        assert 0.5 <= took_ms < 0.51
        assert await code_of(vipl.VipRecvWait(a.vi, 0)) is VipReturn.VIP_TIMEOUT
        assert await code_of(vipl.VipRecvWait(a.vi, -1)) is VipReturn.VIP_INVALID_PARAMETER
        assert await code_of(vipl.VipPostSend(a.vi, "text")) is VipReturn.VIP_INVALID_PARAMETER
        many = VipDescriptor([a.piece(0, 4)] * 3)
        assert await code_of(vipl.VipPostSend(a.vi, many)) is VipReturn.VIP_INVALID_PARAMETER
        wide = a.descriptor(immediate=bytes(8))
        assert await code_of(vipl.VipPostSend(a.vi, wide)) is VipReturn.VIP_INVALID_PARAMETER

    run(net, main)


def test_the_wait_of_one_is_refused_to_another_and_a_kill_ends_it():
    net = Net()

    async def main():
        a, _b = await pair(net)
        c, _d = await pair(net, queues=4)
        await vipl.VipPostRecv(a.vi, a.descriptor())

        async def wait():
            return await code_of(vipl.VipRecvWait(a.vi, None))

        async def wait_cq():
            return await code_of(vipl.VipCQWait(c.vi.told[0], None))

        async def others():
            await net.world.sleep(2_000)
            says = "VI 1 of node 0: somebody waits for its queue to receive already"
            assert await code_of(vipl.VipRecvWait(a.vi, 1), says) is RESOURCE
            says = "node 0, process 2: somebody waits for completion queue 0 already"
            assert await code_of(vipl.VipCQWait(c.vi.told[0], 1), says) is RESOURCE
            says = "VI 2 of node 0: completion queue 0 tells the ends of its queue to receive: wait for that"
            assert await code_of(vipl.VipRecvWait(c.vi, 1), says) is RESOURCE
            await net.agents[0].kill(a.nic)
            await net.agents[0].kill(c.nic)

        told = await net.world.gather(wait(), wait_cq(), others())
        assert told[:2] == [VipReturn.VIP_ERROR] * 2

    run(net, main)


def test_callbacks_of_work_queues():
    net = Net()

    async def main():
        a, b = await pair(net)
        calls = []
        await vipl.VipPostRecv(b.vi, b.descriptor())
        await vipl.VipRecvNotify(b.vi, "in", lambda *told: calls.append(told))
        into = b.descriptor(length=1)
        await vipl.VipPostSend(a.vi, out := a.descriptor(length=3))
        await vipl.VipSendNotify(a.vi, "out", lambda *told: calls.append(told))
        await quiet(net)
        assert [(told[0], told[1], told[2]) for told in calls] == [("out", a.nic, a.vi), ("in", b.nic, b.vi)]
        assert calls[0][3] is out and calls[1][3].length == 3
        # One that has ended with an error is told, too; a call that cannot be made is refused.
        await vipl.VipPostRecv(b.vi, into)
        await vipl.VipRecvNotify(b.vi, "in", lambda *told: calls.append(told))
        await vipl.VipPostSend(a.vi, a.descriptor(length=3))
        await quiet(net)
        assert calls[2][3] is into and into.status & VipStatus.LENGTH_ERROR
        assert await code_of(vipl.VipSendNotify(a.vi, None, None)) is VipReturn.VIP_INVALID_PARAMETER

    run(net, main)


def test_callbacks_are_called_in_their_order_also_of_what_is_posted_later():
    """Several callbacks of one queue, asked for before anything is posted; those of a VI that is gone are forgotten."""
    net = Net()

    async def main():
        a, b = await pair(net)
        calls = []
        for name in "xyz":
            await vipl.VipRecvNotify(b.vi, name, lambda name, *told: calls.append((name, told[2])))
        assert await code_of(vipl.VipRecvWait(b.vi, 1)) is RESOURCE
        into = [b.descriptor(64 * i) for i in range(2)]
        for one in into:
            await vipl.VipPostRecv(b.vi, one)
            await vipl.VipPostSend(a.vi, a.descriptor())
            await vipl.VipSendWait(a.vi, 50)
        await quiet(net)
        assert calls == [("x", into[0]), ("y", into[1])]
        # A flushed one is told as well, and then the queue may be waited for again.
        await vipl.VipDisconnect(b.vi)
        await vipl.VipPostRecv(b.vi, last := b.descriptor())
        await quiet(net)
        await vipl.VipDisconnect(a.vi)
        await join(net, a, b)
        await vipl.VipDisconnect(b.vi)
        await quiet(net)
        assert calls[2:] == [("z", last)] and last.status & VipStatus.DESC_FLUSHED_ERROR
        assert await code_of(vipl.VipRecvWait(b.vi, 1)) is VipReturn.VIP_DESCRIPTOR_ERROR
        await vipl.VipRecvNotify(b.vi, "gone", lambda *told: calls.append(told))
        await vipl.VipDestroyVi(b.vi)
        await quiet(net)
        assert len(calls) == 3 and not b.vi.receive.handlers and not b.vi.receive.waited

    run(net, main)


def test_a_message_without_a_descriptor_is_dropped_or_breaks_the_connection():
    for level in Reliability:
        net = Net()

        async def main(net=net, level=level):
            a, b = await pair(net, reliability=level)
            reports = []
            await vipl.VipErrorCallback(a.nic, None, lambda _, report: reports.append(report))
            await vipl.VipPostRecv(a.vi, a.descriptor(512))
            await vipl.VipPostSend(a.vi, a.descriptor())
            if level is Reliability.UNRELIABLE:
                assert (await vipl.VipSendWait(a.vi, 50)).status == DONE
                await quiet(net)
                assert a.vi.state is b.vi.state is ViState.CONNECTED and net.cards[1].dropped == 1
                return
            assert (await failed(vipl.VipSendWait(a.vi, 50))).status == DONE | VipStatus.REMOTE_DESC_ERROR
            await quiet(net)
            assert a.vi.state is b.vi.state is ViState.ERROR
            assert (a.vi.why, b.vi.why) == ("NO_DESCRIPTOR", "node 0 has disconnected")
            assert [report.code for report in reports] == [ErrorCode.VIP_ERROR_RECVQ_EMPTY]
            assert (await failed(vipl.VipRecvDone(a.vi))).status & VipStatus.DESC_FLUSHED_ERROR
            await vipl.VipPostRecv(a.vi, a.descriptor())
            assert (await failed(vipl.VipRecvDone(a.vi))).status & VipStatus.DESC_FLUSHED_ERROR
            for end in (a, b):
                await vipl.VipDisconnect(end.vi)
            await join(net, a, b)

        run(net, main)


WRONG = {
    "reserved": (Descriptor(reserved_bits=0x100), VipStatus.FORMAT_ERROR),
    "no operation": (Descriptor(op=Op.NONE), VipStatus.FORMAT_ERROR),
    "no address segment": (Descriptor(op=Op.RDMA_WRITE), VipStatus.FORMAT_ERROR),
    "count": (Descriptor(segment_count=3), VipStatus.FORMAT_ERROR),
    "length": (Descriptor(length=9), VipStatus.LENGTH_ERROR),
    "tag": (Descriptor(segments=(Segment(0x1000, 0xFFFF, 4),)), VipStatus.PROTECTION_ERROR),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_descriptors_end_with_their_bit(name):
    request, bit = WRONG[name]
    net = Net()

    async def main():
        a, _b = await pair(net)
        await vipl.VipPostSend(a.vi, VipDescriptor(request=request))
        found = await failed(vipl.VipSendWait(a.vi, 50))
        wanted = DONE | bit | (VipStatus.OP_RDMA_WRITE if request.op is Op.RDMA_WRITE else 0)
        assert found.status == wanted and found.failed and found.errors == bit.name

    run(net, main)


def test_every_end_of_the_card_has_its_bits():
    """All statuses of the card, for each operation, to send and to receive."""
    names = {
        "FORMAT_ERROR": {"FORMAT", "MISALIGNED"},
        "PROTECTION_ERROR": {"NO_REGION", "NOT_OWNER", "OUTSIDE", "READ_ONLY", "NO_PAGE"},
        "LENGTH_ERROR": {"TOO_LONG"},
        "PARTIAL_ERROR": {"PARTIAL"},
        "DESC_FLUSHED_ERROR": {"FLUSHED"},
        "TRANSPORT_ERROR": {"TRANSPORT", "BUS_ERROR"},
        "RDMA_PROT_ERROR": {"REMOTE_ACCESS"},
        "REMOTE_DESC_ERROR": {"NO_DESCRIPTOR"},
    }
    bits = {status: VipStatus[bit] for bit, some in names.items() for status in some}
    ops = {
        Op.SEND: VipStatus(0),
        Op.RDMA_WRITE: VipStatus.OP_RDMA_WRITE,
        Op.RDMA_READ: VipStatus.OP_RDMA_READ,
    }
    for status in set(CompletionStatus) - {CompletionStatus.OVERRUN}:
        error = bits.get(status.name, VipStatus(0))
        assert bool(error) == (status.name not in ("OK", "IMMEDIATE", "WRITTEN"))
        for op, code in ops.items():
            assert status_bits(status, op, receive=False) == DONE | error | code
        code = VipStatus.OP_REMOTE_RDMA_WRITE if status.name == "WRITTEN" else VipStatus.OP_RECEIVE
        word = VipStatus.IMMEDIATE if status.name in ("IMMEDIATE", "WRITTEN") else 0
        assert status_bits(status, Op.SEND, receive=True) == DONE | error | code | word
    assert sum(VipStatus[bit] for bit in names) == VipStatus.ERROR_MASK


def test_a_status_says_its_parts_by_their_names():
    for receive, op, status, says in (
        (False, Op.SEND, "OK", "DONE | OP_SEND"),
        (False, Op.RDMA_READ, "REMOTE_ACCESS", "DONE | RDMA_PROT_ERROR | OP_RDMA_READ"),
        (True, Op.SEND, "IMMEDIATE", "DONE | OP_RECEIVE | IMMEDIATE"),
        (True, Op.SEND, "WRITTEN", "DONE | OP_REMOTE_RDMA_WRITE | IMMEDIATE"),
        (True, Op.SEND, "TOO_LONG", "DONE | LENGTH_ERROR | OP_RECEIVE"),
    ):
        found = status_bits(CompletionStatus[status], op, receive=receive)
        assert str(found) == f"{found}" == says
    assert str(VipDescriptor().status) == "NOT_DONE"
    assert f"{VipStatus(0):>9}" == " NOT_DONE" and str(VipStatus(0x70001)) == "DONE | 0x70000"


def test_a_descriptor_without_a_shadow_is_not_taken_for_one_before():
    """The shadow of the descriptor with its number, of the connection before, is made void."""
    net = Net(nic=NIC.replace(shadow_windows=True), config=CONFIG.replace(descriptors="shadow"))

    async def main():
        a, b = await pair(net)
        card = net.cards[0]
        at = card.layout.window(a.tag.owner) + a.vi.send.shadow
        await vipl.VipPostSend(a.vi, a.descriptor(length=20))
        await vipl.VipSendWait(a.vi, 50)
        assert card.sram[at + 12] == 1
        await vipl.VipDisconnect(a.vi)
        await quiet(net)
        await vipl.VipDisconnect(b.vi)
        await join(net, a, b)
        await vipl.VipPostSend(a.vi, VipDescriptor([a.piece(0, 20), a.piece(40, 20)]))
        await vipl.VipSendWait(a.vi, 50)
        assert card.sram[at + 12] == 0

    run(net, main)
