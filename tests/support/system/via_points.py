"""VIA from end to end on small cards: coroutines of `test_via_firmware.py`, run in the simulator."""

from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.firmware.via.layout import Reliability

from support.system.via_ends import PlainProcess, join, noise, pair, piece, segments, start

LEVELS = tuple(Reliability)


async def messages(cluster, spec):
    """Messages of all sizes from node 0 to node 1 and back, at a level."""
    programs, agents = await start(cluster)
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
    programs, agents = await start(cluster)
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


async def settle(a, b):
    """Wait until all that `a` has sent has been taken in by `b`: a message on the same VI."""
    expected = await b.expect()
    await a.done(await a.send())
    await b.done(expected, receive=True)


async def refusals(cluster, spec):
    """All that is refused, at a level: each case on a new connection.

    Returns how both ends' descriptors end, and whether the target's memory is as it was.
    """
    programs, agents = await start(cluster)
    level = Reliability(spec["level"])
    a, b = await pair(agents, reliability=level, rdma_write=True, rdma_read=True)
    other = PlainProcess(agents[1])
    out, into = await a.process.allocate(2048), await b.process.allocate(2048)
    gone = await b.process.allocate(64)
    await agents[1].regions.deregister(gone)
    read_only = await b.process.allocate(64, writable=False)
    foreign, closed = await other.allocate(64), await b.process.allocate(64, rdma=False)
    content = noise(4, 2048)
    out.buffer.write(content)
    regions = (into, read_only, foreign, closed)
    for region in regions:
        region.buffer.write(b"\xee" * region.buffer.length)
    found = {}

    async def case(name, expected, send, count):
        """`expected`: the buffer posted to receive, None for none; `send`: what is sent; `count`: the drop's name."""
        nonlocal connection
        before = [program.drops.copy() for program in programs]
        received = None if expected is None else await b.post(expected, receive=True)
        sent = await a.post(send)
        told = await a.done(sent)
        if level == 0 and count is not None and count != "local":
            while sum((programs[1].drops - before[1]).values()) == 0:
                await cluster.clock.sleep(200)
            if count == "descriptor":  # counted before its end is told
                await b.done(received, receive=True)
        drops = dict(programs[1].drops - before[1])
        broken = [0, 0]
        if level:
            for i, (end, agent) in enumerate(((a, agents[0]), (b, agents[1]))):
                for _ in range(100):
                    if end.channel in agent.broken_vis:
                        break
                    await cluster.clock.sleep(200)
                broken[i] = agent.broken_vis.pop(end.channel, None)
        into_told = None if received is None else b.status(received, receive=True)
        intact = all(not region.buffer.read().strip(b"\xee") for region in regions)
        found[name] = [told[0], None if into_told is None else into_told[0], broken, drops, intact]
        connection += 1
        for end in (a, b):
            await end.close()
        for end in (a, b):
            await end.open()
        await join(a, b, connection=connection)

    connection = 1

    def to(region, at=0, tag=None):
        return Segment(region.buffer.start + at, region.tag if tag is None else tag)

    def write(remote, size=8, **fields):
        return Descriptor(op=Op.RDMA_WRITE, segments=segments([piece(out, 0, size)]), remote=remote, **fields)

    def read(remote, size=8):
        return Descriptor(op=Op.RDMA_READ, segments=segments([piece(out, 0, size)]), remote=remote)

    plain = Descriptor(segments=segments([piece(out, 0, 100)]))
    large = Descriptor(segments=segments([piece(out, 0, 900)]))
    room = Descriptor(segments=segments([piece(into, 0, 100)]))
    await case("nothing posted", None, plain, "no descriptor")
    await case("nothing posted, many packets", None, large, "no descriptor")
    await case("too small", Descriptor(segments=segments([piece(into, 0, 99)])), plain, "descriptor")
    await case(
        "too small, many packets", Descriptor(segments=segments([piece(into, 0, 899)])), large, "descriptor"
    )
    await case("bad format", Descriptor(segments=room.segments, reserved_bits=1 << 9), plain, "descriptor")
    await case(
        "foreign buffer",
        Descriptor(segments=segments([piece(foreign, 0, 64)])),
        Descriptor(segments=segments([piece(out, 0, 60)])),
        "descriptor",
    )
    await case("write: wrong key", None, write(to(into, tag=into.tag ^ 0x100)), "remote access")
    await case("write: foreign", None, write(to(foreign)), "remote access")
    await case("write: deregistered", None, write(to(gone)), "remote access")
    await case("write: read only", None, write(to(read_only)), "remote access")
    await case("write: not enabled", None, write(to(closed)), "remote access")
    await case("write: past the end", None, write(to(into, 2040), 9), "remote access")
    await case("write: past the end, many packets", None, write(to(into, 1148), 901), "remote access")
    await case("write: before the start", None, write(to(into, -4), 8), "remote access")
    await case("write: immediate, none posted", None, write(to(into), immediate=b"word"), "no descriptor")
    if level:
        await case("read: wrong key", None, read(to(into, tag=into.tag ^ 0x100)), "remote access")
        await case("read: foreign", None, read(to(foreign)), "remote access")
        await case("read: past the end", None, read(to(into, 2040), 9), "remote access")
        await case("read: past the end, many packets", None, read(to(into, 1148), 901), "remote access")
        await case("read: not enabled", None, read(to(closed)), "remote access")
    else:
        await case("read", None, read(to(into)), "local")
    await case(
        "own buffer foreign",
        None,
        Descriptor(segments=(Segment(out.buffer.start, out.tag ^ 0x100, 8),)),
        "local",
    )
    await case("own length wrong", None, Descriptor(segments=plain.segments, length=7), "local")
    await case("own format", None, Descriptor(segments=plain.segments, reserved_bits=1 << 12), "local")
    expected = await b.expect(piece(into, 0, 100))
    sent = await a.post(plain)
    found["afterwards"] = [
        await b.done(expected, receive=True),
        await a.done(sent),
        into.buffer.read(100) == content[:100],
    ]
    return found


