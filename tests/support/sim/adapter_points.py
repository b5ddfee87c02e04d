"""Coroutines of tests of adapter networks, inside their simulations."""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Mapping
from typing import Any

from lanikai.hdl.hca.driver_port import HCA_REGISTERS
from lanikai.sim.host.hca.adapters import Adapters
from lanikai.sim.inside import native_api
from lanikai.sim.systems.adapters.network import AdapterNetwork

BUFFERS = 64
"""Receive buffers of a host: more than can arrive before it posts them again."""
HOSTILE = 2
"""The page of a process that writes anything into it."""


async def idle(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Nothing happens."""
    await system.clock.sleep(200)
    return system.settled


async def example(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Run the coroutine `measure` of a text."""
    names: dict[str, Any] = {}
    exec(spec["text"], names)
    return await names["measure"](system, spec)


async def told(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Host 0 sends 8 messages to host 1, which waits for each; nobody waits for the ends of the sends.

    Returns those of which Python was told, and the ends of sends that were found when all was over.
    """
    adapters = Adapters(system)
    await adapters.start()
    pairs, queues = [], []
    for driver in adapters.drivers[:2]:
        sends, arrivals = [await driver.create_completion_queue(owner=1, entries=32) for _ in range(2)]
        pair = await driver.create_queue_pair(
            owner=1,
            traffic_class=0,
            vls=(0,),
            send_completions=sends,
            receive_completions=arrivals,
            send_entries=8,
            receive_entries=8,
        )
        pairs.append(pair)
        queues.append((sends, arrivals))
    first, second = adapters.drivers[:2]
    source = await first.register(1, first.allocate(1, 64), writable=False)
    sink = await second.register(1, second.allocate(1, 64))
    for tag in range(8):
        pairs[1].receive(sink, sink.start, 64, tag=tag)
    for _ in range(8):
        pairs[0].send(source, source.start, 16, vl=0, destination=1, destination_qp=pairs[1].number)
        (one,) = await queues[1][1].wait()
        assert one.ok
    await system.settle()
    return [system.told, len(queues[0][0].poll())]


async def workload(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Each host sends `messages` to random others, of random lengths. Every byte is checked, and the order.

    With `hostile_writes` another process of each host writes so many random words into its own page meanwhile. It has a
    queue pair, a completion queue and a region of its own.

    Returns for each receive completion (node, source, source QP, bytes, tag, hash of the bytes), in order, and the
    cycle of the last one.
    """
    if spec.get("check"):
        native_api.check_quiet()
    config = system.config.hca
    nodes = range(len(system.hosts))
    adapters = Adapters(system)
    await adapters.start()
    found: list[Any] = []
    left = [spec["messages"] * len(nodes)]
    most = config.payload_bytes
    sent: dict[tuple[int, int], deque[bytes]] = {}

    async def host(node: int) -> None:
        r = random.Random(system.seed * 1000 + node)
        driver = adapters.drivers[node]
        port = system.hosts[node]
        queue = await driver.create_completion_queue(owner=1, entries=64)
        pair = await driver.create_queue_pair(
            owner=1,
            traffic_class=node % config.classes,
            vls=range(min(15, config.link.vls)),
            send_completions=queue,
            receive_completions=queue,
            send_entries=8,
            receive_entries=BUFFERS,
        )
        slot = -(-most // 16) * 16
        out = await driver.register(1, driver.allocate(1, 8 * slot), writable=False)
        into = await driver.register(1, driver.allocate(1, BUFFERS * slot))
        free, place = deque(range(8)), {}
        for i in range(BUFFERS):
            pair.receive(into, into.start + i * slot, slot, tag=i)
        if spec.get("hostile_writes"):
            own = await driver.create_completion_queue(owner=HOSTILE, entries=2)
            await driver.create_queue_pair(
                owner=HOSTILE,
                traffic_class=config.classes - 1,
                vls=(0,),
                send_completions=own,
                receive_completions=own,
                send_entries=4,
                receive_entries=4,
            )
            await driver.register(HOSTILE, driver.allocate(HOSTILE, 4096))
            system.clock.spawn(attack(node), f"attacker {node}")
        ready[0] += 1
        if ready[0] == len(nodes):
            go.set()
        await go.wait()

        async def send() -> None:
            for n in range(spec["messages"]):
                while not (free and pair.send_room):
                    await system.clock.sleep(20)
                there = r.choice([one for one in nodes if one != node])
                length = r.randint(0, most)
                content = r.randbytes(length)
                at = free.popleft() * slot
                out.buffer.write(content, at)
                sent.setdefault((node, there), deque()).append(content)
                tag, _ = pair.send(
                    out,
                    out.start + at,
                    length,
                    # One VL for each pair of nodes: their messages stay in order.
                    vl=(node * 7 + there) % min(15, config.link.vls),
                    destination=there,
                    destination_qp=pair.number,
                    immediate=n if n % 2 else None,
                )
                place[tag] = at // slot
                await system.clock.sleep(r.randrange(1, spec["gap_cycles"]))

        system.clock.spawn(send(), f"sender {node}")
        while True:
            for one in await queue.wait():
                if not one.ok:
                    raise AssertionError(f"node {node}: {one}")
                if not one.receive:
                    free.append(place.pop(one.tag))
                    continue
                content = into.buffer.read(one.bytes, one.tag * slot)
                wanted = sent[one.source, node]
                if not wanted or content != wanted.popleft():
                    raise AssertionError(f"node {node}: {one.bytes} bytes of {one.source} that were not next")
                digest = hashlib.sha256(content).hexdigest()[:8]
                found.append([node, one.source, one.source_qp, one.bytes, one.tag, digest, port.now])
                pair.received += 1
                pair.receive(into, into.start + one.tag * slot, slot, tag=one.tag)
                left[0] -= 1

    async def attack(node: int) -> None:
        r = random.Random(system.seed * 1000 + 500 + node)
        driver, port = adapters.drivers[node], system.hosts[node]
        await go.wait()
        names = [*driver.queue_pairs, *driver.completion_queues]
        for _ in range(spec["hostile_writes"]):
            word = r.choice([*range(3), *range(8, 16), r.randrange(1024)])
            value = r.getrandbits(32)
            if r.random() < 0.7:
                # Things that are there, of others and its own.
                value = r.choice(names) | r.choice([r.getrandbits(16), r.randrange(16)]) << 16
            await port.write(HOSTILE, word, value)
            if r.random() < 0.3:
                await system.clock.sleep(r.randrange(1, 8))

    ready, go = [0], system.clock.flag()
    for node in nodes:
        system.clock.spawn(host(node), f"host {node}")
    limit = system.clock.cycle + spec.get("limit_cycles", 1_000_000)
    while left[0]:
        await system.clock.sleep(500)
        if system.clock.cycle > limit:
            raise AssertionError(f"{left[0]} messages have not arrived; {await _counts(adapters)}")
    await system.settle()
    return found


async def _counts(adapters: Adapters) -> list[dict[str, int]]:
    """The counters of all adapters that are not 0."""
    found = []
    for driver in adapters.drivers:
        counts = {name: (await driver.port.registers.read(name)) for name in HCA_REGISTERS if "_" in name}
        found.append({name: value for name, fields in counts.items() for value in fields.values() if value})
    return found
