"""A process changes nothing of another's by writes into its page, posted elements included."""

import pytest
from lanikai.hdl.hca.layout import SEND_WQE_LAYOUT, WindowWord
from support.hdl.hca.adapter_host import DATA, KEY, pack
from support.hdl.hca.send_bench import CONFIG, PEER, POSTED, Bench, packets

GOOD = {"bytes": 20, "address": DATA, "region": 1, "destination": PEER}


def hostile(bench, writes):
    """Random writes by page 2, which owns queue pair 3 and completion queue 1, amid messages of page 1."""
    host, rng = bench.host, bench.rng
    sent = []

    async def script(ctx):
        await host.set_queue(ctx, 1, 2)
        for qp in range(3):
            await host.open(ctx, qp, owner=1, traffic_class=qp % 2, peer=(PEER, 0))
        await host.open(ctx, 3, owner=2, traffic_class=1, queue=1)
        # Its ring has elements of any content; those of the right region and key are another's.
        host.memory[host.ring(3) : host.ring(4)] = rng.randbytes(host.ring(4) - host.ring(3))
        good = pack(SEND_WQE_LAYOUT, **GOOD | {"opcode": 1, "signaled": 1, "key": KEY})
        for k in range(writes):
            if not k % 50:
                qp = rng.randrange(3)
                data = bench.fill(place := DATA + k % 1024 * 16, size := rng.randint(1, 100))
                await host.post(ctx, qp, **GOOD | {"bytes": size, "address": place})
                sent.append(data)
                await host.rest(ctx, 100000) if rng.random() < 0.5 else await ctx.tick().repeat(30)
                await host.consume(ctx, 0, 1) if host.completions(0) else None
            word = rng.choice([*WindowWord, rng.randrange(8, 16), rng.randrange(1024)])
            choice = rng.random()
            data = rng.getrandbits(32)
            if choice < 0.5:  # near to what others do
                name = rng.randrange(4) if word != WindowWord.CONSUME else 0
                index = host.posted.get(name, 0) if word != WindowWord.CONSUME else host.read[0]
                data = name | (index + rng.randint(-2, 3)) % (1 << 16) << 16
                if 8 <= word < 16:
                    data = good >> 32 * (word - 8) & 0xFFFFFFFF
            await host.write(ctx, 2, word, data)
        await host.rest(ctx, 100000)
        for qp in range(3):
            await host.set(ctx, "QP_SELECT", qp=qp)
            index = await host.get(ctx, "QP_INDEX")
            assert index["posted"] == index["ended"] == host.posted[qp]
        assert await host.count(ctx, "SEND_REFUSED") > writes // 20
        assert await host.count(ctx, "CONSUME_REFUSED") > 0
        assert await host.count(ctx, "WINDOW_REFUSED") > 0
        assert await host.count(ctx, "MESSAGES_SENT") == len(sent)

    bench.run(script)
    # All that is on the link is page 1's.
    whole = {}
    for _, header, payload, trailer in packets(bench.link.flits):
        qp = header["sequence"] & 0xFF
        assert qp < 3
        whole[qp] = (b"" if trailer["first"] else whole[qp]) + payload
        if trailer["last"]:
            sent.remove(whole[qp])
    assert not sent


@pytest.mark.parametrize("config", [CONFIG, POSTED], ids=["fetched", "posted"])
def test_a_hostile_page_changes_nothing_of_anothers(config):
    hostile(Bench(config=config, seed=5, latency=3), 400)


@pytest.mark.full
@pytest.mark.parametrize("config", [CONFIG, POSTED], ids=["fetched", "posted"])
def test_a_hundred_thousand_hostile_writes_change_nothing_of_anothers(config):
    hostile(Bench(config=config, seed=6, latency=3), 100_000)


def test_a_posted_element_of_one_page_is_never_sent_by_another():
    """Words and doorbells of two pages in turn, word by word: each doorbell posts what its own page holds."""
    bench = Bench(config=POSTED, latency=2)
    host = bench.host

    async def script(ctx):
        await host.set_queue(ctx, 1, 2)
        await host.set_region(ctx, 2, 2)
        await host.open(ctx, 0, owner=1, peer=(PEER, 0))
        await host.open(ctx, 1, owner=2, peer=(PEER, 0), queue=1)
        places = {1: DATA, 2: DATA + 0x1000}
        data = {page: bench.fill(place, 32) for page, place in places.items()}
        elements = {
            page: pack(
                SEND_WQE_LAYOUT,
                **GOOD
                | {"opcode": 1, "signaled": 1, "key": KEY, "bytes": 32, "region": page, "address": place},
            )
            for page, place in places.items()
        }
        for word in range(8):
            for page, element in elements.items():
                await host.write(ctx, page, WindowWord.WQE + word, element >> 32 * word & 0xFFFFFFFF)
        # A page without a queue pair, and one that there is not.
        await host.write(ctx, 0, WindowWord.WQE, 0)
        await host.write(ctx, POSTED.owners, WindowWord.WQE, 0)
        assert await host.count(ctx, "WINDOW_REFUSED") == 1
        # Neither page posts to the other's queue pair, nor two elements at once.
        for page, qp, index in ((2, 0, 1), (1, 1, 1), (1, 0, 2)):
            await host.write(ctx, page, WindowWord.SEND_DOORBELL, qp | index << 16)
        await host.rest(ctx)
        assert await host.count(ctx, "SEND_REFUSED") == 3
        for page, qp in ((2, 1), (1, 0)):
            await host.write(ctx, page, WindowWord.SEND_DOORBELL, qp | 1 << 16)
        await host.rest(ctx)
        sent = [(header["sequence"] & 0xFF, payload) for _, header, payload, _ in packets(bench.link.flits)]
        assert sent == [(1, data[2]), (0, data[1])]
        # The ring on the card is no longer than the adapter has room for.
        await host.close(ctx, 0)
        await host.set(ctx, "QP_SEND_RING", entries_log2=5)
        await host.set(ctx, "QP_COMMAND", open=1)
        assert await host.get(ctx, "QP_COMMAND") == {"open": 0, "busy": 0}
        assert await host.count(ctx, "REFUSED") == 1
        identity = await host.get(ctx, "IDENTITY")
        assert (identity["posted"], identity["posted_log2"]) == (1, 4)

    bench.run(script)
