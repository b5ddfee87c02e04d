"""A process that writes anything anywhere in its page, and rings any doorbell word: nobody else notices."""

import random

import pytest
from lanikai.firmware.am.wire import MessageKind
from lanikai.firmware.am.words import Counts, Entry, NoticeKind
from lanikai.hdl.nic.ports import SRAM_BASE
from support.firmware.am_cluster import AmCluster
from support.firmware.am_host import Endpoint

WRITE_CYCLES = 6
"""Cycles of a write: one of the host's bus."""


class Hostile:
    """A process that does its worst to its own endpoint."""

    def __init__(self, end, draw, victims):
        self.end, self.draw, self.victims = end, draw, victims
        self.layout, self.card = end.node.layout, end.node.card
        self.base = self.layout.frame(end.frame) - SRAM_BASE

    def write(self):
        """One write: a word anywhere, an entry that makes nearly sense, or a doorbell."""
        draw, card = self.draw, self.card
        kind = draw.random()
        if kind < 0.5:
            at = self.base + 4 * draw.randrange(self.layout.config.page_bytes // 4)
            card.sram[at : at + 4] = draw.randbytes(4)
        elif kind < 0.8:
            node, number = draw.choice(self.victims)
            entry = Entry(
                node=node,
                endpoint=number,
                kind=draw.choice(list(MessageKind)),
                tag=draw.randrange(1 << 32),
                handler=draw.randrange(256),
                bytes=draw.choice([0, 4, 32, 8192, 65535]),
                offset=draw.randrange(1 << 32),
                words=tuple(draw.randrange(1 << 32) for _ in range(draw.randrange(9))),
            )
            queue, count = draw.randrange(4), draw.randrange(self.layout.config.queue_entries)
            at = self.base + self.layout.entry(queue, count)
            words = b"".join(word.to_bytes(4, "little") for word in entry.pack())
            card.sram[at : at + len(words)] = words
        else:
            self.ring()

    def ring(self):
        draw, frame = self.draw, self.card_frame
        word = draw.randrange(1 << 31)
        if draw.random() < 0.7:  # one that can be
            sends = [(queue.posted, queue.entries - queue.open) for queue in frame.sends]
            receives = [(queue.consumed, queue.waiting) for queue in frame.receives]
            counts = [count + draw.randrange(more + 1) for count, more in [*sends, *receives]]
            word = Counts(
                requests_posted=counts[0],
                replies_posted=counts[1],
                requests_consumed=counts[2],
                replies_consumed=counts[3],
            ).word()
        self.card.words[self.end.frame] = word
        self.card.raise_event("doorbell")

    @property
    def card_frame(self):
        return self.end.node.program.shared.frames[self.end.frame]


async def traffic(world, one, other, messages):
    """Requests with data from one to the other, four at most without a reply. Returns the cycles that it took."""
    start = world.cycle
    left = messages
    seen = []
    outstanding = 0
    sent = 0
    while left:
        while sent < messages and outstanding < 4:
            data = bytes((sent + at) % 256 for at in range(32))
            entry = Entry(node=other.node.number, endpoint=other.number, tag=other.tag, reference=sent)
            kind = MessageKind.MEDIUM if sent % 2 else MessageKind.SHORT
            size = 32 if kind is MessageKind.MEDIUM else 0
            await one.post(
                Entry(**(vars(entry) | {"kind": kind, "bytes": size, "words": (sent, ~sent & 0xFFFFFFFF)})),
                data,
            )
            sent, outstanding = sent + 1, outstanding + 1
        if (found := await other.poll(False)) is not None:
            entry, data = found
            assert (entry.node, entry.endpoint) == (one.node.number, one.number)
            assert entry.words == (entry.reference, ~entry.reference & 0xFFFFFFFF)
            if entry.kind is MessageKind.MEDIUM:
                assert data == bytes((entry.reference + at) % 256 for at in range(32))
            seen.append(entry.reference)
            await other.post(
                Entry(
                    node=entry.node,
                    endpoint=entry.endpoint,
                    tag=entry.tag,
                    reply=True,
                    reference=entry.reference,
                )
            )
        if (found := await one.poll(True)) is not None:
            assert found[0].status == 0
            left, outstanding = left - 1, outstanding - 1
        await world.sleep(40)
    assert sorted(seen) == list(range(messages))
    return world.cycle - start


@pytest.mark.parametrize("writes", [5_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_no_write_into_a_page_changes_anything_of_others(writes):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    cluster = AmCluster()
    left, right = cluster.nodes
    messages = 40

    async def main():
        await left.set_ring()
        await right.set_ring()
        bad, good = Endpoint(left, 1, tag=draw.randrange(1 << 32)), Endpoint(left, 2, tag=5)
        peer, idle = Endpoint(right, 3, tag=draw.randrange(1 << 32)), Endpoint(right, 4, tag=7)
        for end, frame in ((bad, 1), (good, 2), (peer, 1), (idle, 2)):
            await end.node.load(end, frame)
        alone = await traffic(cluster.world, good, peer, messages)
        hostile = Hostile(bad, draw, [(1, 3), (1, 4), (0, 2), (1, 9), (3, 3)])
        stop = False
        before = [(end, end.node.get_bytes(end.page, end.node._free - end.page)) for end in (idle,)]
        kept = [right.get_bytes(at, 64) for at in (peer.record, idle.record)]

        async def attack():
            nonlocal stop
            for _ in range(writes):
                hostile.write()
                await cluster.world.sleep(WRITE_CYCLES)
            stop = True

        rounds = []

        async def talk():
            while not stop:
                rounds.append(await traffic(cluster.world, good, peer, messages))

        await cluster.world.gather(attack(), talk())
        # Its turn comes after eight attempts of the other at most, and the peer's card has only good messages to send.
        assert rounds and max(rounds) <= 4 * alone
        assert kept == [right.get_bytes(at, 64) for at in (peer.record, idle.record)]
        assert await idle.delivered() == (0, 0)
        for end, memory in before:
            assert end.node.get_bytes(end.page, len(memory)) == memory
        frame = hostile.card_frame
        assert frame.refused > writes // 100, "doorbell words that cannot be are refused, and counted"
        assert frame.activity > writes // 1000, "and the others are served"
        await left.unload(bad)
        assert not any(notice.kind is NoticeKind.UNREACHABLE for notice in await left.poll_notices())
        rounds.append(await traffic(cluster.world, good, peer, messages))
        await left.unload(good)
        await cluster.world.sleep(500)
        assert left.program.pending == 0

    cluster.run(main())
