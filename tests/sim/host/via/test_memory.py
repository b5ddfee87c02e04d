"""Memory of processes: what is sent, written or read is open to whoever asks, and all else is left alone."""

import pytest
from lanikai.sim.host.kit.errors import RefusedError
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import MemAttributes, Reliability, ViState
from lanikai.sim.host.via.descriptor import Op, Segment, VipDescriptor, VipStatus
from lanikai.sim.host.via.errors import ErrorCode, VipReturn
from support.sim.via_card import Net
from support.sim.via_processes import End, failed, pair, quiet, run

DONE, RESOURCE = VipStatus.DONE, VipReturn.VIP_ERROR_RESOURCE
RELIABLE = (Reliability.RELIABLE_DELIVERY, Reliability.RELIABLE_RECEPTION)


def test_memory_of_another_process_or_tag_is_not_sent():
    """Foreign, of another tag of the same process, deregistered, a byte past the end."""
    net = Net()

    async def main():
        a, _b = await pair(net)
        foreign = await End.open(net.agents[0])
        other = await vipl.VipCreatePtag(a.nic)
        tagged = await vipl.VipRegisterMem(a.nic, a.memory.start, 64, MemAttributes(ptag=other))
        gone = await vipl.VipRegisterMem(a.nic, a.memory.start, 64, MemAttributes(ptag=a.tag))
        short = await vipl.VipRegisterMem(a.nic, a.memory.start, 63, MemAttributes(ptag=a.tag))
        await vipl.VipDeregisterMem(a.nic, a.memory.start, gone)
        for handle in (foreign.handle, tagged, gone, short):
            await vipl.VipPostSend(a.vi, VipDescriptor([Segment(a.memory.start, handle, 64)]))
            assert (await failed(vipl.VipSendWait(a.vi, 50))).status == DONE | VipStatus.PROTECTION_ERROR
        await quiet(net)
        assert net.cards[1].dropped == 0

    run(net, main)


@pytest.mark.parametrize("level", tuple(Reliability))
def test_rdma_writes_and_reads(level):
    net = Net()

    async def main():
        read = level in RELIABLE
        a, b = await pair(net, reliability=level, rdma=True, rdma_write=True, rdma_read=read)
        a.memory.write(b"to the other end")
        remote = Segment(b.memory.start + 4090, b.handle)
        await vipl.VipPostSend(a.vi, a.descriptor(0, 16, op=Op.RDMA_WRITE, remote=remote))
        assert (await vipl.VipSendWait(a.vi, 50)).status == DONE | VipStatus.OP_RDMA_WRITE
        await quiet(net)
        assert b.memory.read(16, 4090) == b"to the other end"
        # With immediate data it takes a descriptor there, which has no need of a buffer.
        await vipl.VipPostRecv(b.vi, VipDescriptor())
        await vipl.VipPostSend(a.vi, a.descriptor(3, 9, op=Op.RDMA_WRITE, remote=remote, immediate=b"word"))
        await vipl.VipSendWait(a.vi, 50)
        told = await vipl.VipRecvWait(b.vi, 50)
        assert told.status == DONE | VipStatus.OP_REMOTE_RDMA_WRITE | VipStatus.IMMEDIATE
        assert (told.length, told.immediate) == (9, b"word")
        assert b.memory.read(9, 4090) == b"the other"
        if read:
            await vipl.VipPostSend(a.vi, a.descriptor(200, 9, op=Op.RDMA_READ, remote=remote))
            assert (await vipl.VipSendWait(a.vi, 50)).status == DONE | VipStatus.OP_RDMA_READ
            assert a.memory.read(9, 200) == b"the other"

    run(net, main)


@pytest.mark.parametrize("what", ["the VI", "the memory", "another tag", "past the end", "deregistered"])
@pytest.mark.parametrize("op", [Op.RDMA_WRITE, Op.RDMA_READ])
def test_rdma_that_is_not_allowed_changes_nothing_and_breaks_the_connection(op, what):
    net = Net()

    async def main():
        a, b = await pair(
            net,
            reliability=Reliability.RELIABLE_RECEPTION,
            rdma=True,
            rdma_write=what != "the VI",
            rdma_read=what != "the VI",
        )
        attributes = {
            "the memory": MemAttributes(
                ptag=b.tag, rdma_write=op is Op.RDMA_READ, rdma_read=op is Op.RDMA_WRITE
            ),
            "another tag": MemAttributes(
                ptag=await vipl.VipCreatePtag(b.nic), rdma_write=True, rdma_read=True
            ),
        }
        if what in attributes:
            await vipl.VipSetMemAttributes(b.nic, b.memory.start, b.handle, attributes[what])
        if what == "deregistered":
            await vipl.VipDeregisterMem(b.nic, b.memory.start, b.handle)
        for end, content in ((a, b"A"), (b, b"B")):
            end.memory.write(content * 8192)
        reports = []
        await vipl.VipErrorCallback(a.nic, None, lambda _, report: reports.append(report.code))
        remote = Segment(b.memory.start + (8192 - 63 if what == "past the end" else 0), b.handle)
        await vipl.VipPostSend(a.vi, a.descriptor(op=op, remote=remote))
        found = await failed(vipl.VipSendWait(a.vi, 50))
        assert found.status & VipStatus.ERROR_MASK == VipStatus.RDMA_PROT_ERROR
        await quiet(net)
        assert (a.memory.read(), b.memory.read()) == (b"A" * 8192, b"B" * 8192)
        assert a.vi.state is b.vi.state is ViState.ERROR
        read = op is Op.RDMA_READ
        assert reports == [ErrorCode.VIP_ERROR_RDMAR_PROT if read else ErrorCode.VIP_ERROR_RDMAW_PROT]

    run(net, main)


def test_writes_of_a_process_into_its_own_page_change_nothing_of_anothers():
    """It rings and consumes all numbers with all words; another pair goes on beside it."""
    net = Net()

    async def main():
        a, b = await pair(net, queues=8)
        hostile = await End.open(net.agents[0])
        wrong = []

        async def write():
            page = hostile.nic.page
            for number in range(64):
                for call in (
                    page.ring(number, 0xFFFF),
                    page.ring(number, number, receive=True),
                    page.consume(number % 64, 0x7777, arm=True),
                    page.shadow(4 * number, (1, 2)),
                ):
                    try:
                        await call
                    except RefusedError:
                        wrong.append(number)

        async def work():
            for i in range(60):
                await vipl.VipPostRecv(b.vi, b.descriptor())
                a.memory.write(bytes([i]) * 64)
                await vipl.VipPostSend(a.vi, a.descriptor())
                for end, done in ((a, vipl.VipSendDone), (b, vipl.VipRecvDone)):
                    assert (await vipl.VipCQWait(end.vi.told[0], 50))[0] is end.vi
                    assert await done(end.vi) is not None
                assert b.memory.read(64) == bytes([i]) * 64

        await net.world.gather(write(), work())
        # Its own VI may be rung with whatever it likes: that hurts itself alone.
        assert len(wrong) == 4 * 64 - 2

    run(net, main)
