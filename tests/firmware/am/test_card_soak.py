"""Firmware on cards whose links lose, double and delay packets, while endpoints are paged all the while."""

import random
from collections import Counter

import pytest
from lanikai.firmware.am.wire import MessageKind
from lanikai.firmware.am.words import Entry
from support.firmware.am_cluster import AmCluster
from support.firmware.am_host import Endpoint
from support.firmware.am_pager import Pager

NODES, ENDPOINTS, CREDITS = 3, 4, 2


def noise(number):
    return bytes((7 * number + at) % 256 for at in range(32))


class Process:
    """A process that sends requests to others, answers theirs, and counts what comes and what comes back."""

    def __init__(self, end, pager, draw, budget):
        self.end, self.pager, self.draw, self.budget = end, pager, draw, budget
        self.credits, self.sent = CREDITS, 0
        self.came, self.answered, self.back = Counter(), Counter(), Counter()

    async def run(self, others, done):
        """Until `done` says that all processes have their answers."""
        end = self.end
        name = end.node.number * ENDPOINTS + end.number
        while not done():
            requests, replies = await end.delivered()
            if requests != end.consumed[0] or replies != end.consumed[1]:
                async with self.pager.resident(end):
                    await self.take()
            elif self.credits and self.budget:
                async with self.pager.resident(end):
                    to = self.draw.choice(others)
                    number = name << 16 | self.sent
                    medium = self.draw.random() < 0.5
                    self.credits, self.budget, self.sent = self.credits - 1, self.budget - 1, self.sent + 1
                    # Now and then to an endpoint that there is not, so that messages come back.
                    there = self.draw.random() < 0.95
                    await end.post(
                        Entry(
                            node=to.node.number,
                            endpoint=to.number if there else 60,
                            tag=to.tag,
                            kind=MessageKind.MEDIUM if medium else MessageKind.SHORT,
                            bytes=32 if medium else 0,
                            reference=number,
                            words=(number, int(there)),
                        ),
                        noise(number),
                    )
            await end.node.world.sleep(self.draw.randrange(100, 600))

    async def take(self):
        """One message of each queue."""
        end = self.end
        if (found := await end.poll(False)) is not None:
            entry, data = found
            assert not entry.status and entry.words == (entry.reference, 1)
            assert data == (noise(entry.reference) if entry.kind is MessageKind.MEDIUM else b"")
            self.came[entry.reference] += 1
            await end.post(
                Entry(
                    node=entry.node,
                    endpoint=entry.endpoint,
                    tag=entry.tag,
                    reply=True,
                    reference=entry.reference,
                )
            )
        if (found := await end.poll(True)) is not None:
            entry = found[0]
            (self.back if entry.status else self.answered)[entry.reference] += 1
            self.credits += 1


@pytest.mark.parametrize("messages", [60, pytest.param(6_000, marks=pytest.mark.full)])
def test_each_message_comes_once_or_comes_back_once(messages):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)

    def fate(header):
        if draw.random() < 0.05:
            return []
        copies = 2 if draw.random() < 0.05 else 1
        return [draw.randrange(5000) if draw.random() < 0.05 else 0 for _ in range(copies)]

    cluster = AmCluster(nodes=NODES, fate=fate, tries=60)

    async def main():
        processes = []
        for node in cluster.nodes:
            ends = [Endpoint(node, number, tag=draw.randrange(1 << 32)) for number in range(ENDPOINTS)]
            pager = Pager(node, ends, draw, leave_cycles=3 * node.layout.scan_ticks)
            await pager.start()
            processes += [Process(end, pager, draw, messages // (NODES * ENDPOINTS)) for end in ends]

        def over():
            return all(not one.budget and one.credits == CREDITS for one in processes)

        runs = []
        for one in processes:
            others = [other.end for other in processes if other.end.node is not one.end.node]
            runs.append(one.run(others, over))
        await cluster.world.gather(*runs)
        came, answered, back = (
            sum((getattr(one, name) for one in processes), Counter()) for name in ("came", "answered", "back")
        )
        assert came == answered and not came.keys() & back.keys()
        assert max(came.values()) == 1 and max(back.values(), default=1) == 1
        assert len(came) + len(back) == sum(one.sent for one in processes) == messages
        moves = sum(one.pager.moves for one in processes[::ENDPOINTS])
        assert moves > messages // 4, "more endpoints than frames, so pages move all the while"

    cluster.run(main(), limit=2_000_000_000)
