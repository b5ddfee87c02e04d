"""Endpoints into frames and out of them: nothing is lost, nothing comes twice, and others go on meanwhile."""

from lanikai.firmware.am.layout import PageWord
from lanikai.firmware.am.wire import MessageKind, Reason
from lanikai.firmware.am.words import CommandKind, CommandStatus, Entry, NoticeKind
from support.firmware.am_cluster import AmCluster
from support.firmware.am_host import Endpoint


def test_a_page_comes_back_as_it_went_and_goes_on_in_another_frame():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await right.load(other, 1)
        for number in range(3):
            await one.post(Entry(node=1, endpoint=2, tag=22, words=(number,)))
        words = [(await other.receive(False))[0].words]  # of several channels, so in any order
        await cluster.world.sleep(10_000)
        await right.unload(other)
        assert await other.delivered() == (3, 0)
        assert right.get(other.page, 16)[PageWord.DELIVERED] == 3
        await right.load(other, 2)
        words += [(await other.receive(False))[0].words for _ in range(2)]
        assert sorted(words) == [(0,), (1,), (2,)]
        await left.unload(one)
        assert await one.taken() == (3, 0)
        await left.load(one, 2)
        await one.post(Entry(node=1, endpoint=2, tag=22, words=(3,)))
        assert (await other.receive(False))[0].words == (3,)

    cluster.run(main())


def test_a_message_for_an_endpoint_in_host_memory_faults_once_and_comes_when_it_is_loaded():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        await right.set_ring()
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await one.post(Entry(node=1, endpoint=2, tag=22))
        assert (await one.receive(True))[0].status == Reason.NO_ENDPOINT
        assert await right.ask(CommandKind.CREATE, endpoint=2) is CommandStatus.OK
        for number in range(4):
            await one.post(Entry(node=1, endpoint=2, tag=22, words=(number,)))
        await cluster.world.sleep(100_000)
        notices = await right.poll_notices()
        assert [(one.kind, one.endpoint) for one in notices] == [(NoticeKind.ENDPOINT_FAULT, 2)]
        await right.load(other, 1)
        words = [(await other.receive(False))[0].words for _ in range(4)]
        assert sorted(words) == [(number,) for number in range(4)]
        assert not await right.poll_notices()
        await right.unload(other)
        await one.post(Entry(node=1, endpoint=2, tag=22))
        await cluster.world.sleep(20_000)
        assert [one.endpoint for one in await right.poll_notices()] == [2]

    cluster.run(main())


def test_an_unload_ends_though_packets_are_refused_or_lost_and_they_go_on_later():
    lost = [False]
    cluster = AmCluster(drop=lambda header: lost[0] and header.destination == 1, tries=6)
    left, right = cluster.nodes

    async def main():
        await left.set_ring()
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await right.ask(CommandKind.CREATE, endpoint=2)
        for number in range(4):
            await one.post(Entry(node=1, endpoint=2, tag=22, words=(number,)))
        await cluster.world.sleep(5000)
        await left.unload(one)
        assert await one.taken() == (0, 0)
        await right.load(other, 1)
        await cluster.world.sleep(50_000)
        assert await other.delivered() == (0, 0), "what was taken back must not come"
        await left.load(one, 2)
        words = [(await other.receive(False))[0].words for _ in range(4)]
        assert sorted(words) == [(number,) for number in range(4)]
        lost[0] = True
        await one.post(Entry(node=1, endpoint=2, tag=22, words=(9,)))
        await cluster.world.sleep(3000)
        await left.unload(one)
        await left.load(one, 1)
        assert (await one.receive(True))[0].status == Reason.UNREACHABLE
        assert left.program.pending == 0

    cluster.run(main())


def test_other_endpoints_send_and_receive_while_pages_move():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        here, there = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        moved = Endpoint(left, 3, tag=33)
        await left.load(here, 1)
        await right.load(there, 1)
        done = False
        served = 0

        async def page():
            for _ in range(30):
                await left.load(moved, 2)
                await left.unload(moved)
            nonlocal done
            done = True

        async def talk():
            nonlocal served
            while not done:
                await here.post(
                    Entry(node=1, endpoint=2, tag=22, kind=MessageKind.MEDIUM, bytes=32), bytes(32)
                )
                await there.receive(False)
                served += 1

        await cluster.world.gather(page(), talk())
        assert served > 30

    cluster.run(main())


