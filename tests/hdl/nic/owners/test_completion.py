"""Completion against plain models, behind a memory that delays and reorders as far as AXI allows."""

import random

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig, NicConfig, preset
from lanikai.hdl.nic.owners.completion import Completion
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from support.hdl.axi_memory import AxiMemory
from support.hdl.completion_queue import Bench, entry_fields
from support.hdl.counting import Nearly

NARROW = preset(NicConfig, "tiny", completion_queues=3, completion_batch=4, owners=4)
WIDE = NARROW.replace(link=LinkConfig(flit_bits=64, vls=2), bus_bits=64, completion_batch=2)
full = pytest.mark.full
BUSES = pytest.mark.parametrize("config", [NARROW, WIDE], ids=["32-bit bus", "64-bit bus"])


async def transfer(ctx, bench, buffer, content, identity, started):
    """A data burst to `buffer`, or from it if `content` is None. Returns its bytes.

    It calls `started` as soon as its address is on the bus: nothing says then when it will be in memory.
    """
    bus, size = bench.data, bench.config.bus_bits // 8
    beats = 32 // size
    channel = "ar" if content is None else "aw"
    for name, value in (("id", identity), ("addr", buffer), ("len", beats - 1), ("burst", 1)):
        ctx.set(getattr(bus, f"{channel}{name}"), value)
    ctx.set(getattr(bus, f"{channel}valid"), 1)
    started()
    while not ctx.get(getattr(bus, f"{channel}ready")):
        await ctx.tick()
    await ctx.tick()
    ctx.set(getattr(bus, f"{channel}valid"), 0)
    if content is None:
        return
    for beat in range(beats):
        ctx.set(bus.wdata, int.from_bytes(content[beat * size : (beat + 1) * size], "little"))
        ctx.set(bus.wstrb, (1 << size) - 1)
        ctx.set(bus.wlast, beat == beats - 1)
        ctx.set(bus.wvalid, 1)
        while not ctx.get(bus.wready):
            await ctx.tick()
        await ctx.tick()
    ctx.set(bus.wvalid, 0)


def order_run(config, seed, *, transfers=25, component=Completion):
    """Transfers whose completion is posted when they have only begun. Returns how many the consumers saw."""
    bench = Bench(config, seed=seed, component=component)
    rng = bench.rng
    posts, buffers, consumers, seen = [], {}, {}, []
    ready = []
    slots = [0x100 * i for i in range(8)]
    arrived = {identity: [] for identity in range(4)}  # read bursts under way: number, bytes so far

    async def engine(ctx):
        for queue in range(config.completion_queues):
            consumers[queue] = await bench.setup(ctx, queue, batch=rng.randint(1, 4), lag=rng.randint(0, 30))
        ctx.set(bench.data.bready, 1)
        ctx.set(bench.data.rready, 1)
        ready.append(True)
        for number in range(transfers):
            while not (free := [s for s in slots if s not in {b[0] for b in buffers.values()}]):
                await ctx.tick()
            buffer, content = rng.choice(free), rng.randbytes(32)
            send = rng.random() < 0.5
            buffers[number] = (buffer, content, send)
            identity = rng.randrange(4)
            if send:
                bench.memory[buffer : buffer + 32] = content
                arrived[identity].append((number, content, bytearray()))
            started = lambda number=number: posts.append(number)  # noqa: E731
            await transfer(ctx, bench, buffer, None if send else content, identity, started)

    async def reads(ctx):
        """Reads give the bytes that were there before they were said to be done: poison is never sent."""
        bus, size = bench.data, config.bus_bits // 8
        while len(seen) < transfers:
            if ctx.get(bus.rvalid) and ctx.get(bus.rready):
                _, content, got = arrived[ctx.get(bus.rid)][0]
                got += ctx.get(bus.rdata).to_bytes(size, "little")
                if ctx.get(bus.rlast):
                    assert got == content, "a buffer was read after it was said to be done"
                    arrived[ctx.get(bus.rid)].pop(0)
            await ctx.tick()

    async def poster(ctx):
        for _ in range(transfers):
            while not posts:
                await ctx.tick()
            number = posts.pop(0)
            status_at = 0x3000 + 4 * number
            more = {"write_back": number % 2, "status_address": status_at}
            await bench.post(ctx, number % config.completion_queues, number, **more)

    def look(queue):
        consumer = consumers[queue]
        while (entry := consumer.look()) is not None:
            number = entry["descriptor"]
            assert number % config.completion_queues == queue and entry["bytes"] == number * 3
            buffer, content, send = buffers.pop(number)
            if send:
                bench.memory[buffer : buffer + 32] = bytes(32)  # poison
            else:
                assert bench.memory[buffer : buffer + 32] == content, "a completion before its data"
            status = int.from_bytes(bench.memory[0x3000 + 4 * number :][:4], "little")
            assert status == (1 << 31 | number * 3 if number % 2 else 0), "an entry before its status word"
            seen.append(number)
            consumer.take()

    async def watcher(ctx):
        """Looks in every cycle, as the fastest host would."""
        while not ready:
            await ctx.tick()
        while len(seen) < transfers:
            for queue in consumers:
                before = consumers[queue].index
                look(queue)
                if consumers[queue].index != before:
                    assert not await bench.consume(ctx, queue, consumers[queue].index)
            await ctx.tick()
            assert bench.cycle < 20000, "completions are missing"
        # The bus has an answer or two left to give.
        await ctx.tick().repeat(200)

    bench.run(engine, reads, poster, watcher)
    assert bench.axi.quiet()
    return seen


