"""Doorbells against plain models: none lost, none reordered, at every depth and across the queue's wraps."""

from collections import deque

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.doorbell import Doorbell
from support.hdl.counting import Nearly


def simulate(config, script):
    dut = Doorbell(config)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await script(ctx, dut)

    simulator.add_testbench(bench)
    simulator.run()


def queued(entries, channels=4, **changes):
    return preset(
        NicConfig, "tiny", doorbell="queue", doorbell_queue_entries=entries, channels=channels, **changes
    )


def ring(ctx, dut, write):
    ctx.set(dut.ring.valid, write is not None)
    channel, word = write or (0, 0)
    ctx.set(dut.ring.payload, {"channel": channel, "word": word})


@settings(max_examples=30, deadline=None, print_blob=True)
@given(
    entries=st.integers(2, 9),
    channels=st.sampled_from([1, 3, 4, 1024]),
    rhythm=st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 5)), min_size=10, max_size=60),
    pipelined=st.booleans(),
)
def test_queue_keeps_every_doorbell_in_order(entries, channels, rhythm, pipelined):
    writes = [(channel, word * 0x10001) for word, (_, _, channel) in enumerate(rhythm)]
    expected = [(c, word & 0x1FFFFF) for c, word in writes if c < channels]
    taken, seen = [], []

    async def script(ctx, dut):
        todo, refused, held, current = deque(writes), 0, 0, None
        counted = Nearly(ctx, dut.refusals)
        for may_ring, may_pop, _ in rhythm:
            if current is None and may_ring:
                current = todo.popleft()
            ring(ctx, dut, current)
            ctx.set(dut.pop, may_pop)
            waiting = len(taken) - len(seen)
            assert ctx.get(dut.waiting) == waiting and ctx.get(dut.pending) == (waiting > 0)
            assert ctx.get(dut.refusals) == counted(refused)
            assert not ctx.get(dut.word_valid)
            if current is not None:
                outside = current[0] >= channels
                assert ctx.get(dut.refused) == outside
                ready = ctx.get(dut.ring.ready)
                # Held off while full, or one would be lost; and not when empty or half empty, or for long.
                # (A pipelined queue's last two places are on the way to its head.)
                if outside or waiting < entries - 1 - pipelined:
                    assert ready
                elif waiting == entries:
                    assert not ready
                held = 0 if ready or waiting == entries else held + 1
                assert held <= 1 + pipelined
                if ready:
                    refused += outside
                    taken.extend([] if outside else [current])
                    current = None
            if ctx.get(dut.head_valid) and may_pop:
                head = ctx.get(dut.head)
                seen.append((head.channel, head.word))
            await ctx.tick()
        ring(ctx, dut, None)
        ctx.set(dut.pop, 1)
        for _ in range(entries + 5):
            if ctx.get(dut.head_valid):
                head = ctx.get(dut.head)
                seen.append((head.channel, head.word))
            await ctx.tick()
        assert not ctx.get(dut.pending)

    simulate(queued(entries, channels, pipelined=pipelined), script)
    assert seen == expected[: len(seen)] and len(seen) == len(taken)


@pytest.mark.parametrize("entries", [2, 3, 4, 5])
def test_write_and_pop_in_one_cycle_at_every_fill(entries):
    """For every fill, at every place of the pointers, a push and a pop come together; then all comes out."""

    async def script(ctx, dut):
        next_word, oldest = 0, 0
        for fill in range(entries + 1):
            for _ in range(entries):
                while next_word - oldest < fill:
                    ring(ctx, dut, (1, next_word))
                    next_word += ctx.get(dut.ring.ready)
                    await ctx.tick()
                ring(ctx, dut, None)
                await ctx.tick().repeat(2)
                ring(ctx, dut, (2, next_word))
                ctx.set(dut.pop, 1)
                pushed, popped = ctx.get(dut.ring.ready), ctx.get(dut.head_valid)
                assert (pushed, popped) == (fill < entries, fill > 0)
                if popped:
                    assert ctx.get(dut.head).word == oldest
                await ctx.tick()
                ring(ctx, dut, None)
                next_word, oldest = next_word + pushed, oldest + popped
                for _ in range(entries + 2):
                    if ctx.get(dut.head_valid):
                        assert ctx.get(dut.head).word == oldest
                        oldest += 1
                    await ctx.tick()
                ctx.set(dut.pop, 0)
                assert oldest == next_word and not ctx.get(dut.pending)

    simulate(queued(entries), script)


# Few channels, so that a ring and a look meet in one cycle often.
CHANNEL = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 63, 66])


@settings(max_examples=30, deadline=None, print_blob=True)
@given(
    channels=st.sampled_from([1, 3, 4, 64]),
    steps=st.lists(st.tuples(st.none() | CHANNEL, CHANNEL, st.booleans()), min_size=20, max_size=60),
)
def test_polled_words_agree_with_the_model(channels, steps):
    async def script(ctx, dut):
        words, valid, refused = [0] * channels, [False] * channels, 0
        counted = Nearly(ctx, dut.refusals)
        for word, (write, select, take) in enumerate(steps, start=0x7FFFFF00):
            ring(ctx, dut, None if write is None else (write, word))
            ctx.set(dut.select, select)
            ctx.set(dut.take, take)
            assert ctx.get(dut.ring.ready)
            exists = select < channels
            assert ctx.get(dut.word_valid) == (exists and valid[select])
            assert ctx.get(dut.word) == (words[select] if exists else 0)
            assert ctx.get(dut.pending) == ctx.get(dut.waiting) == any(valid)
            assert ctx.get(dut.refusals) == counted(refused)
            assert not ctx.get(dut.head_valid)
            await ctx.tick()
            if take and exists:
                valid[select] = False
            if write is not None:
                if write < channels:
                    words[write], valid[write] = word & 0x7FFFFFFF, True
                else:
                    refused += 1

    simulate(preset(NicConfig, "tiny", doorbell="polled", channels=channels), script)


def test_a_word_rung_in_the_cycle_of_a_look_is_seen_by_the_next_look():
    async def script(ctx, dut):
        ring(ctx, dut, (2, 7))
        await ctx.tick()
        ring(ctx, dut, (2, 8))
        ctx.set(dut.select, 2)
        ctx.set(dut.take, 1)
        assert (ctx.get(dut.word), ctx.get(dut.word_valid)) == (7, 1)
        await ctx.tick()
        ring(ctx, dut, None)
        assert (ctx.get(dut.word), ctx.get(dut.word_valid)) == (8, 1)
        await ctx.tick()
        assert not ctx.get(dut.word_valid) and not ctx.get(dut.pending)

    simulate(preset(NicConfig, "tiny", doorbell="polled"), script)
