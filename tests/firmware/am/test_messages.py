"""Messages between endpoints that stay resident: short, medium and bulk, requests and replies."""

from dataclasses import replace

from lanikai.firmware.am.wire import MessageKind, Reason
from lanikai.firmware.am.words import Entry, NoticeKind
from support.firmware.am_cluster import AmCluster
from support.firmware.am_host import Endpoint


def test_a_short_request_and_its_reply():
    cluster = AmCluster()
    left, right = cluster.nodes

    async def main():
        one, other = Endpoint(left, 5, tag=11), Endpoint(right, 9, tag=22)
        await left.load(one, 1)
        await right.load(other, 2)
        await one.post(Entry(node=1, endpoint=9, tag=22, handler=7, reference=0xABCD, words=(1, 2, 3, 4)))
        entry, data = await other.receive(False)
        assert entry == Entry(node=0, endpoint=5, tag=11, handler=7, reference=0xABCD, words=(1, 2, 3, 4))
        assert not data
        await other.post(
            Entry(node=0, endpoint=5, tag=entry.tag, reply=True, handler=8, reference=0xABCD, words=(5,))
        )
        entry, _ = await one.receive(True)
        assert (entry.node, entry.handler, entry.reference, entry.words) == (1, 8, 0xABCD, (5,))
        await cluster.world.sleep(20_000)
        assert await one.taken() == (1, 0) and await other.taken() == (0, 1)

    cluster.run(main())


def test_data_of_all_sizes_both_ways():
    cluster = AmCluster(nic={"mtu_bytes": 512, "sram_bytes": 32768})
    left, right = cluster.nodes
    largest = left.layout.data_bytes

    async def main():
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22, segment_bytes=4096)
        await left.load(one, 1)
        await right.load(other, 1)
        for size in (4, 5, 100, largest - 1, largest):
            data = bytes((size + at) % 251 for at in range(size))
            for kind, offset in ((MessageKind.MEDIUM, 0), (MessageKind.BULK, 4096 - size)):
                sent = Entry(node=1, endpoint=2, tag=22, kind=kind, bytes=size, offset=offset, words=(9, 8))
                await one.post(sent, data)
                entry, came = await other.receive(False)
                assert (entry.kind, entry.offset, entry.words, came) == (kind, offset, (9, 8), data)
                back = Entry(node=0, endpoint=1, tag=11, kind=MessageKind.MEDIUM, reply=True, bytes=size)
                await other.post(back, data[::-1])
                entry, came = await one.receive(True)
                assert came == data[::-1]
        outside = Entry(node=1, endpoint=2, tag=22, kind=MessageKind.BULK, bytes=8, offset=4089)
        await one.post(outside, bytes(8))
        entry, _ = await one.receive(True)
        assert entry.status == Reason.OUTSIDE and entry.offset == 4089

    cluster.run(main())


def test_what_cannot_be_delivered_comes_back_with_its_words_and_the_reason():
    cluster = AmCluster()
    left, right = cluster.nodes
    right_entry = Entry(node=1, endpoint=2, tag=22, reference=77, words=(1, 2, 3))

    async def main():
        one, other = Endpoint(left, 1, tag=11), Endpoint(right, 2, tag=22)
        await left.load(one, 1)
        await right.load(other, 1)
        tries = {
            Reason.WRONG_TAG: replace(right_entry, tag=23),
            Reason.NO_ENDPOINT: replace(right_entry, endpoint=3),
            Reason.NO_ROUTE: replace(right_entry, node=7),
            Reason.TOO_LONG: replace(right_entry, kind=MessageKind.MEDIUM, bytes=left.layout.data_bytes + 1),
        }
        for reply in (False, True):
            for reason, entry in tries.items():
                await one.post(replace(entry, reply=reply))
                back, _ = await one.receive(True)
                assert (back.status, back.reply) == (reason, reply)
                assert (back.node, back.endpoint, back.reference, back.words) == (
                    entry.node,
                    entry.endpoint,
                    77,
                    (1, 2, 3),
                )
        await one.post(right_entry)
        entry, _ = await other.receive(False)
        assert entry.words == (1, 2, 3)
        assert await other.delivered() == (1, 0)

    cluster.run(main())


