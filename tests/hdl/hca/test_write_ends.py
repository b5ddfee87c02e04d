"""Ends of received messages: answers of the bus are taken whether or not the completion writer takes posts."""

import random

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import HcaConfig, preset
from lanikai.hdl.hca.layout import CqeStatus
from lanikai.hdl.hca.receive.write_ends import BURSTS_UNDER_WAY, WriteEnds
from support.formal.harness import mutate

CONFIG = preset(HcaConfig, "tiny")


def run(bench, component=WriteEnds):
    dut = component(CONFIG)

    async def whole(ctx):
        await bench(ctx, dut)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(whole)
    simulator.run()


def offer(ctx, dut, *, awaits, ends, qp, tag):
    ctx.set(dut.item.valid, 1)
    ctx.set(dut.item.payload.awaits, awaits)
    ctx.set(dut.item.payload.ends, ends)
    ctx.set(dut.item.payload.qp, qp)
    ctx.set(dut.item.payload.post.entry, {"tag": tag, "bytes": 100 + tag, "status": 0})


async def no_answer_waits_for_a_post(ctx, dut):
    """The lock of two adapters at load: completions wait for answers behind the one that waits for a completion."""
    for tag in range(BURSTS_UNDER_WAY):
        offer(ctx, dut, awaits=1, ends=1, qp=0, tag=tag)
        assert ctx.get(dut.item.ready)
        await ctx.tick()
    ctx.set(dut.item.valid, 0)
    for _ in range(BURSTS_UNDER_WAY):
        ctx.set(dut.answer, 1)
        assert ctx.get(dut.answer_ready)
        await ctx.tick()
    ctx.set(dut.answer, 0)
    ctx.set(dut.post.ready, 1)
    seen = []
    for _ in range(4 * BURSTS_UNDER_WAY):
        if ctx.get(dut.post.valid):
            seen.append(ctx.get(dut.post.payload.entry.tag))
        await ctx.tick()
    assert seen == list(range(BURSTS_UNDER_WAY))
    assert ctx.get(dut.empty)


def test_no_answer_waits_for_a_post():
    run(no_answer_waits_for_a_post)


def random_ends(component=WriteEnds, seed=1):
    """Bursts, answers some of which are errors, and posts that are taken late: each end once, in order, after its
    answers."""
    chance = random.Random(seed)

    async def bench(ctx, dut):
        answers, expected = [], []
        bad, tag, answered, seen, errors = {}, 0, 0, 0, 0
        last = None
        for cycle in range(3000):
            ctx.set(dut.item.valid, 0)
            if last is None and chance.random() < 0.6 and cycle < 2900:
                ends = chance.randrange(2)
                awaits = 1 if not ends else chance.randrange(2)
                tag += 1
                last = (awaits, ends, chance.randrange(2), tag)
            if last is not None:
                offer(ctx, dut, awaits=last[0], ends=last[1], qp=last[2], tag=last[3])
            goes = answered < len(answers) and chance.random() < 0.5
            ctx.set(dut.answer, goes)
            ctx.set(dut.error, answers[answered] if goes else chance.getrandbits(1))
            ctx.set(dut.post.ready, cycle >= 2900 or chance.random() < 0.3)
            await ctx.delay(1e-8)
            if ctx.get(dut.post.valid) and ctx.get(dut.post.ready):
                entry = ctx.get(dut.post.payload.entry)
                wanted, needs, error = expected[seen]
                assert answered >= needs, f"seed {seed}, cycle {cycle}: before its data"
                assert entry.tag == wanted
                assert entry.status == (CqeStatus.BUS_ERROR if any(answers[i] for i in error) else 0)
                seen += 1
            if ctx.get(dut.item.valid) and ctx.get(dut.item.ready):
                awaits, ends, qp, mine = last
                if awaits:
                    answers.append(chance.random() < 0.2)
                    bad.setdefault(qp, []).append(len(answers) - 1)
                if ends:
                    expected.append((mine, len(answers), bad.pop(qp, [])))
                last = None
            if goes:
                assert ctx.get(dut.answer_ready)
                errors += answers[answered]
                answered += 1
            await ctx.tick()
        assert seen == len(expected) > 300
        assert ctx.get(dut.bus_errors) == errors

    run(bench, component)


def test_ends_come_once_in_order_after_their_answers():
    random_ends()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.answer_ready.eq(1)", "self.answer_ready.eq(items.r_rdy & front.awaits & ~answered)"),
        ("taken.eq(answers.r_rdy & items.r_rdy", "taken.eq(items.r_rdy"),
        ("answers.w_data.eq(self.error)", "answers.w_data.eq(0)"),
        ("(answered | ~front.awaits)", "1"),
    ],
)
def test_a_mutant_of_the_ends_is_caught(old, new):
    component = mutate(WriteEnds, old, new)
    with pytest.raises((AssertionError, IndexError)):
        run(no_answer_waits_for_a_post, component)
        random_ends(component)
