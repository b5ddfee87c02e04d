"""VIA from end to end on small cards: what is refused, closed or dead. Coroutines of `test_via_firmware.py`."""

from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.firmware.via.layout import Reliability

from support.system.via_ends import PlainProcess, join, noise, pair, piece, segments, start


async def refusals(cluster, spec):
    """All that is refused, at a level: each case on a new connection.

    Returns how both ends' descriptors end, and whether the target's memory is as it was.
    """
    programs, agents = await start(cluster, **spec.get("config", {}))
    level = Reliability(spec["level"])
    a, b = await pair(agents, reliability=level, rdma_write=True, rdma_read=True)
    other = PlainProcess(agents[1])
    out, into = await a.process.allocate(2048), await b.process.allocate(2048)
    gone = await b.process.allocate(64)
    await b.process.deregister(gone)
    read_only = await b.process.allocate(64, writable=False)
    foreign, closed = await other.allocate(64), await b.process.allocate(64, rdma=False)
    content = noise(4, 2048)
    out.buffer.write(content)
    regions = (into, read_only, foreign, closed, gone)
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
    programs, agents = await start(cluster, **{"patience_us": 300, **spec.get("config", {})})
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
        "patience": programs[0].context.config.patience_us * agents[0].nic.clock_hz // 1_000_000,
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
    programs, agents = await start(cluster, **spec.get("config", {}))
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
        if turn == 0:
            told.append([await b.done(expected[0], receive=True), cluster.clock.cycle - begin])
        await cluster.clock.sleep(wait)
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
