"""The receive engine against the plain model: packets of all kinds, good and bad."""

import pytest
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.layout import CqeStatus
from support.hdl.hca.completion_model import cqe_fields
from support.hdl.hca.receive_bench import ReceiveBench
from support.hdl.hca.receive_model import Packet, Pair, wqe_bits
from support.hdl.protection_model import Region

TINY = preset(HcaConfig, "tiny")
full = pytest.mark.full
RINGS, TABLE, DATA = 0x1000, 0x2000, 0x4000
"""Places in memory: receive rings, page tables, and pages of data."""
VIRTUAL = 0x80000


def message(rng, config, *, qp, source, source_qp, size, immediate=None, kind=0):
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
            kind=kind,
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
