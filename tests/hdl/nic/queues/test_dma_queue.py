# amaranth: UnusedElaboratable=no
"""A queue in front of a plain engine that takes and ends transfers at random, against lists in Python."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.lib import data
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError
from lanikai.hdl.nic.queues.dma_queue import IN_ENGINE, DmaQueue
from support.hdl.counting import Nearly

RESULT = data.StructLayout({"low": 2, "high": 2})


class Bench:
    """A bench with writes at random, with room or without. An engine ends in order; firmware takes what has ended."""

    def __init__(self, *, entries: int, seed: int, rates: tuple[float, float, float], lists: bool) -> None:
        self.dut = DmaQueue(data.StructLayout({"number": 12}), RESULT, entries=entries)
        self.rng = random.Random(seed)
        self.entries, self.rates, self.lists = entries, rates, lists
        self.waiting: list[dict[str, int]] = []
        self.inside: list[dict[str, int]] = []
        self.owed: list[tuple[int, int]] = []
        self.results: list[tuple[int, int]] = []
        self.refused = self.ended = self.so_far = 0

    async def run(self, ctx: Any) -> None:
        dut, rng = self.dut, self.rng
        number, goes_on = 0, False
        refused, ended = Nearly(ctx, dut.refused, 3), Nearly(ctx, dut.ended_count, 9)
        for cycle in range(400):
            busy_end = cycle < 300
            entry = {
                "command": {"number": number},
                "tag": number * 7 % 256,
                "notify": rng.randrange(2),
                "more": int(self.lists and busy_end and rng.random() < 0.3),
            }
            # At the end only what ends a list comes in, and all goes out.
            submit = rng.random() < self.rates[0] if busy_end else goes_on
            ready = rng.random() < self.rates[1] or not busy_end
            done = bool(self.inside) and (rng.random() < self.rates[1] or not busy_end)
            take = rng.random() < self.rates[2] or not busy_end
            result = rng.randrange(16) if done else 0
            ctx.set(dut.submit.valid, submit)
            ctx.set(dut.submit.payload, entry)
            ctx.set(dut.start.ready, ready)
            ctx.set(dut.done, done)
            ctx.set(dut.result, {"low": result & 3, "high": result >> 2})
            ctx.set(dut.take, take)
            assert ctx.get(dut.level) == len(self.waiting)
            assert ctx.get(dut.room) == self.entries - len(self.waiting)
            assert ctx.get(dut.busy) == bool(self.waiting or self.inside)
            assert (ctx.get(dut.refused), ctx.get(dut.ended_count)) == (
                refused(self.refused),
                ended(self.ended),
            )
            assert ctx.get(dut.finished_valid) == bool(self.results)
            if self.results:
                found = ctx.get(dut.finished)
                assert (found.tag, found.result.low | found.result.high << 2) == self.results[0]
            promised = len(self.results) + sum(e["notify"] and not e["more"] for e in self.inside)
            head = self.waiting[0] if self.waiting else None
            may_start = head and len(self.inside) < IN_ENGINE
            if head and head["notify"] and not head["more"]:
                may_start = may_start and promised < self.entries + IN_ENGINE
            assert ctx.get(dut.start.valid) == bool(may_start)
            ends = done and not self.inside[0]["more"]
            assert ctx.get(dut.ended) == ends
            if take and self.results:
                self.results.pop(0)
            if done:
                gone = self.inside.pop(0)
                self.so_far = self.so_far or result
                if ends:
                    self.ended += 1
                    if gone["notify"]:
                        self.results.append((gone["tag"], self.so_far))
                    self.so_far = 0
            room = ctx.get(dut.submit.ready)
            assert room == (len(self.waiting) < self.entries)
            if may_start and ready:
                assert ctx.get(dut.start.payload.number) == head["number"]
                self.inside.append(self.waiting.pop(0))
            if submit and room:
                self.waiting.append({"number": number, **{k: entry[k] for k in ("tag", "notify", "more")}})
                goes_on, number = bool(entry["more"]), number + 1
            self.refused += submit and not room
            await ctx.tick()
        assert not (self.waiting or self.inside or self.results) and number > 0


@settings(max_examples=20, deadline=None)
@given(
    entries=st.sampled_from([1, 2, 3, 5]),
    seed=st.integers(0, 2**32),
    rates=st.tuples(*[st.sampled_from([0.2, 0.5, 0.9])] * 3),
    lists=st.booleans(),
)
def test_everything_ends_once_and_what_asked_for_it_is_told(
    entries: int, seed: int, rates: tuple[float, float, float], lists: bool
) -> None:
    bench = Bench(entries=entries, seed=seed, rates=rates, lists=lists)
    simulator = Simulator(bench.dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench.run)
    simulator.run()


def test_firmware_that_takes_no_results_stops_the_engine_and_loses_none() -> None:
    entries = 2
    dut = DmaQueue(data.StructLayout({"number": 8}), 1, entries=entries)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.start.ready, 1)
        started = 0
        for _ in range(60):
            ctx.set(dut.submit.valid, 1)
            ctx.set(dut.submit.payload, {"command": {"number": started}, "tag": started, "notify": 1})
            begun = ctx.get(dut.start.valid)
            started += begun
            await ctx.tick()
            ctx.set(dut.done, begun)
        assert started == entries + IN_ENGINE
        ctx.set(dut.submit.valid, 0)
        # As each is taken another starts.
        begun = 0
        for _ in range(60):
            ctx.set(dut.take, 1)
            ctx.set(dut.done, begun)
            begun = ctx.get(dut.start.valid)
            await ctx.tick()
        assert ctx.get(dut.ended_count) == entries + IN_ENGINE + entries
        assert not ctx.get(dut.finished_valid) and not ctx.get(dut.busy)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_sizes_are_checked() -> None:
    with pytest.raises(ConfigError) as error:
        DmaQueue(data.StructLayout({"number": 8}), 1, entries=0)
    assert str(error.value) == "DmaQueue: entries = 0: at least 1"
