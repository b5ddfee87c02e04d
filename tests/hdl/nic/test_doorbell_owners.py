"""Doorbells with owners, priorities and receive doorbells, against a plain model of queues."""

from collections import defaultdict, deque

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.doorbell import Doorbell
from support.hdl.counting import Nearly

OWNERS, CHANNELS = 3, 4


def configuration(entries=2, priorities=1, receive="none", owners=OWNERS, doorbell="queue"):
    return preset(
        NicConfig,
        "tiny",
        doorbell=doorbell,
        doorbell_queue_entries=entries,
        channels=CHANNELS,
        doorbell_priorities=priorities,
        receive_doorbells=receive,
        owners=owners,
    )


def simulate(config, script):
    dut = Doorbell(config)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await script(ctx, dut)

    simulator.add_testbench(bench)
    simulator.run()


async def assign(ctx, dut, table):
    for channel, (owner, priority, open_) in table.items():
        ctx.set(dut.assign, {"channel": channel, "owner": owner, "priority": priority, "open": open_})
        ctx.set(dut.assigns, 1)
        await ctx.tick()
    ctx.set(dut.assigns, 0)


def ring(ctx, dut, write):
    ctx.set(dut.ring.valid, write is not None)
    channel, word, receive, owner = write or (0, 0, 0, 0)
    payload = {"channel": channel, "word": word}
    if dut.config.receive_doorbells != "none":
        payload["receive"] = receive
    if dut.config.owners:
        payload["owner"] = owner
    ctx.set(dut.ring.payload, payload)


CHANNEL = st.integers(0, CHANNELS)
ASSIGNMENT = st.tuples(st.integers(0, OWNERS - 1), st.integers(0, 3), st.booleans())


@settings(max_examples=20, deadline=None)
@given(
    entries=st.integers(2, 5),
    priorities=st.sampled_from([1, 2, 4]),
    receive=st.sampled_from(["none", "merged", "separate"]),
    table=st.fixed_dictionaries(dict.fromkeys(range(CHANNELS), ASSIGNMENT)),
    owners=st.sampled_from([0, OWNERS]),
    rhythm=st.lists(
        st.tuples(
            st.booleans(), st.booleans(), st.booleans(), CHANNEL, st.booleans(), st.integers(0, OWNERS - 1)
        ),
        min_size=30,
        max_size=80,
    ),
)
def test_each_priority_is_in_order_and_no_stranger_is_heard(
    entries, priorities, receive, table, owners, rhythm
):
    config = configuration(entries, priorities, receive, owners)
    separate, merged = receive == "separate", receive == "merged"

    async def script(ctx, dut):
        if owners or priorities > 1:
            await assign(ctx, dut, table)
        queues = defaultdict(deque)  # bank, priority: (cycle of the write, channel, word)
        refused, current, cycle = 0, None, 0
        counted = Nearly(ctx, dut.refusals)

        def look(bank, pop):
            """Check one head against the model; take it if it is popped."""
            valid = ctx.get(dut.receive_head_valid if bank else dut.head_valid)
            mine = {priority: queue for (at, priority), queue in queues.items() if at == bank and queue}
            assert ctx.get(dut.receive_pending if bank else dut.pending) == bool(mine)
            seen = [priority for priority, queue in mine.items() if queue[0][0] + 2 <= cycle]
            assert valid or not seen
            if valid:
                head = ctx.get(dut.receive_head if bank else dut.head)
                priority = max(seen)
                assert (head.channel, head.word) == queues[bank, priority][0][1:]
                if pop:
                    queues[bank, priority].popleft()

        for may_ring, pop, receive_pop, channel, is_receive, owner in rhythm + [(0, 1, 1, 0, 0, 0)] * 60:
            if current is None and may_ring:
                # The word's own bit 20 is the other one, so that it is seen where it comes from.
                current = (channel, 0x100000 * (not is_receive) + cycle, int(is_receive), owner)
            ring(ctx, dut, current)
            ctx.set(dut.pop, pop)
            if separate:
                ctx.set(dut.receive_pop, receive_pop)
            assert ctx.get(dut.waiting) == sum(map(len, queues.values()))
            assert ctx.get(dut.refusals) == counted(refused)
            taken = None
            if current is not None:
                channel, word, is_receive, owner = current
                known = table.get(channel, (0, 0, False))
                stranger = channel >= CHANNELS or (owners and (not known[2] or known[0] != owner))
                assert ctx.get(dut.refused) == stranger
                ready = ctx.get(dut.ring.ready)
                priority = min(known[1], priorities - 1)
                bank = int(separate and is_receive)
                room = entries - len(queues[bank, priority])
                if stranger or room > 1:
                    assert ready
                elif room == 0:
                    assert not ready
                if ready:
                    refused += stranger
                    if not stranger:
                        word = word & 0xFFFFF | is_receive << 20 if merged else word & 0x1FFFFF
                        taken = (bank, priority), (cycle, channel, word)
                    current = None
            look(0, pop)
            if separate:
                look(1, receive_pop)
            if taken:
                queues[taken[0]].append(taken[1])
            await ctx.tick()
            cycle += 1
        assert not any(queues.values())

    simulate(config, script)


