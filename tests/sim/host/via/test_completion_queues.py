"""Completion queues of VIPL: each end is told once, whatever happens to the queue."""

import pytest
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.attributes import Reliability
from lanikai.sim.host.via.descriptor import VipStatus
from lanikai.sim.host.via.errors import ErrorCode, VipError, VipReturn
from support.sim.via_card import Net
from support.sim.via_processes import End, code_of, join, pair, quiet, run

DONE, RESOURCE = VipStatus.DONE, VipReturn.VIP_ERROR_RESOURCE
RELIABLE = (Reliability.RELIABLE_DELIVERY, Reliability.RELIABLE_RECEPTION)


@pytest.mark.parametrize("way", ["done", "wait", "notify"])
def test_a_completion_queue_tells_the_ends_of_several_vis(way):
    net = Net()

    async def main():
        a, b = await pair(net, queues=16)
        queue = b.vi.told[0]
        second = await vipl.VipCreateVi(b.nic, b.vi.attributes, queue, queue)
        c = await End.open(net.agents[0])
        d = End(b.nic, b.tag, b.memory, b.handle, second)
        await join(net, c, d)
        for end in (b, d):
            for i in range(3):
                await vipl.VipPostRecv(end.vi, end.descriptor(64 * i))
        found = []
        for i in range(3):
            for end in (a, c):
                await vipl.VipPostSend(end.vi, end.descriptor(0, i + 1))
        called = net.world.flag()
        for _ in range(6):
            if way == "notify":
                called.clear()

                def call(context, nic, vi, receives):
                    found.append((vi, receives))
                    called.set()

                await vipl.VipCQNotify(queue, None, call)
                await called.wait()
            elif way == "wait":
                found.append(await vipl.VipCQWait(queue, 50))
            else:
                while (one := await vipl.VipCQDone(queue)) is None:
                    await net.world.sleep(50)
                found.append(one)
            assert (await vipl.VipRecvDone(found[-1][0])).posted is False
        assert sorted(vi.channel for vi, _ in found) == [1, 1, 1, 2, 2, 2] and all(one for _, one in found)
        assert await vipl.VipCQDone(queue) is None

    run(net, main)


def test_entries_that_a_short_completion_queue_has_lost_are_made_up_for():
    """Its process is told of the overrun, and hears of every end once, then and later."""
    net = Net()

    async def main():
        _a, b = await pair(net, queues=4)
        queue = b.vi.told[0]
        small = await vipl.VipCreateCQ(b.nic, 2)
        vi = await vipl.VipCreateVi(b.nic, b.vi.attributes, small, small)
        c, d = await End.open(net.agents[0]), End(b.nic, b.tag, b.memory, b.handle, vi)
        await join(net, c, d)
        reports = []
        await vipl.VipErrorCallback(b.nic, None, lambda _, report: reports.append(report.code))
        for rounds in range(3):
            for i in range(4):
                await vipl.VipPostRecv(vi, d.descriptor(64 * i))
            for i in range(4):
                await vipl.VipPostSend(c.vi, c.descriptor(length=i))
                await vipl.VipSendWait(c.vi, 50)
            await quiet(net)
            for i in range(4):
                assert await vipl.VipCQWait(small, 50) == (vi, True)
                assert (await vipl.VipRecvDone(vi)).length == i
            assert await vipl.VipCQDone(small) is None
            assert reports == [ErrorCode.VIP_ERROR_VI_OVERRUN] * (rounds + 1)
        assert await vipl.VipCQDone(queue) is None

    run(net, main)


def test_no_end_is_lost_when_a_completion_queue_is_resized():
    net = Net()

    async def main():
        a, b = await pair(net, queues=8)
        queue = b.vi.told[0]
        told = 0
        for turn in range(6):
            for i in range(4):
                await vipl.VipPostRecv(b.vi, b.descriptor(64 * i))

            async def send():
                for _ in range(4):
                    await vipl.VipPostSend(a.vi, a.descriptor())
                    await vipl.VipCQWait(a.vi.told[0], 50)
                    await vipl.VipSendDone(a.vi)

            async def resize(turn=turn):
                await net.world.sleep(1 + 333 * turn)
                await vipl.VipResizeCQ(queue, 4 << turn % 3)

            await net.world.gather(send(), resize())
            for _ in range(4):
                assert await vipl.VipCQWait(queue, 50) == (b.vi, True)
                await vipl.VipRecvDone(b.vi)
                told += 1
            assert await vipl.VipCQDone(queue) is None
        return told

    assert run(net, main) == 24


@pytest.mark.parametrize("queues", [(None, None), 8])
def test_flushed_descriptors_are_told_once_each(queues):
    """Some that have come before the end, some that have not, some posted after it."""
    net = Net()

    async def main():
        a, b = await pair(net, queues=queues)
        for i in range(3):
            await vipl.VipPostRecv(b.vi, b.descriptor(64 * i))
        await vipl.VipPostSend(a.vi, a.descriptor())
        await quiet(net)
        await vipl.VipDisconnect(a.vi)
        await quiet(net)
        await vipl.VipPostRecv(b.vi, b.descriptor(64 * 3))
        ends = []
        for _ in range(4):
            if queues == 8:
                assert await vipl.VipCQWait(b.vi.told[0], 50) == (b.vi, True)
            try:
                ends.append((await vipl.VipRecvDone(b.vi)).status)
            except VipError as error:
                ends.append(error.descriptor.status)
        flushed = DONE | VipStatus.OP_RECEIVE | VipStatus.DESC_FLUSHED_ERROR
        assert ends == [DONE | VipStatus.OP_RECEIVE, flushed, flushed, flushed]
        if queues == 8:
            assert await vipl.VipCQDone(b.vi.told[0]) is None

    run(net, main)


def test_callbacks_of_a_completion_queue_are_called_in_their_order():
    net = Net()

    async def main():
        a, b = await pair(net, queues=8)
        calls, queue = [], b.vi.told[1]
        for name in "xyz":
            await vipl.VipCQNotify(queue, name, lambda *told: calls.append(told))
        assert await code_of(vipl.VipCQWait(queue, 1)) is RESOURCE
        for i in range(2):
            await vipl.VipPostRecv(b.vi, b.descriptor(64 * i))
            await vipl.VipPostSend(a.vi, a.descriptor())
        await quiet(net)
        assert calls == [(name, b.nic, b.vi, True) for name in "xy"]
        await b.close()
        await quiet(net)
        assert len(calls) == 2 and not queue.handlers and not queue.waited

    run(net, main)


def test_a_queue_whose_memory_the_bus_refuses_is_told_and_made_anew():
    net = Net()

    async def main():
        a, b = await pair(net, queues=8)
        reports, queue, card = [], b.vi.told[1], net.cards[1]
        await vipl.VipErrorCallback(
            b.nic, None, lambda _, report: reports.append((report.code, report.completion_queue))
        )
        card.rings[queue.kit.number].dead = True
        card.sram[card.layout.broken] = 1 << queue.kit.number
        card.says = True
        card._raise()
        await quiet(net)
        card.sram[card.layout.broken] = 0
        says = await code_of(vipl.VipCQDone(queue))
        assert says is RESOURCE and reports == [(ErrorCode.VIP_ERROR_COMP_PROT, queue)]
        await vipl.VipResizeCQ(queue, 8)
        await vipl.VipPostRecv(b.vi, b.descriptor())
        await vipl.VipPostSend(a.vi, a.descriptor())
        assert await vipl.VipCQWait(queue, 50) == (b.vi, True)

    run(net, main)
