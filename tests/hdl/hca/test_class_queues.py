"""The class queues against their plain model: order, turns of late queue pairs, refusals, closing."""

import random

import pytest
from amaranth import Signal
from amaranth.hdl import ResetInserter
from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.class_queues import BATCH, ClassQueues
from support.hdl.counting import Nearly
from support.hdl.hca.class_queues_model import ClassQueuesModel
from support.hdl.hca.streams import put

CONFIG = preset(HcaConfig, "tiny").replace(queue_pairs=20, classes=3, class_queue_entries=6)


class Bench:
    """The queues beside their model, which steps when they have come to rest."""

    def __init__(self, *, seed, config=CONFIG):
        print(f"seed {seed}")
        self.rng, self.config = random.Random(seed), config
        self.dut = ClassQueues(config)
        self.model = ClassQueuesModel(
            queue_pairs=config.queue_pairs, classes=config.classes, entries=config.class_queue_entries
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
            if ctx.get(self.dut.quiet):
                return
        raise AssertionError("never quiet")

    async def setup(self, ctx, qp, *, opens, **fields):
        log2 = fields.get("entries", 1).bit_length() - 1
        payload = {"qp": qp, "open": opens, "send_log2": log2}
        payload |= {name: fields[name] for name in ("owner", "traffic_class") if name in fields}
        await put(ctx, self.dut.setup, payload)
        self.model.setup(qp, opens=opens, **fields)
        await self.rest(ctx)

    async def ring(self, ctx, page, qp, index):
        cycles = await put(ctx, self.dut.ring, {"page": page, "qp": qp, "index": index % (1 << 16)})
        self.model.ring(page, qp, index % (1 << 16))
        await self.rest(ctx)
        return cycles

    async def take(self, ctx, traffic_class):
        """Takes the oldest of a class and compares it."""
        dut = self.dut
        ctx.set(dut.select, traffic_class)
        await ctx.tick()
        head = ctx.get(dut.head)
        ctx.set(dut.take, 1)
        await ctx.tick()
        ctx.set(dut.take, 0)
        expected = self.model.take(traffic_class)
        assert (head.qp, head.index) == expected
        await self.rest(ctx)
        return expected[0]

    async def end(self, ctx, qp):
        await put(ctx, self.dut.ended, qp)
        self.model.end(qp)

    def check(self, ctx):
        """All that can be seen is as in the model."""
        dut, model = self.dut, self.model
        assert ctx.get(dut.waiting) == sum(bool(queue) << i for i, queue in enumerate(model.queues))
        assert ctx.get(dut.refusals) == model.refusals
        assert ctx.get(dut.late_dropped) == model.late_dropped

    async def check_pair(self, ctx, qp):
        pair = self.model.pairs[qp]
        ctx.set(self.dut.look, qp)
        await ctx.tick()
        assert (ctx.get(self.dut.posted), ctx.get(self.dut.ends)) == (pair.rung, pair.ended)
        assert ctx.get(self.dut.busy) == (pair.queued != pair.ended)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_doorbells_from_any_page_set_ups_and_ends(seed):
    bench = Bench(seed=seed)
    rng, model = bench.rng, bench.model

    async def script(ctx):
        under_way = []
        for step in range(900):
            choice = rng.random()
            qp = rng.randrange(CONFIG.queue_pairs)
            pair = model.pairs.get(qp)
            if choice < 0.15:
                if pair and pair.is_open:
                    if rng.random() < 0.3:
                        await bench.setup(ctx, qp, opens=False)
                elif not pair or pair.queued == pair.ended:
                    await bench.setup(
                        ctx,
                        qp,
                        opens=True,
                        owner=rng.randrange(3),
                        traffic_class=rng.randrange(3),
                        entries=1 << rng.randrange(6),
                    )
            elif choice < 0.5:
                if pair and rng.random() < 0.8:
                    index = pair.rung + rng.randint(0, pair.entries - (pair.rung - pair.ended) % (1 << 16))
                    page = pair.owner if rng.random() < 0.8 else rng.randrange(4)
                    await bench.ring(ctx, page, qp, index)
                else:
                    await bench.ring(ctx, rng.randrange(4), rng.randrange(256), rng.getrandbits(16))
            elif choice < 0.8:
                filled = [i for i, queue in enumerate(model.queues) if queue]
                if filled:
                    under_way.append(await bench.take(ctx, rng.choice(filled)))
            elif under_way:
                await bench.end(ctx, under_way.pop(rng.randrange(len(under_way))))
            bench.check(ctx)
            if pair and not step % 5:
                await bench.check_pair(ctx, qp)
        # Everything leaves: no message is lost.
        while any(model.queues):
            for i in range(3):
                if model.queues[i]:
                    under_way.append(await bench.take(ctx, i))
        for qp in under_way:
            await bench.end(ctx, qp)
        for qp, pair in model.pairs.items():
            await bench.check_pair(ctx, qp)
            assert pair.rung == pair.queued == pair.ended
        assert model.refusals > 20
        assert model.late_dropped > 0

    bench.run(script)


def test_indices_go_over_their_wrap():
    bench = Bench(seed=1)

    async def script(ctx):
        dut, model = bench.dut, bench.model
        await bench.setup(ctx, 5, opens=True, owner=1, traffic_class=1, entries=4)
        start = (1 << 16) - 3
        for rows in (dut.rung, dut.in_queue, dut.ended_indices):
            ctx.set(rows.data[5], start)
        pair = model.pairs[5]
        pair.rung = pair.queued = pair.ended = start
        for index in range(start + 1, start + 8):
            await bench.ring(ctx, 1, 5, index)
            await bench.take(ctx, 1)
            await bench.end(ctx, 5)
            await bench.check_pair(ctx, 5)
        assert pair.rung == 4
        # An index that goes back is refused.
        await bench.ring(ctx, 1, 5, 3)
        bench.check(ctx)
        assert model.refusals == 1
        # So is one that goes back among messages that have not ended.
        await bench.ring(ctx, 1, 5, 7)
        await bench.ring(ctx, 1, 5, 5)
        bench.check(ctx)
        assert model.refusals == 2

    bench.run(script)


@pytest.mark.parametrize("start", [0, (1 << 16) - 7])
def test_the_longest_ring_takes_no_doorbell_that_goes_back_while_it_is_full(start):
    """Its 2^15 entries are half the running indices: 2^15 back and 2^15 on are the same number."""
    bench, most = Bench(seed=1), 1 << 15

    async def script(ctx):
        dut, model = bench.dut, bench.model
        await bench.setup(ctx, 5, opens=True, owner=1, traffic_class=1, entries=most)
        for rows in (dut.rung, dut.in_queue, dut.ended_indices):
            ctx.set(rows.data[5], start)
        pair = model.pairs[5]
        pair.rung = pair.queued = pair.ended = start
        await bench.ring(ctx, 1, 5, start + most)
        assert (model.refusals, (pair.rung - start) % (1 << 16)) == (0, most)
        for refused, change in enumerate((most, -1, 1, most - 1, most + 1), 1):
            await bench.ring(ctx, 1, 5, start + most + change)
            bench.check(ctx)
            await bench.check_pair(ctx, 5)
            assert model.refusals == refused
        # With one message less, a step on is taken, and then a step of 2^15 back is not.
        await bench.take(ctx, 1)
        await bench.end(ctx, 5)
        await bench.ring(ctx, 1, 5, start + most + 1)
        assert model.refusals == 5
        await bench.ring(ctx, 1, 5, start + 1)
        bench.check(ctx)
        await bench.check_pair(ctx, 5)
        assert model.refusals == 6

    bench.run(script)


def test_counters_go_over_their_wrap():
    bench = Bench(seed=1)

    async def script(ctx):
        dut = bench.dut
        refusals, dropped = Nearly(ctx, dut.refusals, 2), Nearly(ctx, dut.late_dropped, 1)
        for count in range(4):
            assert ctx.get(dut.refusals) == refusals(count)
            await bench.ring(ctx, 1, 7, 1)
        for qp in (1, 2):
            await bench.setup(ctx, qp, opens=True, owner=1, traffic_class=0, entries=8)
            await bench.ring(ctx, 1, qp, 8)
        # 6 of 16 messages are in the queue; qp 2 has none of its 8 there.
        await bench.setup(ctx, 2, opens=False)
        assert ctx.get(dut.late_dropped) == dropped(8)

    bench.run(script)


def test_a_late_queue_pair_has_an_entry_for_each_turn_of_the_others():
    bench = Bench(seed=1)
    config = bench.config

    async def script(ctx):
        # One queue pair fills its class again and again; 18 others are late with a message each.
        for qp in range(19):
            await bench.setup(ctx, qp, opens=True, owner=1, traffic_class=2, entries=32)
        await bench.ring(ctx, 1, 0, 16)
        for qp in range(1, 19):
            await bench.ring(ctx, 1, qp, 1)
        rung, seen = 16, []
        for _ in range(config.queue_pairs + config.class_queue_entries):
            seen.append(await bench.take(ctx, 2))
            if seen[-1] == 0:
                await bench.end(ctx, 0)
                rung += 1
                await bench.ring(ctx, 1, 0, rung)
        assert set(seen) == set(range(19))

    bench.run(script)


def test_a_full_queue_holds_up_no_doorbell():
    bench = Bench(seed=1)

    async def script(ctx):
        for qp in range(4):
            await bench.setup(ctx, qp, opens=True, owner=1, traffic_class=qp % 2, entries=32)
        for turn in range(1, 5):
            for qp in range(4):
                # After each doorbell of a queue pair the others' are taken at once.
                await put(ctx, bench.dut.ring, {"page": 1, "qp": qp, "index": 8 * turn})
                bench.model.ring(1, qp, 8 * turn)
                cycles = await put(ctx, bench.dut.ring, {"page": 2, "qp": qp, "index": 0})
                bench.model.ring(2, qp, 0)
                assert cycles <= BATCH + 3 + 3 + 2 + 1
        await bench.rest(ctx)
        bench.check(ctx)

    bench.run(script)


def test_no_queue_pair_is_busy_after_a_reset():
    """Messages that a reset has cut off do not keep their queue pair from being opened."""
    bench, reset = Bench(seed=1), Signal()
    dut = bench.dut

    async def script(ctx):
        await bench.rest(ctx)
        await bench.setup(ctx, 17, opens=True, owner=1, traffic_class=1, entries=4)
        await bench.ring(ctx, 1, 17, 3)
        ctx.set(dut.look, 17)
        await ctx.tick()
        assert ctx.get(dut.busy)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await bench.rest(ctx)
        assert not ctx.get(dut.busy)

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(script)
    simulator.run()
