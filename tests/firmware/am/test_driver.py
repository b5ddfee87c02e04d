"""The driver's own packets, and its ring of notices when it is full."""

from lanikai.firmware.am.words import CommandKind, CommandStatus, Entry, NoticeKind
from support.firmware.am_cluster import AmCluster
from support.firmware.am_host import Endpoint

PASS_CYCLES = 150
"""Cycles of a pass of the loop that scans and sends a packet again."""


def test_raw_packets_are_told_with_header_and_bytes_and_lost_when_the_ring_is_half_full():
    cluster = AmCluster()
    target, source = cluster.nodes

    async def main():
        await target.set_ring()
        entries = target.layout.config.notice_entries
        for number in range(entries):
            words = [number, 0xABCD]
            for at, word in enumerate(words):
                await source.host.write(source.layout.raw_out + 16 + 4 * at, word)
            sent = await source.ask(CommandKind.SEND_RAW, route=0, length=8)
            assert sent is CommandStatus.OK
        await cluster.world.sleep(5000)
        assert target.program.shared.drops == {"raw": entries // 2}
        slot = target.ring
        for number in range(entries // 2):
            notice = target.get(slot, 10)
            assert (notice[0] & 0xFF, notice[1], notice[2]) == (NoticeKind.RAW_PACKET, 1, 8)
            assert notice[8:10] == [number, 0xABCD]
            slot += target.layout.notice_bytes
        assert len(await target.poll_notices()) == entries // 2
        await source.ask(CommandKind.SEND_RAW, route=0, length=8)
        await cluster.world.sleep(5000)
        assert [one.kind for one in await target.poll_notices()] == [NoticeKind.RAW_PACKET]

    cluster.run(main())


def test_notices_wait_for_a_full_ring_and_none_is_lost():
    cluster = AmCluster(notice_entries=8, endpoints_max=64)
    left, right = cluster.nodes

    async def main():
        one = Endpoint(left, 1, tag=11)
        await left.load(one, 1)
        for number in range(2, 22):
            await right.ask(CommandKind.CREATE, endpoint=number)
        # Each of them faults; four messages are under way at once, so each is taken back for the next ones.
        for number in range(2, 22):
            await one.post(Entry(node=1, endpoint=number, tag=1))
            await cluster.world.sleep(3000)
            await left.unload(one)
            one.posted = [0, 0]
            left.put(one.record, Endpoint(left, 1, tag=11).node.get(one.record, 7) + [0] * 9)
            left.put(one.page, [0, 0])
            await left.load(one, 1)
        assert right.program.notices.waiting == 20
        await right.set_ring()
        await cluster.world.sleep(5000)
        assert right.program.notices.waiting == 12
        found = []
        for _ in range(3):
            found += [notice.endpoint for notice in await right.poll_notices()]
            await cluster.world.sleep(5000)
        assert found == list(range(2, 22))

    cluster.run(main())


def test_an_unload_that_waits_for_a_silent_node_holds_up_no_other_command():
    silent = [False]
    cluster = AmCluster(drop=lambda header: silent[0] and header.destination == 1, tries=30)
    left, right = cluster.nodes

    async def main():
        await left.set_ring()
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await right.load(other, 1)
        await one.post(Entry(node=1, endpoint=2, tag=22))
        await other.receive(False)
        silent[0] = True
        await one.post(Entry(node=1, endpoint=2, tag=22))
        await cluster.world.sleep(3000)
        ended = []

        async def unload():
            await left.unload(one)
            ended.append("unload")

        cluster.world.spawn(unload(), "unload")
        await cluster.world.sleep(1000)
        assert await left.ask(CommandKind.CREATE, endpoint=9) is CommandStatus.OK
        assert not ended
        start = cluster.world.cycle
        while not ended:
            await cluster.world.sleep(1000)
        # A try without an answer ends at the second scan behind it. A scan begins a pass of the loop after its time.
        scan_cycles = left.layout.scan_ticks * left.nic.tick_cycles + PASS_CYCLES
        assert cluster.world.cycle - start < (2 * 30 + 2) * scan_cycles + 5000

    cluster.run(main())