def test_endpoints_of_one_card_talk_without_a_route_and_one_to_itself():
    """Requests with data, their replies, and one that comes back; nothing of it goes to the network."""
    cluster = AmCluster(nodes=2)
    left = cluster.nodes[0]
    pairs = ((1, 2), (1, 1), (2, 1))

    async def main():
        ends = {number: Endpoint(left, number, tag=10 + number) for number in (1, 2)}
        for number, end in ends.items():
            await left.load(end, number)
        for turn in range(20):
            for source, target in pairs:
                one, other = ends[source], ends[target]
                data = bytes((turn + at) % 256 for at in range(32))
                head = {"kind": MessageKind.MEDIUM, "bytes": 32} if turn % 2 else {}
                await one.post(
                    Entry(node=0, endpoint=target, tag=other.tag, reference=turn, words=(turn,), **head), data
                )
                entry, came = await other.receive(False)
                assert (entry.node, entry.endpoint, entry.words) == (0, source, (turn,))
                assert came == (data if turn % 2 else b"")
                await other.post(
                    Entry(node=0, endpoint=source, tag=entry.tag, reply=True, reference=turn, **head),
                    data[::-1],
                )
                entry, came = await one.receive(True)
                assert (entry.reference, entry.status) == (turn, 0) and came == (
                    data[::-1] if turn % 2 else b""
                )
        await ends[1].post(Entry(node=0, endpoint=2, tag=99))
        assert (await ends[1].receive(True))[0].status == Reason.WRONG_TAG
        await left.unload(ends[1])
        await left.unload(ends[2])
        assert left.program.pending == 0 and not cluster.network.log

    cluster.run(main())


def test_a_silent_node_gives_messages_back_as_unreachable():
    cluster = AmCluster(drop=lambda header: header.destination == 1, tries=4)
    left = cluster.nodes[0]

    async def main():
        await left.set_ring()
        one = Endpoint(left, 1, tag=11)
        await left.load(one, 1)
        for number in range(6):
            await one.post(Entry(node=1, endpoint=2, words=(number,)))
        backs = sorted([(await one.receive(True))[0].words for _ in range(6)])
        assert backs == [(number,) for number in range(6)]
        await cluster.world.sleep(5000)
        notices = await left.poll_notices()
        assert {(one.kind, one.node) for one in notices} == {(NoticeKind.UNREACHABLE, 1)}
        assert left.program.pending == 0

    cluster.run(main())


def test_more_messages_than_entries_each_once_in_both_directions():
    cluster = AmCluster(nodes=3)
    counts = 60

    async def main():
        ends = []
        for node in cluster.nodes:
            for number in (1, 2):
                end = Endpoint(node, number, tag=100 * node.number + number)
                await node.load(end, number)
                ends.append(end)
        got = {(end.node.number, end.number): [] for end in ends}

        async def serve(end):
            expected = counts
            answered = 0
            while expected or answered < counts:
                found = await end.poll(False)
                if found is not None:
                    entry = found[0]
                    got[end.node.number, end.number].append((entry.node, entry.endpoint, entry.words))
                    reply = Entry(node=entry.node, endpoint=entry.endpoint, tag=entry.tag, reply=True)
                    await end.post(replace(reply, reference=entry.reference))
                    expected -= 1
                found = await end.poll(True)
                if found is not None:
                    assert found[0].status == 0
                    answered += 1
                    end.credits += 1
                await cluster.world.sleep(50)

        async def ask(end, to):
            end.credits = 2
            for number in range(counts):
                while not end.credits:
                    await cluster.world.sleep(50)
                end.credits -= 1
                await end.post(
                    Entry(
                        node=to.node.number, endpoint=to.number, tag=to.tag, reference=number, words=(number,)
                    )
                )

        pairs = list(zip(ends, ends[2:] + ends[:2], strict=True))
        for end, _ in pairs:
            end.credits = 0
        await cluster.world.gather(*(serve(end) for end in ends), *(ask(end, to) for end, to in pairs))
        for end, to in pairs:
            came = got[to.node.number, to.number]
            assert sorted(came) == [(end.node.number, end.number, (number,)) for number in range(counts)]
        for node in cluster.nodes:
            assert node.program.pending == 0 and not node.program.waiting()

    cluster.run(main())