async def deaths(cluster, spec):
    """The other end says nothing: its VI is closed, and its card is as if dead. Messages end in bounded time, others
    go on."""
    programs, agents = await start(cluster, patience_us=300)
    a, b = await pair(agents, reliability=Reliability(spec["level"]))
    c = await a.process.vi()
    d = await b.process.vi()
    await join(c, d, connection=9)
    out, into = await a.process.allocate(512), await b.process.allocate(512)
    await a.expect(piece(out, 0, 64))
    await b.close()
    begin = cluster.clock.cycle
    sent = [await a.send(piece(out, 0, 8)) for _ in range(3)]
    expected = await d.expect(piece(into, 0, 64))
    await c.done(await c.send(piece(out, 0, 64)))
    aside = await d.done(expected, receive=True), cluster.clock.cycle - begin
    told = [(await a.done(one))[0] for one in sent]
    took = cluster.clock.cycle - begin
    late = await a.done(await a.send(piece(out, 0, 8)))
    for _ in range(100):
        if a.channel in agents[0].broken_vis:
            break
        await cluster.clock.sleep(100)
    return {
        "told": told,
        "received": a.status(0, receive=True),
        "took": took,
        "late": late,
        "aside": aside,
        "broken": agents[0].broken_vis.get(a.channel),
        "drops": dict(programs[1].drops),
        "pending": programs[0].pending,
    }


