"""Posted elements against their plain model: what a doorbell posts, and whose element is sent."""

import random

import pytest
from amaranth import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.class_queues import ClassQueues
from lanikai.hdl.hca.layout import QP_BITS
from lanikai.hdl.hca.posted_work import PostedWork
from support.hdl.hca.posted_model import PostedModel
from support.hdl.hca.streams import put, strobe

CONFIG = preset(HcaConfig, "tiny").replace(
    queue_pairs=12, classes=3, class_queue_entries=3, owners=4, wqe="posted", posted_entries=4
)


class Joined(wiring.Component):
    """Class queues and posted elements, as `SendSide` joins them."""

    def __init__(self, config):
        self.queues, self.posted = ClassQueues(config), PostedWork(config)
        super().__init__({"ended": In(stream.Signature(QP_BITS))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.queues, m.submodules.posted = queues, posted = self.queues, self.posted
        m.d.comb += [
            posted.setup_valid.eq(queues.setup.valid & queues.setup.ready),
            posted.setup.eq(queues.setup.payload),
            posted.rings.eq(queues.ring.valid & queues.ring.ready),
            posted.ring_page.eq(queues.ring.payload.page),
            posted.stores.eq(queues.stores),
            posted.store.eq(queues.store),
            posted.waiting.eq(queues.waiting),
            posted.head.eq(queues.head),
            queues.select.eq(posted.select),
            queues.take.eq(posted.take),
            # Of two ends at once the dropped one goes first.
            queues.ended.valid.eq(posted.end.valid | self.ended.valid),
            queues.ended.payload.eq(Mux(posted.end.valid, posted.end.payload.qp, self.ended.payload)),
            posted.end.ready.eq(queues.ended.ready),
            self.ended.ready.eq(queues.ended.ready & ~posted.end.valid),
        ]
        return m


class Bench:
    """The two beside their model, which steps when they have come to rest."""

    def __init__(self, *, seed, config=CONFIG):
        print(f"seed {seed}")
        self.rng, self.config = random.Random(seed), config
        self.dut = Joined(config)
        self.model = PostedModel(
            queue_pairs=config.queue_pairs,
            classes=config.classes,
            entries=config.class_queue_entries,
            owners=config.owners,
            posted_entries=config.posted_entries,
        )

    def run(self, script):
        async def bench(ctx):
            await self.rest(ctx)
            await script(ctx)

        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()

    async def rest(self, ctx):
        for _ in range(1000):
            await ctx.tick()
            if ctx.get(self.dut.queues.quiet) and ctx.get(self.dut.posted.quiet):
                return
        raise AssertionError("never quiet")

    async def setup(self, ctx, qp, *, opens, owner=0, traffic_class=0, entries=1):
        payload = {"qp": qp, "open": opens, "send_log2": entries.bit_length() - 1}
        payload |= {"owner": owner, "traffic_class": traffic_class}
        await put(ctx, self.dut.queues.setup, payload)
        self.model.setup(qp, opens=opens, owner=owner, traffic_class=traffic_class, entries=entries)
        await self.rest(ctx)

    async def write(self, ctx, page, word, value):
        posted = self.dut.posted
        await strobe(ctx, posted.write, posted.writes, {"page": page, "word": word, "data": value})
        self.model.write(page, word, value)

    async def ring(self, ctx, page, qp, index):
        await put(ctx, self.dut.queues.ring, {"page": page, "qp": qp, "index": index % (1 << 16)})
        self.model.ring(page, qp, index % (1 << 16))

    async def take(self, ctx, traffic_class):
        """Takes the oldest held element of a class, if there is one, and compares it. Returns its queue pair."""
        posted, held = self.dut.posted, self.model.held[traffic_class]
        assert ctx.get(posted.held) >> traffic_class & 1 == bool(held)
        if not held:
            return None
        ctx.set(posted.look, traffic_class)
        found = ctx.get(posted.work)
        assert (found.qp, found.element.as_bits()) == held.popleft()
        assert not found.failed
        ctx.set(posted.done, 1)
        await ctx.tick()
        ctx.set(posted.done, 0)
        self.model.fetch()
        await self.rest(ctx)
        return found.qp

    async def end(self, ctx, qp):
        """A message ends."""
        await put(ctx, self.dut.ended, qp)
        self.model.end(qp)


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.full)])
def test_random_words_doorbells_and_set_ups_by_any_page(seed):
    bench = Bench(seed=seed)
    rng, model, config = bench.rng, bench.model, CONFIG
    taken = 0

    async def script(ctx):
        nonlocal taken
        under_way = []
        for _ in range(1500):
            choice = rng.random()
            qp = rng.randrange(config.queue_pairs)
            pair = model.pairs.get(qp)
            if choice < 0.12:
                if pair and pair.is_open:
                    if rng.random() < 0.2:
                        await bench.setup(ctx, qp, opens=False)
                elif not pair or pair.queued == pair.ended:
                    await bench.setup(
                        ctx,
                        qp,
                        opens=True,
                        owner=rng.randrange(config.owners),
                        traffic_class=rng.randrange(3),
                        entries=1 << rng.randrange(3),
                    )
            elif choice < 0.45:
                # Pages beyond the last one are nobody's.
                await bench.write(
                    ctx, rng.randrange(config.owners + 2), rng.randrange(8), rng.getrandbits(32)
                )
            elif choice < 0.8:
                page = rng.randrange(config.owners)
                if pair and rng.random() < 0.9:
                    page = pair.owner if rng.random() < 0.9 else page
                    index = pair.rung + rng.choice((0, 1, 1, 1, 1, 2, -1))
                else:
                    index = rng.getrandbits(16)
                await bench.ring(ctx, page, qp, index)
                if rng.random() < 0.5:
                    # The next message's first word, in the cycle after the doorbell is taken.
                    await bench.write(ctx, page, rng.randrange(8), rng.getrandbits(32))
                await bench.rest(ctx)
            elif choice < 0.92:
                qp = await bench.take(ctx, rng.randrange(3))
                if qp is not None:
                    under_way.append(qp)
                    taken += 1
            elif under_way:
                await bench.end(ctx, under_way.pop(rng.randrange(len(under_way))))
            assert ctx.get(bench.dut.queues.refusals) == model.refusals
        # Everything leaves: no message is lost, and each has its own words.
        while any(model.held):
            for i in range(3):
                qp = await bench.take(ctx, i)
                if qp is not None:
                    under_way.append(qp)
                    taken += 1
                    await bench.end(ctx, under_way.pop(0))
        for qp in under_way:
            await bench.end(ctx, qp)
        for pair in model.pairs.values():
            assert pair.rung == pair.queued == pair.ended

    bench.run(script)
    assert taken > 100
    assert model.refusals > 100
    assert model.dropped


def test_a_doorbell_takes_the_words_that_were_there_when_it_was_taken():
    """The words of the next message may come in the cycle after the doorbell."""
    bench = Bench(seed=1)

    async def script(ctx):
        await bench.setup(ctx, 3, opens=True, owner=2, traffic_class=1, entries=4)
        for word in range(8):
            await bench.write(ctx, 2, word, 0x11111111 * word)
        for index in range(1, 3):
            await bench.ring(ctx, 2, 3, index)
            await bench.write(ctx, 2, 0, 0xABCD0000 + index)
        await bench.rest(ctx)
        for first in (0, 0xABCD0001):
            element = sum(0x11111111 * word << 32 * word for word in range(1, 8)) | first
            assert bench.model.held[1][0] == (3, element)
            assert await bench.take(ctx, 1) == 3

    bench.run(script)
