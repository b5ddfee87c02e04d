"""The receive engine against the plain model: packets of all kinds, good and bad."""

from dataclasses import replace

import pytest
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.layout import CqeStatus
from support.hdl.hca.completion_model import cqe_fields
from support.hdl.hca.receive_bench import ReceiveBench
from support.hdl.hca.receive_model import Packet, Pair, wqe_bits
from support.hdl.protection_model import Region

_TINY = preset(HcaConfig, "tiny")
TINY = _TINY.replace(link=_TINY.link.replace(vls=16))
"""With a VL 15."""
full = pytest.mark.full
RINGS, TABLE, DATA = 0x1000, 0x2000, 0x4000
"""Places in memory: receive rings, page tables, and pages of data."""
VIRTUAL = 0x80000


def message(rng, config, *, qp, source, source_qp, size, immediate=None, **fields):
    """The packets of a message, as a good sender makes them."""
    content, step = rng.randbytes(size), config.payload_bytes
    starts = range(0, max(1, size), step)
    return [
        Packet(
            qp=qp,
            source=source,
            source_qp=source_qp,
            payload=content[at : at + step],
            number=number,
            first=number == 0,
            last=number == len(starts) - 1,
            total_bytes=size,
            immediate=immediate if number == len(starts) - 1 else None,
            **fields,
        )
        for number, at in enumerate(starts)
    ]


async def prepare(ctx, bench, *, pages=8):
    """Region 0 of owner 1 over all data pages, the last one first; queue pairs 0, connected with 5, 6, and 1."""
    for page in range(pages):
        frame = DATA + (pages - 1 - page) * 4096
        bench.fill(TABLE + 4 * page, (frame | 1).to_bytes(4, "little"))
    region = Region(key=7, owner=1, start=VIRTUAL, bytes=pages * 4096, table=TABLE)
    await bench.region(ctx, 0, region)
    await bench.pair(ctx, 0, Pair(1, 0, RINGS, 3, (5, 6)))
    await bench.pair(ctx, 1, Pair(1, 1, RINGS + 0x100, 3, None))


async def post(ctx, bench, qp, buffers):
    """Posts buffers: (address, bytes)."""
    pair = bench.model.pairs[qp]
    for i, (address, size) in enumerate(buffers):
        number = (pair.posted + i) % (1 << 16)
        place = pair.base + number % (1 << pair.entries_log2) * 16
        element = wqe_bits(address=address, bytes=size, tag=number, region=0, key=7)
        bench.fill(place, element)
    await bench.doorbell(ctx, pair.owner, qp, (pair.posted + len(buffers)) % (1 << 16))


def check(ctx, bench, counted=None):
    """Memory, completions and counters are the model's."""
    assert bench.posts == bench.model.posts
    assert bench.memory == bench.model.memory
    for name, count in bench.model.counts.items():
        expected = counted[name](count) if counted else count
        assert ctx.get(getattr(bench.engine, name)) == expected, name


@pytest.mark.parametrize("size", [0, 1, 16, 63, 64, 65, 300])
def test_messages_of_one_and_of_several_packets(size):
    bench = ReceiveBench(TINY, seed=size)

    async def script(ctx):
        await prepare(ctx, bench)
        await post(ctx, bench, 0, [(VIRTUAL + 0x20, 400), (VIRTUAL + 0xFF0, 400)])
        await post(ctx, bench, 1, [(VIRTUAL + 0x2000, 64)])
        both = [message(bench.rng, TINY, qp=0, source=5, source_qp=6, size=size, immediate=9) for _ in "ab"]
        for one in both:
            await bench.packets(ctx, one)
        if size <= TINY.payload_bytes:
            await bench.packets(ctx, message(bench.rng, TINY, qp=1, source=3, source_qp=2, size=size, kind=5))
        await bench.rest(ctx)
        check(ctx, bench)
        entries = [cqe_fields(entry) for _, entry in bench.posts]
        assert [one["status"] for one in entries] == [CqeStatus.OK] * len(entries)
        assert entries[0]["bytes"] == size and entries[0]["immediate"] == 9
        assert len(entries) == 2 + (size <= TINY.payload_bytes)

    bench.run(script)


def spoilt(rng, packets, kind):
    """The packets of a message, of which something is wrong, by kind; and the counters that may tell of it."""
    one = rng.randrange(len(packets))
    found = list(packets)
    if kind == "lost":
        del found[one]
    elif kind == "twice":
        found.insert(one, packets[one])
    elif kind == "crc":
        found[one] = replace(packets[one], flip=rng.randrange(128))
    elif kind == "cut":
        found[one] = replace(packets[one], payload=packets[one].payload or bytes(16), cut=1)
    elif kind == "long":
        found[one] = replace(packets[one], payload=bytes(16 * rng.randint(5, 9)))
    elif kind == "source":
        found[one] = replace(packets[one], source=rng.choice([4, 1023]))
    elif kind == "source_qp":
        found[one] = replace(packets[one], source_qp=7)
    elif kind == "qp":
        found[one] = replace(packets[one], qp=rng.choice([2, 3, 4, 255]))
    elif kind == "number":
        found[one] = replace(packets[one], number=rng.randrange(256))
    elif kind == "total":
        found[one] = replace(packets[one], total_bytes=rng.randrange(400))
    elif kind == "first":
        found[one] = replace(packets[one], first=not packets[one].first)
    elif kind == "last":
        found[one] = replace(packets[one], last=not packets[one].last)
    elif kind == "life":
        found[one] = replace(packets[one], life=packets[one].life ^ 1 << rng.randrange(8))
    elif kind == "source_life":
        found[one] = replace(packets[one], source_life=packets[one].source_life ^ 1 << rng.randrange(8))
    elif kind == "lane":
        found[one] = replace(packets[one], vl=packets[one].vl ^ 15)
    return found