async def closing(cluster, spec):
    """A VI is closed while messages are under way, and begins anew: nothing of before is told or heard."""
    programs, agents = await start(cluster)
    a, b = await pair(agents, reliability=Reliability(spec["level"]))
    out, into = await a.process.allocate(2048), await b.process.allocate(2048)
    told, rng = [], cluster.random
    for turn in range(spec["turns"]):
        expected = [await b.expect(piece(into, 512 * i, 512)) for i in range(4)]
        sent = [await a.send(piece(out, 0, 400)) for _ in range(4)]
        await cluster.clock.sleep(rng.randrange(1, 6000))
        first, second = (a, b) if rng.random() < 0.5 else (b, a)
        await first.close()
        await second.close()
        told += [a.status(one) is None for one in sent] + [
            b.status(one, receive=True) is None for one in expected
        ]
        names = [(a.status(one) or ("none",))[0] for one in sent]
        told.append(sorted(set(names)))
        before = [ring.data.copy() for end in (a, b) for ring in end.rings]
        await cluster.clock.sleep(3000)
        after = [ring.data for end in (a, b) for ring in end.rings]
        told.append(all((x == y).all() for x, y in zip(before, after, strict=True)))
        for end in (a, b):
            await end.open()
        for agent in agents:
            agent.broken_vis.clear()
        await join(a, b, connection=turn + 2)
        expected = await b.expect(piece(into, 0, 64))
        sent = await a.send(piece(out, 0, 64))
        told.append([(await a.done(sent))[0], (await b.done(expected, receive=True))[0]])
    return {
        "told": told,
        "under way": [sum(len(vi.under_way) for vi in p.context.vis.values()) for p in programs],
    }


async def attacks(cluster, spec):
    """Random RDMA by node 0 at memory of node 1, while another process of node 1 is at work with one of node 0.

    A model says what may be: all memory of node 1 but rings, tables and the agent's is compared with it at the end, and
    now and then between.
    """
    programs, agents = await start(cluster, patience_us=2000)
    rng, tries, level = cluster.random, spec["tries"], Reliability(spec["level"])
    a, b = await pair(agents, reliability=level, rdma_write=True, rdma_read=True)
    friend, other = PlainProcess(agents[0]), PlainProcess(agents[1])
    c, d = await friend.vi(), await other.vi()
    await join(c, d, connection=77)
    out, plain = await a.process.allocate(1024), await friend.allocate(512)
    gone = await b.process.allocate(256)
    await agents[1].regions.deregister(gone)
    target = await b.process.allocate(1000)
    hidden = await b.process.allocate(256, rdma=False)
    foreign = await other.allocate(512)
    out.buffer.write(noise(6, 1024))
    regions = {"target": target, "hidden": hidden, "foreign": foreign}
    memory = {}
    for name, region in regions.items():
        memory[name] = bytearray(noise(name, region.buffer.length))
        region.buffer.write(bytes(memory[name]))
    connection, counts, at_work = 1, {"allowed": 0, "refused": 0}, 0

    def same():
        return all(region.buffer.read() == bytes(memory[name]) for name, region in regions.items())

    for turn in range(tries):
        # The others' work.
        if turn % 4 == 0:
            place, size = 4 * rng.randrange(64), rng.randrange(1, 200)
            words = rng.randbytes(size)
            plain.buffer.write(words)
            expected = await d.expect(piece(foreign, place, size))
            theirs = await c.send(piece(plain, 0, size))
            memory["foreign"][place : place + size] = words
        # The attack: tags near good ones, addresses near edges.
        victim = rng.choice([target, target, hidden, foreign, gone])
        tag = rng.choice([victim.tag, target.tag, victim.tag ^ 1 << rng.randrange(16), rng.getrandbits(16)])
        edge = rng.choice([0, victim.buffer.length])
        size = rng.choice([0, 1, 4, 7, 8, rng.randrange(300)])
        address = max(
            0,
            victim.buffer.start
            + edge
            + rng.choice([0, -size, -size + 1, -size - 1, rng.randrange(-300, 300)]),
        )
        if rng.random() < 0.9:
            address = address // 4 * 4
        read = level != Reliability.UNRELIABLE and rng.random() < 0.3
        begin = address - target.buffer.start
        good = tag == target.tag and address % 4 == 0 and begin >= 0 and begin + size <= 1000
        # Without a byte nothing is touched, and nothing but the rights of the region's number is looked at.
        nothing = size == 0 and tag & 0xFF in (target.number, foreign.number, gone.number)
        attack = Descriptor(
            op=Op.RDMA_READ if read else Op.RDMA_WRITE,
            segments=segments([piece(out, 0, size)]),
            remote=Segment(address, tag),
        )
        # On an unreliable VI nothing is told of them, and several go at once.
        last = bool(level) or turn % 4 == 3 or turn == tries - 1
        await a.post(attack, ring=last)
        told = (await a.done(a.posted[0] - 1))[0] if last else "OK"
        if level:
            assert (told == "OK") == (good or nothing), (turn, told, good, address, tag, size)
        if good and not read and size:
            memory["target"][begin : begin + size] = out.buffer.read(size)
        counts["allowed" if good else "refused"] += 1
        if told != "OK":
            assert told == "REMOTE_ACCESS", told
            connection += 1
            for end in (a, b):
                await end.close()
            for end in (a, b):
                await end.open()
            await join(a, b, connection=connection)
        if turn % 4 == 3:
            await c.done(theirs)
            assert await d.done(expected, receive=True) == ("OK", d.status(expected, receive=True)[1])
            at_work += 1
        if turn % 16 == 15 and not level:
            await settle(a, b)
            assert same(), turn
    if not level:
        await settle(a, b)
    await cluster.clock.sleep(2000)
    return {
        "same": same(),
        "counts": counts,
        "dropped": programs[1].drops["remote access"],
        "others": set(programs[1].drops) - {"remote access", "closed"} == set(),
        "at work": at_work,
    }


