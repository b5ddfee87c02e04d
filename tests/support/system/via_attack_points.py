"""Random RDMA at memory of another node, of which a model says what may be. Coroutine of `test_via_firmware.py`."""

from lanikai.firmware.via.descriptor import Descriptor, Op, Segment
from lanikai.firmware.via.layout import Reliability

from support.system.via_ends import PlainProcess, join, noise, pair, piece, segments, settle, start


async def attacks(cluster, spec):
    """Random RDMA by node 0 at memory of node 1, while another process of node 1 is at work with one of node 0.

    A model says what may be: all memory of node 1 but rings, tables and the agent's is compared with it at the end, and
    now and then between.
    """
    programs, agents = await start(cluster, **{"patience_us": 2000, **spec.get("config", {})})
    rng, tries, level = cluster.random, spec["tries"], Reliability(spec["level"])
    a, b = await pair(agents, reliability=level, rdma_write=True, rdma_read=True)
    friend, other = PlainProcess(agents[0]), PlainProcess(agents[1])
    c, d = await friend.vi(), await other.vi()
    await join(c, d, connection=77)
    out, plain = await a.process.allocate(1024), await friend.allocate(512)
    gone = await b.process.allocate(256)
    await b.process.deregister(gone)
    target = await b.process.allocate(1000)
    hidden = await b.process.allocate(256, rdma=False)
    foreign = await other.allocate(512)
    out.buffer.write(noise(6, 1024))
    regions = {"target": target, "hidden": hidden, "foreign": foreign, "gone": gone}
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
        if rng.random() < 0.1:
            # One that may be, whatever the others are: else a few tries may have none.
            tag, address, size = (
                target.tag,
                target.buffer.start + 4 * rng.randrange(100),
                rng.randrange(1, 300),
            )
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
