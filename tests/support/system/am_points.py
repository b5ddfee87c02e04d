"""Virtual networks' firmware from end to end on the cards of chun-1998. Coroutines of `test_am_firmware.py`, in the
simulator."""

import numpy as np
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.program import AmProgram
from lanikai.firmware.am.wire import MessageKind
from lanikai.firmware.am.words import CommandKind, Entry

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
