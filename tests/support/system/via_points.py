"""VIA from end to end on small cards: what must arrive. Coroutines of `test_via_firmware.py`, in the simulator."""

from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.firmware.via.layout import Reliability

from support.system.via_ends import PlainProcess, join, noise, pair, piece, segments, settle, start


async def messages(cluster, spec):
    """Messages of all sizes from node 0 to node 1 and back, at a level."""
    programs, agents = await start(cluster, **spec.get("config", {}))
    level = Reliability(spec["level"])
    a, b = await pair(agents, reliability=level)
    out, into = await a.process.allocate(4096), await b.process.allocate(4096)
    content = noise(1, 4096)
    out.buffer.write(content)
    found = []
    for size in spec["sizes"]:
        into.buffer.write(bytes(4096))
        expected = await b.expect(piece(into, 0, 4096))
        sent = await a.send(piece(out, 0, size), immediate=b"abcd" if spec.get("immediate") else None)
        told = await b.done(expected, receive=True), await a.done(sent)
        got = into.buffer.read()
        found.append(
            [
                size,
                *told,
                got[:size] == content[:size] and got[size:] == bytes(4096 - size),
                b.immediate(expected).decode("latin1") if spec.get("immediate") else None,
            ]
        )
    return {
        "found": found,
        "drops": [dict(program.drops) for program in programs],
        "cycle": cluster.clock.cycle,
    }


async def pieces(cluster, spec):
    """Gather from three places and scatter into three others, with long immediate data; and places that do not fit."""
    _, agents = await start(cluster, data_segments=4, immediate_bytes=16)
    a, b = await pair(agents)
    out, into = await a.process.allocate(4096), await b.process.allocate(4096)
    content = noise(2, 4096)
    out.buffer.write(content)
    expected = await b.expect(piece(into, 4000, 20), piece(into, 8, 300), piece(into, 1000, 500))
    sent = await a.send(
        piece(out, 100, 40), piece(out, 4, 200), piece(out, 2000, 150), immediate=bytes(range(12))
    )
    told = [await b.done(expected, receive=True), await a.done(sent)]
    whole = content[100:140] + content[4:204] + content[2000:2150]
    got = into.buffer.read()
    came = got[4000:4020] + got[8:308] + got[1000:1500]
    untouched = got[:8] + got[308:1000] + got[1500:4000] + got[4020:]
    odd = await a.send(piece(out, 0, 3), piece(out, 8, 8))  # the second piece would not begin at a word
    return {
        "told": told,
        "same": came[:390] == whole and not any(came[390:]) and not any(untouched),
        "immediate": list(b.immediate(expected)),
        "odd": await a.done(odd),
    }


async def rdma(cluster, spec):
    """RDMA of all kinds that are allowed, at a level: write of one packet and of many, with immediate data, read."""
    programs, agents = await start(cluster, **spec.get("config", {}))
    level = Reliability(spec["level"])
    a, b = await pair(agents, reliability=level, rdma_write=True, rdma_read=True)
    out, into = await a.process.allocate(2048), await b.process.allocate(2048)
    content = noise(3, 2048)
    found = {}

    def remote(at):
        return Segment(into.buffer.start + at, into.tag)

    for name, at, size in (("one", 12, 40), ("many", 100, 700), ("end", 2040, 8), ("none", 5, 0)):
        out.buffer.write(content)
        into.buffer.write(bytes(2048))
        place = at // 4 * 4
        told = await a.done(await a.send(piece(out, 4, size), op=Op.RDMA_WRITE, remote=remote(place)))
        await settle(a, b)
        got = into.buffer.read()
        whole = bytes(place) + content[4 : 4 + size]
        found[name] = [told, got == whole.ljust(2048, b"\0")]
    expected = await b.expect()
    sent = await a.send(piece(out, 0, 300), op=Op.RDMA_WRITE, remote=remote(0), immediate=b"word")
    found["immediate"] = [
        await b.done(expected, receive=True),
        await a.done(sent),
        b.immediate(expected) == b"word" and into.buffer.read(300) == content[:300],
    ]
    into.buffer.write(content)
    out.buffer.write(bytes(2048))
    read = await a.send(piece(out, 0, 500), op=Op.RDMA_READ, remote=remote(1000))
    after = await a.send(piece(out, 0, 500), op=Op.SEND, fence=True) if level else None
    expected = await b.expect(piece(into, 0, 500)) if level else None
    found["read"] = [await a.done(read), out.buffer.read(500) == content[1000:1500]]
    if level:
        found["behind"] = [
            await a.done(after),
            await b.done(expected, receive=True),
            into.buffer.read(500) == content[1000:1500],
        ]
    return {"found": found, "drops": [dict(program.drops) for program in programs]}