@settings(max_examples=15, deadline=None)
@given(
    steps=st.lists(
        st.tuples(CHANNEL, st.booleans(), CHANNEL, st.booleans(), st.booleans()), min_size=30, max_size=60
    )
)
def test_a_channel_has_two_polled_words(steps):
    async def script(ctx, dut):
        words = {}
        for word, (channel, receive, select, select_receive, take) in enumerate(steps, start=1):
            ring(ctx, dut, (channel, word, int(receive), 0))
            ctx.set(dut.select, select_receive << 10 | select)
            ctx.set(dut.take, take)
            found = words.get((select, select_receive))
            assert ctx.get(dut.word_valid) == (found is not None)
            if found:
                assert ctx.get(dut.word) == found
            assert ctx.get(dut.pending) == bool(words)
            await ctx.tick()
            if take:
                words.pop((select, select_receive), None)
            if channel < CHANNELS:
                words[channel, receive] = word

    simulate(configuration(receive="merged", owners=0, doorbell="polled"), script)


def test_a_channel_that_changes_hands_hears_its_new_owner_from_the_next_cycle_on():
    async def script(ctx, dut):
        await assign(ctx, dut, {2: (1, 0, 1)})
        for owner, new, heard in ((1, 2, True), (1, 2, False), (2, 0, True), (2, 0, False)):
            ring(ctx, dut, (2, 7, 0, owner))
            ctx.set(dut.pop, 1)
            ctx.set(dut.assign, {"channel": 2, "owner": new, "priority": 0, "open": 1})
            ctx.set(dut.assigns, 1)
            assert ctx.get(dut.refused) == (not heard)
            await ctx.tick()
        ctx.set(dut.assigns, 0)
        await assign(ctx, dut, {2: (0, 0, 0)})
        ring(ctx, dut, (2, 7, 0, 0))
        assert ctx.get(dut.refused)

    simulate(configuration(entries=4), script)


def test_an_assignment_of_a_channel_that_is_not_there_changes_no_other():
    """The table has as many rows as channels: the number after the last would be row 0."""

    async def script(ctx, dut):
        await assign(ctx, dut, {0: (1, 0, 1), CHANNELS: (2, 0, 1)})
        for owner in (1, 2):
            ring(ctx, dut, (0, 7, 0, owner))
            assert ctx.get(dut.refused) == (owner == 2)

    simulate(configuration(), script)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"doorbell_priorities": 2},
            "doorbell_priorities = 2: needs doorbell = queue; with polled words it is 1 at most",
        ),
        (
            {"receive_doorbells": "separate"},
            "receive_doorbells = separate: needs doorbell = queue; with polled words it is merged at most",
        ),
    ],
)
def test_polled_words_have_neither_classes_nor_queues(changes, message):
    with pytest.raises(ConfigError) as error:
        preset(NicConfig, "tiny", doorbell="polled", **changes)
    assert str(error.value) == f"NicConfig: {message}"