def test_a_dead_process_leaves_nothing_and_its_endpoint_is_none():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await right.load(other, 1)
        for number in range(4):  # as many as fit
            await one.post(Entry(node=1, endpoint=2, tag=22, words=(number,)))
        assert await right.ask(CommandKind.KILL, endpoint=2) is CommandStatus.OK
        back = [(await one.receive(True))[0] for _ in range(4 - (await right_got(right)))]
        assert {entry.status for entry in back} <= {Reason.NO_ENDPOINT}
        await right.ask(CommandKind.CREATE, endpoint=2)
        await one.post(Entry(node=1, endpoint=2, tag=22, words=(7,)))
        await cluster.world.sleep(5000)
        assert await left.ask(CommandKind.KILL, endpoint=1) is CommandStatus.OK
        assert await left.ask(CommandKind.UNLOAD, frame=1) is CommandStatus.EMPTY
        fresh = Endpoint(right, 2, tag=22)
        await right.load(fresh, 1)
        await cluster.world.sleep(50_000)
        assert left.program.pending == 0
        again = Endpoint(left, 1, tag=12)
        await left.load(again, 1)
        await again.post(Entry(node=1, endpoint=2, tag=22, words=(8,)))
        assert (await fresh.receive(False))[0].words == (8,), "and no message of the dead one"

    async def right_got(node):
        return node.program.shared.advanced_cycle and sum(
            header.kind == 1 and header.flow == 0 and not header.bandwidth & 32
            for _, header in cluster.network.log
            if header.destination == 0
        )

    cluster.run(main())


def test_an_event_is_told_when_the_mask_asks_for_it_and_the_queue_was_empty():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        await right.set_ring()
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await right.load(other, 1)
        await one.post(Entry(node=1, endpoint=2, tag=22))
        await other.receive(False)
        assert not await right.poll_notices()
        await other.write(4 * PageWord.EVENT_MASK, [1])
        for _ in range(3):
            await one.post(Entry(node=1, endpoint=2, tag=22))
        await cluster.world.sleep(20_000)
        assert [(one.kind, one.endpoint) for one in await right.poll_notices()] == [(NoticeKind.EVENT, 2)]
        for _ in range(3):
            await other.receive(False)
        await one.post(Entry(node=1, endpoint=2, tag=22))
        await cluster.world.sleep(20_000)
        assert [(one.kind, one.endpoint) for one in await right.poll_notices()] == [(NoticeKind.EVENT, 2)]

    cluster.run(main())


def test_the_driver_hears_what_its_commands_were_worth():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        await right.set_ring()
        one = Endpoint(left, 1, tag=11)
        await left.load(one, 1)
        load = {"page": one.page, "record": one.record}
        for status, kind, fields in [
            (CommandStatus.IN_USE, CommandKind.LOAD, {"frame": 1, "endpoint": 2, **load}),
            (CommandStatus.IN_USE, CommandKind.LOAD, {"frame": 2, "endpoint": 1, **load}),
            (CommandStatus.BAD_COMMAND, CommandKind.LOAD, {"frame": 9, "endpoint": 2, **load}),
            (CommandStatus.BAD_COMMAND, CommandKind.LOAD, {"frame": 2, "endpoint": 2, "page": 4}),
            (CommandStatus.EMPTY, CommandKind.UNLOAD, {"frame": 2}),
            (CommandStatus.BAD_COMMAND, CommandKind.UNLOAD, {"frame": 0}),
            (CommandStatus.BAD_COMMAND, CommandKind.SET_ROUTE, {"node": 999, "route": 1}),
            (CommandStatus.TOO_LONG, CommandKind.SEND_RAW, {"route": 1, "length": 4000}),
        ]:
            assert await left.ask(kind, **fields) is status
        left.card.bad_addresses.add(one.page + 16)
        await left.ask(CommandKind.KILL, endpoint=1)
        assert await left.ask(CommandKind.LOAD, frame=1, endpoint=1, **load) is CommandStatus.HOST_BUS
        left.card.bad_addresses.clear()
        await left.load(one, 1)
        assert await left.ask(CommandKind.SET_ROUTE, node=1, route=(1 << 48) - 1) is CommandStatus.OK
        await one.post(Entry(node=1, endpoint=2))
        assert (await one.receive(True))[0].status == Reason.NO_ROUTE

    cluster.run(main())


def test_a_message_for_an_absent_endpoint_waits_for_no_scan():
    """The sender hears that the endpoint has been loaded, or has ended; the scans are too far away to help."""
    cluster = AmCluster(scan_us=10_000)
    left, right = cluster.nodes

    async def main():
        await right.set_ring()
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        for endpoint in (2, 3):
            assert await right.ask(CommandKind.CREATE, endpoint=endpoint) is CommandStatus.OK
        for number in range(3):
            await one.post(Entry(node=1, endpoint=2, tag=22, words=(number,)))
        await cluster.world.sleep(20_000)
        assert await one.taken() == (0, 0)
        start = cluster.world.cycle
        await right.load(other, 1)
        words = [(await other.receive(False))[0].words for _ in range(3)]
        assert sorted(words) == [(0,), (1,), (2,)]
        await one.post(Entry(node=1, endpoint=3, tag=22))
        await cluster.world.sleep(20_000)
        assert await right.ask(CommandKind.KILL, endpoint=3) is CommandStatus.OK
        assert (await one.receive(True))[0].status == Reason.NO_ENDPOINT
        assert cluster.world.cycle - start < 100_000

    cluster.run(main())
