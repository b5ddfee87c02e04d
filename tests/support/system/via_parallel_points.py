"""The parallel designs of VIA from end to end on small cards: coroutines of `test_via_parallel.py`."""

from __future__ import annotations

from lanikai.firmware.via.descriptor import Descriptor
from lanikai.firmware.via.shadow import SHADOW_BYTES, SHADOW_SLOTS, pack_shadow
from lanikai.firmware.via.trace import Stage

from support.system.via_ends import PlainProcess, PlainVi, Reliability, join, noise, piece, segments, start

ROOM = 1024


def stages(program):
    """Spans of each message of a program: [channel, receive, number, [[stage, begin, end], ...]]."""
    return [
        [one.channel, one.receive, one.number, [[span.stage, span.begin, span.end] for span in one.spans]]
        for one in program.trace
    ]


class ShadowVi(PlainVi):
    """A VI whose queues have shadows, at `place` of its process' window."""

    def __init__(self, process, place, **record):
        super().__init__(process, **record)
        self.place = place
        window = self.layout.window(process.owner)
        self.record |= {
            "send_shadow": window + place,
            "receive_shadow": window + place + SHADOW_BYTES * SHADOW_SLOTS,
        }

    async def post(self, descriptor, *, receive=False, ring=True):
        """As `PlainVi.post`; into the shadow, too, if it is free."""
        index = self.posted[receive]
        free = index < SHADOW_SLOTS or self.status(index - SHADOW_SLOTS, receive=receive) is not None
        assert isinstance(descriptor, Descriptor)
        if free and (words := pack_shadow(descriptor, index)):
            slot = SHADOW_BYTES * (index % SHADOW_SLOTS + SHADOW_SLOTS * receive)
            await self.process.page.shadow(self.place + slot, words)
        return await super().post(descriptor, receive=receive, ring=ring)


async def open_vis(processes, count, *, shadows, **record):
    """`count` pairs of connected VIs between two processes."""
    pairs = []
    if shadows:
        for process in processes:
            layout = process.agent.layout
            await process.agent.set_up(
                ("SHADOW_ADDRESS", {"address": layout.window(process.owner)}),
                ("SHADOW_WINDOW", {"owner": process.owner, "bytes": layout.window_bytes}),
            )
    for i in range(count):
        ends = []
        for process in processes:
            vi = (
                ShadowVi(process, 2 * SHADOW_BYTES * SHADOW_SLOTS * i, **record)
                if shadows
                else PlainVi(process, **record)
            )
            await vi.open()
            ends.append(vi)
        await join(*ends)
        pairs.append(ends)
    return pairs


async def both_ways(cluster, spec):
    """Two cards that send to each other by several VIs at once, as fast as their queues take it.

    Each VI sends `count` messages of sizes that repeat, and keeps as many descriptors posted to receive as its queue
    holds. Returns what has come, by VI and in order.
    """
    programs, agents = await start(cluster, **spec["config"])
    level = Reliability(spec["level"])
    processes = [PlainProcess(agent) for agent in agents[:2]]
    shadows = spec["config"].get("descriptors") == "shadow"
    record = {"reliability": level, "vtick": spec.get("vtick", 0)}
    pairs = await open_vis(processes, spec["vis"], shadows=shadows, **record)
    areas = []
    for process in processes:
        areas.append([await process.allocate(ROOM), await process.allocate(ROOM * 4)])
        areas[-1][0].buffer.write(noise(process.agent.bus.node, ROOM))
    sizes, count, entries = spec["sizes"], spec["count"], agents[0].config.queue_entries
    good, wrong = [], []
    flag = cluster.clock.flag()

    async def sends(mine, vi):
        """Post all messages, as many at a time as the queue holds."""
        posted = []
        for i in range(count):
            if i >= entries:
                status = await vi.done(posted[i - entries])
                if status != ("OK", sizes[(i - entries) % len(sizes)]):
                    wrong.append(["sent", i - entries, status])
            size = sizes[i % len(sizes)]
            posted.append(await vi.send(piece(areas[mine][0], 4 * (i % 8), size)))
        for i in range(max(0, count - entries), count):
            status = await vi.done(posted[i])
            if status != ("OK", sizes[i % len(sizes)]):
                wrong.append(["sent", i, status])
        await over()

    async def receives(mine, vi, posted):
        """Take all messages, one buffer after the other."""
        content = noise(1 - mine, ROOM)
        for i in range(count):
            status = await vi.done(posted[i], receive=True)
            size = sizes[i % len(sizes)]
            at = i % 4 * ROOM
            got = areas[mine][1].buffer.read()[at : at + size]
            if status != ("OK", size) or got != content[4 * (i % 8) :][:size]:
                wrong.append(["received", i, status])
            if i + entries < count:
                posted.append(await vi.expect(piece(areas[mine][1], (i + entries) % 4 * ROOM, ROOM)))
        await over()

    async def over():
        good.append(1)
        if len(good) == 4 * len(pairs):
            flag.set()

    waiting = []
    for ends in pairs:
        for mine, vi in enumerate(ends):
            posted = [
                await vi.expect(piece(areas[mine][1], i % 4 * ROOM, ROOM)) for i in range(min(entries, count))
            ]
            waiting.append((mine, vi, posted))
    begin = cluster.clock.cycle
    for mine, vi, posted in waiting:
        cluster.clock.spawn(receives(mine, vi, posted), f"receives {mine}")
        cluster.clock.spawn(sends(mine, vi), f"sends {mine}")
    await flag.wait()
    cycles = cluster.clock.cycle - begin
    # The firmware has a step or two left when the host has seen the last end.
    await cluster.clock.sleep(5000)
    return {
        "wrong": wrong,
        "cycles": cycles,
        "drops": [dict(program.drops) for program in programs],
        "sent": [program.context.sent for program in programs],
        "pending": [program.pending for program in programs],
        "stages": [stages(program) for program in programs] if spec.get("stages") else None,
        "spent": [dict(program.processors[0].steps_taken) for program in programs],
    }