async def partial(cluster, spec):
    """A message of which only a part comes: it ends in bounded time, or when the next one comes."""
    programs, agents = await start(cluster, patience_us=600)
    a, b = await pair(agents, reliability=Reliability(spec["level"]))
    out, into = await a.process.allocate(4096), await b.process.allocate(4096)
    told = []
    for turn, wait in enumerate((30_000, 10)):
        expected = [await b.expect(piece(into, 0, 4096)) for _ in range(2)]
        await a.send(piece(out, 0, 4096))
        while not any(vi.inbound for vi in programs[1].context.vis.values()):
            await cluster.clock.sleep(50)
        begin = cluster.clock.cycle
        await a.close()
        await cluster.clock.sleep(wait)
        if turn == 0:
            told.append([await b.done(expected[0], receive=True), cluster.clock.cycle - begin])
        # The same connection, as its other end sees it.
        await a.open()
        await a.connect(1, b.channel, connection=1)
        for vi in programs[0].context.vis.values():
            vi.number = 2 * turn + 1
        sent = await a.send(piece(out, 0, 8))
        told.append([(await b.done(one, receive=True))[0] for one in expected])
        told.append((await a.done(sent))[0])
        if spec["level"]:
            break
    return {"told": told, "drops": dict(programs[1].drops)}


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


async def deaf(cluster, spec):
    """An agent that does not listen loses packets of others, which are counted, and not the word of a broken VI."""
    programs, agents = await start(cluster)
    a, b = await pair(agents, reliability=Reliability.RELIABLE_DELIVERY)
    out = await a.process.allocate(64)
    hears, agents[1]._notices = agents[1]._notices, asleep
    for i in range(7):
        await agents[0].send_packet(1, noise(i, 64))
    await a.done(await a.send(piece(out, 0, 64)))  # nothing is posted: both ends break
    await cluster.clock.sleep(3000)
    agents[1]._notices = hears
    await agents[1]._notices()
    return {
        "packets": [content == noise(i, 64) for i, (_, content) in enumerate(agents[1].packets)],
        "broken": [agent.broken_vis for agent in agents],
        "drops": dict(programs[1].drops),
        "channels": [a.channel, b.channel],
    }


async def asleep():
    """Hear nothing."""


async def both_ways(cluster, spec):
    """Two VIs each way at once, with messages of many packets; and a process that rings what it never posted."""
    programs, agents = await start(cluster)
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
