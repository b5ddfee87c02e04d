"""Completion queues of the adapter against the plain model, behind a slow bus that sometimes refuses a write."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.completion_writer import WRITES_UNDER_WAY, CompletionWriter
from lanikai.hdl.hca.layout import CQE_LAYOUT
from support.hdl.axi_memory import AxiMemory
from support.hdl.counting import Nearly
from support.hdl.hca.completion_model import CompletionModel, cqe_bits
from support.hdl.hca.streams import put

CONFIG = preset(HcaConfig, "tiny").replace(completion_queues=3)
BASES = (0x100, 0x400, 0xF00)


class Bench:
    """A writer over a memory, beside the model over another one."""

    def __init__(self, *, seed, stall=0.3, latency=4, fails=lambda address: False, first_index=0):
        print(f"seed {seed}")
        self.rng = random.Random(seed)
        self.dut = CompletionWriter(CONFIG, first_index=first_index)
        self.memory, self.posts, self.completed, self.expected_posts = bytearray(4096), [], [], 0
        self.model = CompletionModel(bytearray(4096), fails, first_index)
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(1e-6)
        self.axi = AxiMemory(
            self.dut.axi, self.memory, data_bits=128, rng=self.rng, stall=stall, latency=latency, fails=fails
        )
        self.simulator.add_testbench(self.axi.process, background=True)
        self.simulator.add_testbench(self.watch, background=True)
        self.now = 0

    async def watch(self, ctx):
        """Notes the order in which posts are taken, and the entries that have been answered."""
        dut = self.dut
        ports = (dut.post_0, dut.post_1)
        signals = [s for p in ports for s in (p.valid, p.ready, p.payload)]
        while True:
            _, _, done, queue, *values = await ctx.tick().sample(dut.completed, dut.completed_queue, *signals)
            self.now += 1
            if done:
                self.completed.append(queue)
            for source in range(2):
                valid, ready, post = values[3 * source : 3 * source + 3]
                if valid and ready:
                    self.posts.append((int(post.queue), post.entry.as_bits()))

    def run(self, script):
        async def bench(ctx):
            await script(ctx)

        self.simulator.add_testbench(bench)
        self.simulator.run()

    async def rest(self, ctx):
        """Waits until nothing is under way, and brings the model there."""
        await ctx.tick()
        while not ctx.get(self.dut.quiet):
            await ctx.tick()
        await ctx.tick()
        for queue, entry in self.posts:
            self.model.post(queue, entry)
        self.posts.clear()

    async def post(self, ctx, posts):
        """Posts of both sources at a time: lists of (queue, entry)."""
        left = [list(reversed(one)) for one in posts]
        ports = (self.dut.post_0, self.dut.post_1)
        while any(left):
            for port, waiting in zip(ports, left, strict=True):
                up = bool(waiting) and (ctx.get(port.valid) or self.rng.random() < 0.7)
                ctx.set(port.valid, up)
                if up:
                    queue, entry = waiting[-1]
                    ctx.set(port.payload.queue, queue)
                    ctx.set(port.payload.entry, CQE_LAYOUT.from_bits(entry))
            _, _, *taken = await ctx.tick().sample(*(p.valid & p.ready for p in ports))
            for port, waiting, one in zip(ports, left, taken, strict=True):
                if one:
                    waiting.pop()
                    ctx.set(port.valid, 0)

    async def setup(self, ctx, queue, owner, base, entries_log2):
        await put(
            ctx,
            self.dut.setup,
            {"queue": queue, "owner": owner, "base": base, "entries_log2": entries_log2},
        )

    async def consume(self, ctx, queue, owner, index):
        await put(ctx, self.dut.consume, {"queue": queue, "owner": owner, "index": index})


@pytest.mark.parametrize("seed", [1, *(pytest.param(i, marks=pytest.mark.full) for i in range(2, 6))])
@pytest.mark.parametrize("first_index", [0, 0xFFFA])
def test_queues_do_as_the_plain_model(seed, first_index):
    # One entry of the third ring is at an address that the bus refuses.
    bench = Bench(seed=seed, fails=lambda address: address == 0xF10, first_index=first_index)
    rng, dut, model = bench.rng, bench.dut, bench.model

    async def script(ctx):
        counted = {name: Nearly(ctx, getattr(dut, name), 2) for name in model.counts}
        for step in range(200):
            if step < 3 or rng.random() < 0.3:
                queue = step if step < 3 else rng.randrange(4)
                made = (queue, rng.randrange(1, 3), BASES[queue % 3], rng.choice([0, 1, 2, 3, 3]))
                await bench.setup(ctx, *made)
                await bench.rest(ctx)
                model.setup(*made)
                if queue == 3:
                    model.queues.pop(3, None)
            # The queue whose bus fails has one post at a time: when a queue dies is not in the model.
            queues = rng.choice([[0, 1], [0, 1, 3], [2]])
            most = 1 if 2 in queues else 6
            posts = [[], []]
            for _ in range(rng.randrange(most + 1)):
                entry = rng.getrandbits(127) & ~cqe_bits(phase=1)
                posts[rng.randrange(2)].append((rng.choice(queues), entry))
            await bench.post(ctx, posts)
            await bench.rest(ctx)
            for _ in range(rng.randrange(5)):
                queue = rng.randrange(4)
                found = model.queues.get(queue)
                owner, index = rng.randrange(1, 3), rng.randrange(1 << 16)
                if found and rng.random() < 0.8:
                    owner = found.owner
                    index = (found.consumed + rng.randrange(6)) % (1 << 16)
                await bench.consume(ctx, queue, owner, index)
                model.consume(queue, owner, index)
            assert bench.memory == model.memory, step
            assert bench.completed == model.completed
            for name, count in model.counts.items():
                await ctx.tick()
                assert ctx.get(getattr(dut, name)) == counted[name](count), name
            dead = sum(1 << queue for queue, one in model.queues.items() if one.dead)
            alive = sum(1 << queue for queue, one in model.queues.items() if not one.dead)
            assert ctx.get(dut.dead) & (dead | alive) == dead
        assert min(model.counts.values()) > 0

    bench.run(script)


def test_a_dead_queue_holds_no_other_ones_posts():
    bench = Bench(seed=0, stall=0, latency=20)
    waits = []

    async def script(ctx):
        await bench.setup(ctx, 0, 1, BASES[0], 1)
        await bench.setup(ctx, 1, 1, BASES[1], 5)
        # Nobody consumes queue 0: its posts are more than the ring has, and those of queue 1 come between.
        ctx.set(bench.dut.post_0.payload.queue, 0)
        ctx.set(bench.dut.post_0.valid, 1)
        for _ in range(24):
            waits.append(await put(ctx, bench.dut.post_1, {"queue": 1}))
        ctx.set(bench.dut.post_0.valid, 0)
        await bench.rest(ctx)
        assert ctx.get(bench.dut.dead) == 1
        assert ctx.get(bench.dut.overruns) == 1 and ctx.get(bench.dut.dropped) >= 20

    bench.run(script)
    assert bench.completed.count(1) == 24
    # A post of the other source, and the bus, on which no more than the stated writes are under way.
    assert max(waits) <= 20 + 4


def test_entries_are_on_the_bus_as_soon_and_as_often_as_stated():
    bench = Bench(seed=0, stall=0, latency=1)
    seen = []

    async def watch_bus(ctx):
        while True:
            _, _, valid, ready = await ctx.tick().sample(bench.dut.axi.awvalid, bench.dut.axi.awready)
            if valid and ready:
                seen.append(bench.now)

    async def script(ctx):
        await bench.setup(ctx, 0, 1, BASES[0], 6)
        ctx.set(bench.dut.post_0.valid, 1)
        taken = []
        for _ in range(20):
            _, _, ready = await ctx.tick().sample(bench.dut.post_0.ready)
            if ready:
                taken.append(bench.now)
        ctx.set(bench.dut.post_0.valid, 0)
        await bench.rest(ctx)
        assert len(taken) == 20
        assert [bus - post for bus, post in zip(seen, taken, strict=True)] == [2] * 20

    bench.simulator.add_testbench(watch_bus, background=True)
    bench.run(script)


def test_no_more_writes_are_under_way_than_stated():
    bench = Bench(seed=0, stall=0, latency=100)

    async def script(ctx):
        await bench.setup(ctx, 0, 1, BASES[0], 6)
        ctx.set(bench.dut.post_0.valid, 1)
        await ctx.tick().repeat(60)
        assert len(bench.axi.bursts) == WRITES_UNDER_WAY
        ctx.set(bench.dut.post_0.valid, 0)
        # A set-up waits for them.
        waited = await put(ctx, bench.dut.setup, {"queue": 0, "owner": 1, "base": 0, "entries_log2": 1})
        assert bench.axi.quiet() and waited > 30

    bench.run(script)


def test_a_writer_without_sources_is_refused():
    with pytest.raises(ConfigError, match=r"^CompletionWriter: sources = 0: at least 1$"):
        CompletionWriter(CONFIG, sources=0)