async def bursts(cluster, spec):
    """Bursts of messages by one VI, each with one doorbell, the next when all of the one before are done.

    Returns for each message of the sender whether it had a descriptor's DMA of its own, and cycles of each burst.
    """
    programs, agents = await start(cluster, **spec["config"])
    processes = [PlainProcess(agent) for agent in agents[:2]]
    shadows = spec["config"].get("descriptors") == "shadow"
    ((a, b),) = await open_vis(processes, 1, shadows=shadows)
    out, into = await a.process.allocate(ROOM), await b.process.allocate(ROOM)
    out.buffer.write(noise(4, ROOM))
    burst, size, cycles, same = spec["burst"], spec["bytes"], [], []
    for _ in range(spec["bursts"]):
        into.buffer.write(bytes(ROOM))
        expected = [await b.expect(piece(into, size * i, size)) for i in range(burst)]
        await cluster.clock.sleep(4000)
        begin = cluster.clock.cycle
        sent = [await a.post(descriptor(out, size * i, size), ring=i == burst - 1) for i in range(burst)]
        told = [await b.done(one, receive=True) for one in expected] + [await a.done(one) for one in sent]
        cycles.append(cluster.clock.cycle - begin)
        same.append(into.buffer.read()[: size * burst] == noise(4, ROOM)[: size * burst])
        if any(one != ("OK", size) for one in told):
            raise AssertionError(told)
    await cluster.clock.sleep(4000)
    own = [
        [
            bool(one.of(Stage.DESCRIPTOR))
            for one in program.trace
            if one.channel == vi.channel and one.receive == way
        ]
        for program, vi, way in ((programs[0], a, False), (programs[1], b, True))
    ]
    return {"own": own, "cycles": cycles, "same": all(same), "drops": [dict(one.drops) for one in programs]}


def descriptor(region, at, size):
    return Descriptor(segments=segments([piece(region, at, size)]))


async def declared(cluster, spec):
    """Messages by two VIs, while few and while many are declared: processor time a message, and its cycles."""
    import time

    _, agents = await start(cluster, **spec["config"])
    processes = [PlainProcess(agent) for agent in agents[:2]]
    pairs = await open_vis(processes, 2, shadows=False)
    out, into = await processes[0].allocate(ROOM), await processes[1].allocate(ROOM)
    found = {}
    opened = 2
    for count in spec["declared"]:
        while opened < count:
            for process in processes:
                await process.vi()
            opened += 1
        seconds, cycles = [], []
        for _ in range(spec["messages"]):
            begin, first = time.process_time(), cluster.clock.cycle
            for a, b in pairs:
                expected = await b.expect(piece(into, 0, 128))
                sent = await a.send(piece(out, 0, 128))
                await b.done(expected, receive=True)
                await a.done(sent)
            seconds.append(time.process_time() - begin)
            cycles.append(cluster.clock.cycle - first)
        # The middle one: another process of the machine may take time from some.
        found[str(count)] = [sorted(seconds)[len(seconds) // 2], sorted(cycles)[len(cycles) // 2]]
    return found


async def overtake(cluster, spec):
    """Two VIs without a rate have two messages each to send, then one with a rate has one: the order of arrival."""
    _, agents = await start(cluster, **spec["config"])
    processes = [PlainProcess(agent) for agent in agents[:2]]
    pairs = await open_vis(processes, 2, shadows=False)
    pairs += await open_vis(processes, 1, shadows=False, vtick=50, most_bytes=112)
    out, into = await processes[0].allocate(ROOM), await processes[1].allocate(ROOM)
    counts = (2, 2, 1)
    expected = [
        [await b.expect(piece(into, 0, 112)) for _ in range(count)]
        for (_, b), count in zip(pairs, counts, strict=True)
    ]
    came = []
    over = cluster.clock.flag()

    async def notes(which):
        for index in expected[which]:
            await pairs[which][1].done(index, receive=True)
            came.append(which)
        if len(came) == sum(counts):
            over.set()

    for which in range(3):
        cluster.clock.spawn(notes(which), f"notes {which}")
    for (a, _), count in zip(pairs, counts, strict=True):
        for i in range(count):
            await a.post(descriptor(out, 0, 112), ring=i == count - 1)
    await over.wait()
    return came
