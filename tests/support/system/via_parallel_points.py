"""The parallel designs of VIA from end to end on small cards: coroutines of `test_via_parallel.py`."""

from __future__ import annotations

from support.system.via_ends import PlainProcess, Reliability, join, noise, piece, start

ROOM = 1024


def stages(program):
    """Spans of each message of a program: [channel, receive, number, [[stage, begin, end], ...]]."""
    return [
        [one.channel, one.receive, one.number, [[span.stage, span.begin, span.end] for span in one.spans]]
        for one in program.trace
    ]


async def both_ways(cluster, spec):
    """Two cards that send to each other by several VIs at once, as fast as their queues take it.

    Each VI sends `count` messages of sizes that repeat, and keeps as many descriptors posted to receive as its queue
    holds. Returns what has come, by VI and in order.
    """
    programs, agents = await start(cluster, **spec["config"])
    level = Reliability(spec["level"])
    processes = [PlainProcess(agent) for agent in agents[:2]]
    pairs = []
    for _ in range(spec["vis"]):
        ends = [await process.vi(reliability=level, vtick=spec.get("vtick", 0)) for process in processes]
        await join(*ends)
        pairs.append(ends)
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
    return {
        "wrong": wrong,
        "cycles": cluster.clock.cycle - begin,
        "drops": [dict(program.drops) for program in programs],
        "sent": [program.context.sent for program in programs],
        "pending": [program.pending for program in programs],
        "stages": [stages(program) for program in programs] if spec.get("stages") else None,
        "spent": [dict(program.processors[0].steps_taken) for program in programs],
    }