@BUSES
@pytest.mark.parametrize("seed", range(2))
def test_no_completion_is_visible_before_its_data_and_no_done_buffer_is_read(config, seed):
    assert sorted(order_run(config, seed)) == list(range(25))


@pytest.mark.full
@BUSES
@pytest.mark.parametrize("seed", range(2, 20))
def test_order_with_more_seeds(config, seed):
    assert sorted(order_run(config, seed, transfers=100)) == list(range(100))


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1 << 30), wide=st.booleans(), log2=st.integers(1, 3), batch=st.integers(1, 4))
def test_a_consumer_that_arms_and_sleeps_sees_every_entry(seed, wide, log2, batch):
    """Posts at random moments, more than the ring holds, with a bus as slow as it likes; the queue stalls."""
    config = (WIDE if wide else NARROW).replace(completion_queues=2, completion_batch=2)
    bench = Bench(config, seed=seed)
    rng, posts, consumers, lists = bench.rng, 20, {}, {0: [], 1: []}

    async def poster(ctx):
        for queue in (0, 1):
            consumers[queue] = await bench.setup(
                ctx, queue, log2=log2, batch=batch, lag=rng.randint(0, 40), owner=queue
            )
        for number in range(posts):
            await ctx.tick().repeat(rng.choice([1, 1, 2, 5, 60]))
            await bench.post(ctx, number & 1, number)

    async def host(ctx):
        while len(consumers) < 2:
            await ctx.tick()
        sleeping = set()
        while sum(map(len, lists.values())) < posts:
            for queue, consumer in consumers.items():
                if queue in sleeping:
                    continue
                while (entry := consumer.look()) is not None:
                    lists[queue].append(entry["descriptor"])
                    consumer.take()
                    await ctx.tick().repeat(rng.choice([1, 4]))
                # The index of another owner, and one that nobody has written, are refused.
                assert await bench.consume(ctx, queue, consumer.index, owner=1 - queue, arm=1)
                assert await bench.consume(ctx, queue, consumer.index + 4, owner=queue)
                assert not await bench.consume(ctx, queue, consumer.index, owner=queue, arm=1)
                sleeping.add(queue)
            while not ctx.get(bench.dut.event):
                if sum(map(len, lists.values())) == posts:
                    return
                await ctx.tick()
                assert bench.cycle < 20000, f"an entry came and nobody was woken: {lists}"
            await ctx.tick().repeat(rng.randint(0, 3) + 1)
            sleeping.discard(ctx.get(bench.dut.event_queue))
            ctx.set(bench.dut.acknowledge, 1)
            await ctx.tick()
            ctx.set(bench.dut.acknowledge, 0)

    bench.run(poster, host)
    assert lists == {queue: list(range(queue, posts, 2)) for queue in (0, 1)}


def burst_of_posts(component=Completion):
    """Post to one of many queues, as fast as the posts are taken. Returns what its consumer finds."""
    bench = Bench(NARROW.replace(completion_queues=8, completion_batch=2), component=component)
    found = []

    async def script(ctx):
        consumer = await bench.setup(ctx, 5, log2=4, batch=2, lag=100)
        for number in range(16):
            await bench.post(ctx, 5, number)
        for _ in range(600):
            await ctx.tick()
            while (entry := consumer.look()) is not None:
                found.append(entry["descriptor"])
                consumer.take()

    bench.run(script)
    return found


