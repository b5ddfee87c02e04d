"""Virtual networks' firmware from end to end on the cards of chun-1998. Coroutines of `test_am_firmware.py`, in the
simulator."""

import random

import numpy as np
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.program import AmProgram
from lanikai.firmware.am.wire import MessageKind
from lanikai.firmware.am.words import CommandKind, Counts, Entry

from support.firmware.am_host import AmHost, Endpoint


async def start(cluster, **changes):
    """Firmware and a bare driver on each node."""
    nic = cluster.config.nic
    config = VirtualNetworkConfig.for_nic(nic, **changes)
    hosts = []
    for node in cluster.nodes:
        others = [other.number for other in cluster.nodes if other is not node]
        routes = {other: cluster.network.source_route(node.number, other) for other in others}
        program = AmProgram(node, node=node.number, nic=nic, routes=routes, config=config)
        program.start()
        cluster.observe(program)
        host = AmHost(node.host, node.number, program.layout)
        host.program = program
        await host.set_ring()
        hosts.append(host)
    return hosts


async def gather(cluster, *coroutines):
    """Run coroutines side by side."""
    left, done = len(coroutines), cluster.clock.flag()

    async def one(coroutine):
        nonlocal left
        await coroutine
        left -= 1
        if not left:
            done.set()

    for place, coroutine in enumerate(coroutines):
        cluster.clock.spawn(one(coroutine), f"gather[{place}]")
    await done.wait()


async def exchange(cluster, spec):
    """Messages of all kinds both ways between two endpoints, while a third one's page moves in and out."""
    left, right = await start(cluster, **spec.get("config", {}))
    size = left.layout.data_bytes
    one = Endpoint(left, 1, tag=11, segment_bytes=4 * size)
    other = Endpoint(right, 2, tag=22, segment_bytes=4 * size)
    moved = Endpoint(left, 3, tag=33)
    await left.load(one, 1)
    await right.load(other, 1)
    clock = cluster.clock
    same, trips = [], []
    pages, stop = 0, False

    async def talk():
        nonlocal stop
        for number in range(spec["messages"]):
            begin = clock.cycle
            await one.post(Entry(node=1, endpoint=2, tag=22, reference=number, words=(1, 2, 3, number)))
            entry, _ = await other.receive(False)
            same.append(entry.words == (1, 2, 3, number))
            await other.post(Entry(node=0, endpoint=1, tag=entry.tag, reply=True, reference=number))
            entry, _ = await one.receive(True)
            same.append(entry.reference == number)
            trips.append(clock.cycle - begin)
        noise = np.random.default_rng(spec["seed"]).integers(0, 256, size, np.uint8).tobytes()
        for kind in (MessageKind.MEDIUM, MessageKind.BULK):
            for length in spec["sizes"]:
                length = min(length, size)
                offset = size if kind is MessageKind.BULK else 0
                head = {"kind": kind, "bytes": length, "offset": offset, "words": (length,)}
                await one.post(Entry(node=1, endpoint=2, tag=22, **head), noise[:length])
                _, data = await other.receive(False)
                same.append(data == noise[:length])
                back = noise[-length:]
                await other.post(Entry(node=0, endpoint=1, tag=11, reply=True, **head), back)
                _, data = await one.receive(True)
                same.append(data == back)
        stop = True

    async def page():
        nonlocal pages
        while not stop:
            await left.load(moved, 2)
            await left.unload(moved)
            pages += 1

    await gather(cluster, talk(), page())
    await left.ask(CommandKind.KILL, endpoint=1)
    await clock.sleep(20_000)
    return {
        "same": same,
        "trips": trips,
        "pages": pages,
        "pending": [host.program.pending for host in (left, right)],
        "drops": [dict(host.program.shared.drops) for host in (left, right)],
        "steps": [dict(host.program.processor.steps_taken) for host in (left, right)],
        "spent": [dict(host.program.processor.cycles_spent) for host in (left, right)],
        "cycle": clock.cycle,
    }