SPOILS = (
    "lost",
    "twice",
    "crc",
    "cut",
    "long",
    "source",
    "source_qp",
    "qp",
    "number",
    "total",
    "first",
    "last",
    "life",
    "source_life",
    "lane",
)


async def random_buffers(ctx, bench, qp):
    """Posts buffers of a queue pair, some of them into memory that it may not write."""
    rng, pair = bench.rng, bench.model.pairs[qp]
    ahead = (pair.posted - pair.taken - (pair.held is not None)) % (1 << 16)
    room = (1 << pair.entries_log2) - ahead
    count = rng.randint(0, room)
    for i in range(count):
        number = (pair.posted + i) % (1 << 16)
        address = VIRTUAL + rng.randrange(0, 8 * 4096 - 400, 16)
        fields = {
            "address": address,
            "bytes": rng.choice([100, 400, 400, 400]),
            "tag": number,
            "region": 0,
            "key": 7,
        }
        if rng.random() < 0.15:
            fields |= rng.choice(
                [
                    {"address": address + 8},
                    {"key": 6},
                    {"region": rng.randrange(1, 4)},
                    {"region": 200},
                    {"address": VIRTUAL + 8 * 4096 - 16 * rng.randrange(12)},
                    {"address": 0},
                    {"address": VIRTUAL + 3 * 4096 - 80},
                ]
            )
        bench.fill(pair.base + number % (1 << pair.entries_log2) * 16, wqe_bits(**fields))
    await bench.doorbell(ctx, pair.owner, qp, (pair.posted + count) % (1 << 16))
    await bench.rest(ctx)


async def hostile_doorbells(ctx, bench):
    """Doorbells that nothing may come of, unless they happen to be right."""
    rng = bench.rng
    for _ in range(rng.randrange(3)):
        qp = rng.choice([0, 1, 2, 3, 4, 255])
        pair = bench.model.pairs.get(qp)
        owner, index = rng.randrange(4), rng.randrange(1 << 16)
        if pair is not None and owner == pair.owner:
            index = (pair.posted + rng.choice([-1, 20, 1 << 15])) % (1 << 16)
        await bench.doorbell(ctx, owner, qp, index)
        await bench.rest(ctx)


async def random_setup(ctx, bench):
    """Something is set up anew."""
    rng = bench.rng
    if rng.random() < 0.5:
        writable, valid, owner, key = rng.choice(
            [(1, 1, 1, 7)] * 4 + [(0, 1, 1, 7), (1, 0, 1, 7), (1, 1, 2, 7)]
        )
        await bench.region(ctx, 0, Region(key, owner, VIRTUAL, 8 * 4096, TABLE, writable, valid))
    else:
        qp = rng.choice([0, 1, 2])
        lives = {"life": rng.randrange(256), "peer_life": rng.randrange(256), "control": rng.random() < 0.2}
        peer = None if qp == 1 else (5, 6)
        pair = Pair(1, qp, RINGS + 0x100 * qp, rng.randint(0, 3), peer, **lives)
        await bench.pair(ctx, qp, pair if qp < 2 or rng.random() < 0.7 else None)


@pytest.mark.parametrize("seed", [1, *(pytest.param(i, marks=full) for i in range(2, 8))])
def test_random_packets_do_as_the_plain_model(seed):
    config = TINY
    # A beat of data, and an element of a ring.
    bench = ReceiveBench(
        config,
        seed=seed,
        fails=lambda address: DATA + 0x2000 <= address < DATA + 0x2800 or address == RINGS + 0x20,
    )
    rng, statuses = bench.rng, set()

    async def script(ctx):
        await prepare(ctx, bench)
        # The page before the last is not there.
        bench.fill(TABLE + 4 * 6, bytes(4))
        counted = bench.nearly(ctx, 1)
        for _ in range(80 if seed == 1 else 200):
            if rng.random() < 0.2:
                await random_setup(ctx, bench)
                await bench.rest(ctx)
            for qp in list(bench.model.pairs):
                if rng.random() < 0.6:
                    await random_buffers(ctx, bench, qp)
            await hostile_doorbells(ctx, bench)
            for _ in range(rng.randint(1, 4)):
                qp = rng.choice([0, 0, 1, 2])
                connected = qp != 1
                size = rng.choice([0, 5, 64, 64, 128, 200, 350]) if connected else rng.choice([0, 7, 64])
                peer = {"source": 5, "source_qp": 6} if connected else {"source": 9, "source_qp": 1}
                immediate = rng.choice([None, rng.getrandbits(32)])
                if pair := bench.model.pairs.get(qp):
                    # A pair that is not connected takes no notice of its sender's life.
                    peer |= {"life": pair.life, "source_life": pair.peer_life if connected else 7}
                    peer |= {"vl": 15 if pair.control else rng.randrange(4), "kind": rng.randrange(6)}
                packets = message(rng, config, qp=qp, size=size, immediate=immediate, **peer)
                if rng.random() < 0.3:
                    packets = spoilt(rng, packets, rng.choice(SPOILS))
                await bench.packets(ctx, packets, gap=rng.choice([0, 0, 0.5]))
            await bench.rest(ctx)
            check(ctx, bench, counted)
        statuses.update(cqe_fields(entry)["status"] for _, entry in bench.posts)

    bench.run(script)
    print(len(bench.posts), bench.model.counts)
    assert {CqeStatus.OK, CqeStatus.PARTIAL, CqeStatus.TOO_LONG, CqeStatus.BUS_ERROR} <= statuses
    if seed > 1:
        assert min(bench.model.counts.values()) > 0, bench.model.counts