def test_posts_to_one_queue_do_not_outrun_the_look_at_the_others():
    assert burst_of_posts() == list(range(16))


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1 << 30), log2=st.integers(1, 3), early=st.integers(0, 12))
def test_a_slow_consumer_gets_an_overrun_and_no_garbage(seed, log2, early):
    """`early` entries are consumed while they come, then none. Entries that fit follow, then OVERRUN, then nothing."""
    config = NARROW.replace(completion_queues=2, completion_batch=2)
    bench = Bench(config, seed=seed)
    posts, found, failures = early + 12, [], []

    async def script(ctx):
        consumer = await bench.setup(ctx, 0, log2=log2, stall=0, batch=2, lag=5)
        other = await bench.setup(ctx, 1)

        async def drain():
            while (entry := consumer.look()) is not None:
                found.append((entry["descriptor"], entry["status"]))
                consumer.take()

        for number in range(early):
            await bench.post(ctx, 0, number)
            while len(found) <= number:
                await drain()
                await ctx.tick()
            assert not await bench.consume(ctx, 0, consumer.index)
        for number in range(early, posts):
            await bench.post(ctx, 0, number)
        # It holds no other queue up.
        await bench.post(ctx, 1, 7)
        await ctx.tick().repeat(400)
        await drain()
        assert other.look()["descriptor"] == 7
        assert ctx.get(bench.dut.failed_queue) == 0
        room = (1 << log2) - 1
        last = early + room
        assert found[:last] == [(number, 0) for number in range(last)]
        assert found[last:] == [(last, CompletionStatus.OVERRUN)]
        assert ctx.get(bench.dut.dropped) == posts - last - 1

        # Set up again, it works; the host has cleared the ring.
        bench.memory[0x1000:0x1400] = bytes(0x400)
        again = await bench.setup(ctx, 0, log2=log2, stall=0)
        await bench.post(ctx, 0, 99)
        await ctx.tick().repeat(200)
        assert again.look()["descriptor"] == 99

    async def failed(ctx):
        async for _, _, failed in ctx.tick().sample(bench.dut.failed):
            failures.append(failed)

    bench.simulator.add_process(failed)
    bench.run(script)
    assert sum(failures) == 1