async def hostile(cluster, spec):
    """A process writes words at random into its page and its doorbell. Two others exchange requests, 4 at once.

    Half of the writes are words anywhere, some are entries that make nearly sense, some are doorbell words.
    """
    left, right = await start(cluster)
    rng, clock = random.Random(spec["seed"]), cluster.clock
    bad, good = Endpoint(left, 1, tag=rng.getrandbits(32)), Endpoint(left, 2, tag=5)
    peer, idle = Endpoint(right, 3, tag=rng.getrandbits(32)), Endpoint(right, 4, tag=7)
    for end, frame in ((bad, 1), (good, 2), (peer, 1), (idle, 2)):
        await end.node.load(end, frame)
    layout = left.layout
    frame = left.program.shared.frames[bad.frame]
    page, words = layout.frame(bad.frame), layout.config.page_bytes // 4
    written, stop, same, rounds = 0, False, [], []

    async def talk():
        begin = clock.cycle
        for first in range(0, 40, 4):
            numbers = range(first, first + 4)
            for number in numbers:
                await good.post(Entry(node=1, endpoint=3, tag=peer.tag, reference=number, words=(number,)))
            came = [(await peer.receive(False))[0] for _ in numbers]
            same.append(sorted(entry.words[0] for entry in came) == [*numbers])
            same.append(all((entry.node, entry.endpoint) == (0, 2) for entry in came))
            for entry in came:
                reply = Entry(node=0, endpoint=2, tag=entry.tag, reply=True, reference=entry.reference)
                await peer.post(reply)
            back = [(await good.receive(True))[0] for _ in numbers]
            same.append(
                sorted((entry.reference, entry.status) for entry in back) == [(one, 0) for one in numbers]
            )
        return clock.cycle - begin

    async def write(address, data):
        nonlocal written
        written += 1
        await left.host.write(address, data)

    async def attack():
        nonlocal stop, written
        while written < spec["writes"]:
            kind = rng.random()
            if kind < 0.6:
                await write(page + 4 * rng.randrange(words), rng.getrandbits(32))
            elif kind < 0.65:
                node, number = rng.choice([(1, 3), (1, 4), (0, 2), (1, 9), (3, 3)])
                size, queue = rng.choice([0, 4, 8192, 65535]), rng.randrange(4)
                entry = Entry(node=node, endpoint=number, kind=MessageKind(rng.randrange(3)), bytes=size)
                at = page + layout.entry(queue, rng.randrange(layout.config.queue_entries))
                for place, word in enumerate(entry.pack()):
                    await write(at + 4 * place, word)
            else:
                written += 1
                await bad.ring_word(_doorbell_word(rng, frame))
        stop = True

    async def talks():
        while not stop:
            rounds.append(await talk())

    alone = await talk()
    others = [right.get_bytes(end.record, 64) for end in (peer, idle)], right.get_bytes(idle.page, 4 * words)
    await gather(cluster, attack(), talks())
    after = [right.get_bytes(end.record, 64) for end in (peer, idle)], right.get_bytes(idle.page, 4 * words)
    refused, served, idle_has = frame.refused, frame.activity, await idle.delivered()
    await left.unload(bad)
    rounds.append(await talk())
    await left.unload(good)
    await clock.sleep(20_000)
    return {
        "writes": written,
        "same": all(same),
        "alone": alone,
        "rounds": rounds,
        "untouched": others == after and idle_has == (0, 0),
        "refused": refused,
        "served": served,
        # No driver here has given the card a ring: what it has to tell waits for one.
        "pending": left.program.pending - left.program.notices.waiting,
        "cycle": clock.cycle,
    }


def _doorbell_word(rng, frame):
    """A doorbell word of a frame: mostly one that can be."""
    if rng.random() < 0.3:
        return rng.getrandbits(31)
    sends = [(queue.posted, queue.entries - queue.open) for queue in frame.sends]
    receives = [(queue.consumed, queue.waiting) for queue in frame.receives]
    counts = [count + rng.randrange(more + 1) for count, more in [*sends, *receives]]
    return Counts(
        requests_posted=counts[0],
        replies_posted=counts[1],
        requests_consumed=counts[2],
        replies_consumed=counts[3],
    ).word()