async def queues(cluster, spec):
    """Completion queues tell the ends of all descriptors in order, those that are flushed among them."""
    _, agents = await start(cluster)
    ends = []
    for agent in agents[:2]:
        process = PlainProcess(agent)
        queue = await process.queue()
        vi = await process.vi(
            reliability=Reliability(spec["level"]),
            send_completions=queue.number,
            receive_completions=queue.number if spec["both"] else None,
        )
        ends.append((vi, queue))
    (a, told), (b, arrived) = ends
    await join(a, b)
    out, into = await a.process.allocate(512), await b.process.allocate(512)
    found = []
    for _ in range(5):
        await b.expect(piece(into, 0, 300))
    for _ in range(4):
        await a.send(piece(out, 0, 300))
    for _ in range(4):
        one = await told.spin()
        found.append([one.status.name, one.bytes, one.descriptor, one.work_queue == a.channel])
    if spec["both"]:
        for _ in range(4):
            one = await arrived.spin()
            found.append(
                [one.status.name, one.bytes, one.descriptor - (1 << 15), one.work_queue == b.channel]
            )
    await b.close()
    if spec["both"]:
        one = await arrived.spin()
        found.append([one.status.name, one.bytes, one.descriptor - (1 << 15), one.work_queue == b.channel])
    return found


async def both_ways(cluster, spec):
    """Two VIs each way at once, with messages of many packets; and a process that rings what it never posted."""
    programs, agents = await start(cluster, **spec.get("config", {}))
    ends = [
        await pair(agents, connection=i, reliability=Reliability(level))
        for i, level in enumerate(spec["levels"])
    ]
    rogue = PlainProcess(agents[0])
    false = await rogue.vi() if spec["rogue"] else None
    content = noise(7, 1000)
    came = []

    async def talk(x, y, size):
        out, into = await x.process.allocate(1000), await y.process.allocate(1000)
        out.buffer.write(content)
        for _ in range(spec["messages"]):
            into.buffer.write(bytes(1000))
            expected = await y.expect(piece(into, 0, 1000))
            sent = await x.send(piece(out, 0, size))
            told = await y.done(expected, receive=True), await x.done(sent)
            came.append(told == (("OK", size), ("OK", size)) and into.buffer.read(size) == content[:size])

    done = []

    async def one(x, y, size):
        await talk(x, y, size)
        done.append(1)

    for i, (x, y) in enumerate(ends):
        cluster.clock.spawn(one(x, y, 1000 - i), "out")
        cluster.clock.spawn(one(y, x, 500 + i), "back")
    rings = 0
    while len(done) < 2 * len(ends):
        await cluster.clock.sleep(300)
        if false is not None:
            await rogue.page.ring(
                false.channel, cluster.random.randrange(1, 1 << 16), receive=bool(rings % 2)
            )
            rings += 1
    return {"came": came, "rings": rings, "drops": [dict(program.drops) for program in programs]}


async def order(cluster, spec):
    """Bursts of two VIs, by a doorbell each, in the order of the doorbells; while a message before them is sent."""
    _, agents = await start(cluster)
    a, b = await pair(agents)
    c, d = await a.process.vi(), await b.process.vi()
    await join(c, d, connection=9)
    out, into = await a.process.allocate(2048), await b.process.allocate(2048)
    for end in (b, d):
        for _ in range(4):
            await end.expect(piece(into, 0, 2048))
    went = []

    async def watch(name, vi, index):
        await vi.done(index)
        went.append(name)

    first = await a.send(piece(out, 0, 2048))
    for name, vi in (("c", c), ("a", a)):
        for _ in range(3):
            index = await vi.post(Descriptor(segments=segments([piece(out, 0, 8)])), ring=False)
            cluster.clock.spawn(watch(name, vi, index), "watch")
        await vi.ring()
    await a.done(first)
    while len(went) < 6:
        await cluster.clock.sleep(500)
    return went