@BUSES
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("lag", [0, 40, 300])
def test_entries_are_collected_but_no_longer_than_the_lag(config, batch, lag):
    """The bound of the docstring on a bus without waits: lag, a look at the other queues, a burst."""
    dut = Completion(config)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    memory = bytearray(0x2000)
    axi = AxiMemory(dut.axi, memory, data_bits=config.bus_bits, rng=random.Random(1))
    simulator.add_testbench(axi.process, background=True)

    async def hand(ctx, stream, **payload):
        ctx.set(stream.payload, payload)
        ctx.set(stream.valid, 1)
        while not ctx.get(stream.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(stream.valid, 0)

    async def bench(ctx):
        await hand(ctx, dut.setup, queue=1, base=0x1000, entries_log2=4, batch=batch, lag_cycles=lag, stall=1)
        for number in range(6):
            await hand(ctx, dut.post, queue=1, descriptor=number, entry=1)
            waited = 0
            while not memory[0x1000 + 8 * number + 7]:
                await ctx.tick()
                waited += 1
                if waited == 2 * lag + 100:
                    break
            # Each is alone: it waits for others, but where the entries reach a multiple of what may be collected.
            alone = batch > 1 and (number + 1) % config.completion_batch
            assert waited <= (lag if alone else 0) + config.completion_queues + 12, number
            assert waited >= lag or not alone
        # Two at once are one burst.
        before = len(axi.bursts)
        for number in (6, 7):
            await hand(ctx, dut.post, queue=1, descriptor=number, entry=1)
        await ctx.tick().repeat(30)
        assert memory[0x1000 + 8 * 7 + 7]
        if batch == 2 and lag:
            assert len(axi.bursts) - before == 1

    simulator.add_testbench(bench)
    simulator.run()


def test_a_bus_error_ends_the_queue_and_is_told():
    dut = Completion(NARROW)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    memory = bytearray(0x2000)
    axi = AxiMemory(
        dut.axi, memory, data_bits=32, rng=random.Random(1), fails=lambda address: address < 0x1100
    )
    simulator.add_testbench(axi.process, background=True)
    failures = []

    async def watch(ctx):
        async for _, _, failed in ctx.tick().sample(dut.failed):
            failures.append(failed)

    async def bench(ctx):
        for queue, base in ((0, 0x1000), (2, 0x1200)):
            ctx.set(dut.setup.payload, {"queue": queue, "base": base, "entries_log2": 3, "batch": 1})
            ctx.set(dut.setup.valid, 1)
            await ctx.tick()
        ctx.set(dut.setup.valid, 0)
        for queue, status_address in ((2, 0x1800), (0, 0x1800), (0, 0x1804), (2, 0x10)):
            payload = {"queue": queue, "descriptor": 3, "entry": 1, "write_back": 1}
            ctx.set(dut.post.payload, {**payload, "status_address": status_address})
            ctx.set(dut.post.valid, 1)
            while not ctx.get(dut.post.ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(dut.post.valid, 0)
            await ctx.tick().repeat(60)
        # In queue 0 one entry failed and the next was dropped; a status word that failed ends no queue.
        assert sum(failures) == 2 and ctx.get(dut.failed_queue) == 2
        assert ctx.get(dut.dropped) == 1
        assert memory[0x1000:0x1010] == bytes(16)
        assert memory[0x120F] == memory[0x1207] == 0x80
        # Queue 0 alone is broken; of queue 2 the first entry says OK, the one whose status word failed does not.
        assert ctx.get(dut.broken) == 0b1
        told = [int.from_bytes(memory[at : at + 4], "little") >> 16 & 0x1F for at in (0x1200, 0x1208)]
        assert told == [CompletionStatus.OK, CompletionStatus.BUS_ERROR]
        ctx.set(dut.setup.payload, {"queue": 0, "base": 0x1300, "entries_log2": 3, "batch": 1})
        ctx.set(dut.setup.valid, 1)
        await ctx.tick()
        ctx.set(dut.setup.valid, 0)
        await ctx.tick()
        assert ctx.get(dut.broken) == 0

    simulator.add_process(watch)
    simulator.add_testbench(bench)
    simulator.run()


def wrap_run(config, *, log2, stall, posts, **widths):
    """`posts` entries through a ring of `2 ** log2`, by a consumer that arms and sleeps."""
    seed = 10 * log2 + config.completion_batch
    bench = Bench(config, seed=seed, delay=6, **widths)
    first = widths.get("first_index", 0)
    consumers, done = [], [0]

    async def producer(ctx):
        lag, batch = bench.rng.choice([0, 20]), bench.rng.choice([1, config.completion_batch])
        consumers.append(await bench.setup(ctx, 0, log2=log2, batch=batch, lag=lag, stall=stall))
        consumers[0].index = first
        for number in range(posts):
            while not stall and number - done[0] >= (1 << log2) - 1:
                await ctx.tick()
            await bench.post(ctx, 0, number)

    async def reader(ctx):
        while not consumers:
            await ctx.tick()
        consumer, seen = consumers[0], 0
        while seen < posts:
            if (entry := consumer.look()) is not None:
                assert entry["descriptor"] == seen
                seen += 1
                consumer.take()
                continue
            assert not await bench.consume(ctx, 0, consumer.index, arm=1)
            done[0] = seen
            start = bench.cycle
            while not ctx.get(bench.dut.event):
                await ctx.tick()
                assert bench.cycle - start < 500, f"seed {seed}: stands still after {seen} entries"
            ctx.set(bench.dut.acknowledge, 1)
            await ctx.tick()
            ctx.set(bench.dut.acknowledge, 0)
        assert ctx.get(bench.dut.dropped) == 0

    bench.run(producer, reader)


@pytest.mark.parametrize(
    ("batch", "stall", "log2"),
    [
        pytest.param(batch, stall, log2, marks=[] if (batch, stall, log2) in ((1, 1, 2), (4, 0, 3)) else full)
        for batch in (1, 2, 4, 8)
        for stall in (0, 1)
        for log2 in range(max(1, batch.bit_length() - 1), 5)
    ],
)
def test_indices_and_ages_go_over_their_wrap(batch, stall, log2):
    """Indices of 5 bits, and a clock of 6 bits by which entries age."""
    config = NARROW.replace(completion_queues=1, completion_batch=batch)
    wrap_run(config, log2=log2, stall=stall, posts=72, index_bits=5, stamp_bits=6)


@pytest.mark.parametrize("stall", [0, 1])
def test_entry_65536_is_written_at_the_start_of_the_ring(stall):
    """The card's own 16 bits: the unit once stood still there for ever, and every queue of the card with it."""
    wrap_run(NARROW, log2=3, stall=stall, posts=28, first_index=65536 - 16)


@pytest.mark.parametrize("write_back", [0, 1])
@pytest.mark.parametrize("config", [NARROW, WIDE], ids=["32-bit bus", "64-bit bus"])
def test_what_was_posted_before_a_set_up_goes_to_the_ring_that_there_was(config, write_back):
    """Posts come at several distances before the set-up that gives the queue to another owner, collected or not.

    All of them are in the old ring, none in the new one. Posts after it are the other way round.
    """
    for gap in (0, 1, 3, 6):
        bench = Bench(config, seed=gap, delay=6)

        async def script(ctx, bench=bench, gap=gap):
            old = await bench.setup(ctx, 1, log2=3, batch=8, lag=5000, owner=1, base=0x1000)
            for number in range(3):
                more = {"write_back": write_back, "status_address": 0x3000 + 4 * number}
                await bench.post(ctx, 1, number, **more)
            for _ in range(gap):
                await ctx.tick()
            new = await bench.setup(ctx, 1, log2=3, batch=1, owner=2, base=0x2000)
            await bench.post(ctx, 1, 3)
            for _ in range(300):
                await ctx.tick()
            for ring, numbers in ((old, [0, 1, 2]), (new, [3])):
                for number in numbers:
                    assert ring.look()["descriptor"] == number
                    ring.take()
                assert ring.look() is None
            assert ctx.get(bench.dut.dropped) == 0
            for number in range(3):
                status = int.from_bytes(bench.memory[0x3000 + 4 * number :][:4], "little")
                assert bool(status >> 31) == bool(write_back)

        bench.run(script)


@pytest.mark.parametrize("entries_log2", [0, 3])
def test_a_post_that_a_full_queue_holds_is_not_the_next_owners(entries_log2):
    """A queue that stalls holds a post. Then it is set up anew, or switched off.

    The post's entry is dropped and counted, its status word written. Another queue's post that waits behind the set-up
    is not touched.
    """
    bench = Bench(NARROW, seed=1, delay=6)

    async def script(ctx):
        dut = bench.dut
        dropped = Nearly(ctx, dut.dropped)
        await bench.setup(ctx, 0, log2=2, owner=1)
        for number in range(4):
            await bench.post(ctx, 0, number)
        fields = {"queue": 0, "descriptor": 77, "bytes": 5, "entry": 1, "write_back": 1}
        ctx.set(dut.post.payload, {**fields, "status_address": 0x3000})
        ctx.set(dut.post.valid, 1)
        for _ in range(60):
            await ctx.tick()
            assert not ctx.get(dut.post.ready)
        setup = {"queue": 0, "owner": 2, "base": 0x2000, "entries_log2": entries_log2, "batch": 1}
        ctx.set(dut.setup.payload, setup)
        ctx.set(dut.setup.valid, 1)
        while not ctx.get(dut.post.ready):
            await ctx.tick()
        assert ctx.get(dut.setup.ready)
        await ctx.tick()
        ctx.set(dut.setup.valid, 0)
        ctx.set(dut.post.valid, 0)
        await bench.post(ctx, 0, 5)
        for _ in range(100):
            await ctx.tick()
        assert int.from_bytes(bench.memory[0x3000:0x3004], "little") == 1 << 31 | 5
        # In a queue that is off the next one is lost, too.
        assert ctx.get(dut.dropped) == dropped(1 if entries_log2 else 2)
        found = entry_fields(int.from_bytes(bench.memory[0x2000:0x2008], "little"))
        assert (found["descriptor"], found["phases"]) == ((5, (1, 1)) if entries_log2 else (0, (0, 0)))

    bench.run(script)


def test_queues_are_asked_for():
    with pytest.raises(ConfigError) as error:
        Completion(preset(NicConfig, "tiny"))
    assert str(error.value) == "Completion: completion_queues = 0: at least 1"
