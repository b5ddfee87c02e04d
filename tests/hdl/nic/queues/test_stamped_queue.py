# amaranth: UnusedElaboratable=no
"""A queue whose stamps the card makes, against the firmware's VirtualClock and a sorted list; and by registers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.lib import data
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.firmware.virtual_clock import VirtualClock, before
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.queues.stamped_queue import StampedDmaQueue
from support.hdl.counting import Nearly

from ..test_engine_queues import STAMPS, enqueue, until_idle
from ..test_nic import Card

BITS, FLOWS, ENTRIES = 10, 3, 6


class Bench:
    """The queue before an engine that takes nothing until `drain`, so that the order is that of the stamps alone."""

    def __init__(self, start: int) -> None:
        self.dut = StampedDmaQueue(
            data.StructLayout({"number": 8}), 1, entries=ENTRIES, flows=FLOWS, stamp_bits=BITS
        )
        self.model = VirtualClock(channels=FLOWS, bits=BITS)
        self.rtc = start
        self.model.look(start)
        self.parts: set[int] = set()  # transfers that end no list

    def run(self, script: Any) -> None:
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)

        async def bench(ctx: Any) -> None:
            self.ctx = ctx
            ctx.set(self.dut.rtc, self.rtc)
            await script(self)

        simulator.add_testbench(bench)
        simulator.run()

    async def advance(self, ticks: int) -> None:
        """Let the clock go on, slowly enough for the scan."""
        for _ in range(ticks):
            self.rtc = (self.rtc + 1) % (1 << BITS)
            self.ctx.set(self.dut.rtc, self.rtc)
            await self.ctx.tick()
        self.model.look(self.rtc)

    async def set_vtick(self, flow: int, ticks: int) -> None:
        ctx, dut = self.ctx, self.dut
        ctx.set(dut.vtick_flow, flow)
        ctx.set(dut.vtick, ticks)
        ctx.set(dut.writes_vtick, 1)
        await ctx.tick()
        ctx.set(dut.writes_vtick, 0)
        self.model.set_vtick(flow, min(ticks, self.model.max_vtick_ticks))

    async def submit(self, number: int, *, flow: int | None, stamp: int = 0, more: int = 0) -> bool:
        """Submit a transfer. Returns whether it was taken."""
        ctx, dut = self.ctx, self.dut
        payload = {"command": {"number": number}, "stamp": stamp, "tag": number, "notify": 1, "more": more}
        ctx.set(dut.submit.payload, payload)
        ctx.set(dut.stamped, flow is not None)
        ctx.set(dut.flow, flow or 0)
        ctx.set(dut.submit.valid, 1)
        taken = ctx.get(dut.submit.ready)
        self.parts = self.parts | {number} if more else self.parts - {number}
        await ctx.tick()
        ctx.set(dut.submit.valid, 0)
        return bool(taken)

    async def drain(self) -> list[int]:
        """Take all out. Returns the numbers in the order of service."""
        ctx, dut = self.ctx, self.dut
        served: list[int] = []
        # All stamps are there.
        await ctx.tick().repeat(8 * ENTRIES + 8)
        while ctx.get(dut.busy):
            ctx.set(dut.start.ready, 1)
            went = ctx.get(dut.start.valid)
            if went:
                served.append(ctx.get(dut.start.payload.number))
            await ctx.tick()
            ctx.set(dut.start.ready, 0)
            ctx.set(dut.done, went)
            await ctx.tick()
            ctx.set(dut.done, 0)
        for number in served:
            if number in self.parts:
                continue
            assert ctx.get(dut.finished_valid) and ctx.get(dut.finished.tag) == number
            ctx.set(dut.take, 1)
            await ctx.tick()
            ctx.set(dut.take, 0)
        assert not ctx.get(dut.finished_valid)
        return served


ROUND = st.tuples(
    st.integers(0, 400),  # ticks before it
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 2, None]), st.integers(-100, 100)),
        min_size=1,
        max_size=ENTRIES + 2,
    ),
)


@settings(max_examples=15, deadline=None)
@given(
    start=st.integers(0, (1 << BITS) - 1),
    vticks=st.lists(st.integers(0, 60), min_size=FLOWS, max_size=FLOWS),
    rounds=st.lists(ROUND, min_size=1, max_size=5),
)
def test_the_order_is_that_of_virtual_clock(
    start: int, vticks: list[int], rounds: list[tuple[int, list[tuple[int | None, int]]]]
) -> None:
    """Bursts of flows, and transfers that bring a stamp. A transfer that finds no room is lost and counted."""

    async def script(b: Bench) -> None:
        refused, counted = 0, Nearly(b.ctx, b.dut.refused)
        for flow, ticks in enumerate(vticks):
            await b.set_vtick(flow, ticks)
        for ticks, transfers in rounds:
            await b.advance(ticks)
            waiting: list[tuple[int, int]] = []
            for number, (flow, own) in enumerate(transfers):
                room = len(waiting) < ENTRIES
                own_stamp = (b.rtc + own) % (1 << BITS)
                assert await b.submit(number, flow=flow, stamp=own_stamp) == room
                refused += not room
                if room:
                    stamp = own_stamp if flow is None else b.model.stamp(flow, b.rtc)
                    place = next(
                        (i for i, (other, _) in enumerate(waiting) if before(stamp, other, BITS)),
                        len(waiting),
                    )
                    waiting.insert(place, (stamp, number))
                assert b.ctx.get(b.dut.level) == len(waiting)
                assert b.ctx.get(b.dut.room) == ENTRIES - len(waiting)
            assert await b.drain() == [number for _, number in waiting]
        assert b.ctx.get(b.dut.refused) == counted(refused)

    Bench(start).run(script)


def test_a_list_takes_one_stamp() -> None:
    async def script(b: Bench) -> None:
        await b.set_vtick(0, 50)
        await b.set_vtick(1, 60)
        for number, (flow, more) in enumerate([(1, 0), (0, 1), (0, 1), (0, 0), (0, 0)]):
            await b.submit(number, flow=flow, more=more)
            # What stands there while nothing is submitted does not count.
            b.ctx.set(b.dut.submit.payload.more, 1 - more)
            await b.ctx.tick()
        # 1, 2 and 3 are a list at 50, 0 is at 60, 4 at 100: of three stamps it would be at 200.
        assert await b.drain() == [1, 2, 3, 0, 4]
        await b.submit(5, flow=1)  # at 120
        await b.submit(6, flow=0)  # at 150
        await b.submit(7, flow=None, stamp=(b.rtc + 149) % (1 << BITS))
        await b.submit(8, flow=None, stamp=(b.rtc + 151) % (1 << BITS))
        assert await b.drain() == [5, 7, 6, 8]

    Bench(0).run(script)


def test_flows_that_always_have_something_share_in_the_ratio_of_their_rates() -> None:
    """The Vticks are 4, 8 and 16 ticks, and the engine serves one in 4 ticks. More is asked for than there is, so
    service is by the stamps' order."""
    served = {0: 0, 1: 0, 2: 0}

    async def script(b: Bench) -> None:
        rng = random.Random(3)
        for flow in served:
            await b.set_vtick(flow, 4 << flow)
        inside = dict.fromkeys(served, 0)
        for _ in range(560):
            for flow in rng.sample(list(served), 3):
                if inside[flow] < 2:
                    assert await b.submit(flow, flow=flow)
                    inside[flow] += 1
            await b.ctx.tick().repeat(24)
            went = b.ctx.get(b.dut.start.payload.number)
            assert b.ctx.get(b.dut.start.valid)
            b.ctx.set(b.dut.start.ready, 1)
            await b.ctx.tick()
            b.ctx.set(b.dut.start.ready, 0)
            b.ctx.set(b.dut.done, 1)
            b.ctx.set(b.dut.take, 1)
            await b.ctx.tick()
            b.ctx.set(b.dut.done, 0)
            await b.ctx.tick()
            b.ctx.set(b.dut.take, 0)
            served[went] += 1
            inside[went] -= 1
            await b.advance(2)

    Bench(0).run(script)
    assert sum(served.values()) == 560
    for flow, part in ((0, 4), (1, 2), (2, 1)):
        assert abs(served[flow] - 560 * part / 7) <= 8, served


def test_stamps_by_the_registers_of_a_card() -> None:
    """Host DMAs of two flows. Flow 1 has put four in before flow 0 comes; they go behind flow 0's."""
    config = STAMPS.replace(
        stamp_flows=2,
        host_dma_queue_entries=7,
        send_queue_order="arrival",
        rtc_cycles_num=8,
        rtc_cycles_den=1,
    )
    card = Card(config)

    async def script(ctx: Any, c: Card) -> None:
        for flow, ticks in ((0, 5), (1, 1000)):
            await c.write(ctx, "HOST_DMA_FLOW", flow=flow)
            await c.write(ctx, "HOST_DMA_VTICK", ticks=ticks)
        await ctx.tick().repeat(64)
        c.axi.stall = 1.0
        order = []
        for i, flow in enumerate([1, 1, 1, 1, 0, 0]):
            await c.write(ctx, "HOST_DMA_FLOW", flow=flow, stamped=1)
            # The stamp of the register is that of another time: it does not count.
            await enqueue(ctx, c, host=0, sram=16 * i, size=16, stamp=0x7FFF, tag=i, notify=1)
        await c.write(ctx, "HOST_DMA_FLOW", flow=0)
        now = (await c.read(ctx, "RTC"))["ticks"]
        await enqueue(ctx, c, host=0, sram=96, size=16, stamp=(now + 2000) % (1 << 16), tag=6, notify=1)
        await ctx.tick().repeat(40)
        state = await c.read(ctx, "HOST_DMA_QUEUE")
        taken = 7 - state["entries"]
        c.axi.stall = 0.0
        await until_idle(ctx, c, "HOST_DMA_CONTROL")
        while (entry := await c.read(ctx, "HOST_DMA_FINISHED"))["valid"]:
            order.append(entry["tag"])
        # Nothing goes before the transfers that the engine had taken at once. Then come 4 and 5; 1 at 2000 and the one
        # that brought 2000 later; the rest.
        assert taken in (1, 2) and order[:taken] == list(range(taken))
        assert order[taken:] == [i for i in (4, 5, 0, 1, 6, 2, 3) if i >= taken]

    card.run(script)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigError) as error:
        preset(NicConfig, "tiny", stamp_flows=4)
    assert str(error.value) == (
        "NicConfig: stamp_flows = 4: needs host_dma_queue_order or send_queue_order = 'timestamp', and entries"
    )
    with pytest.raises(ConfigError) as error:
        STAMPS.replace(stamp_flows=1024)
    assert str(error.value) == (
        "NicConfig: rtc_bits = 16: at least 17 for stamps of 1024 flows (the scan comes to each in time)"
    )
    names = {"HOST_DMA_FLOW", "HOST_DMA_VTICK", "SEND_FLOW", "SEND_VTICK"}
    assert not names & set(nic_registers(STAMPS))
    assert names <= set(nic_registers(STAMPS.replace(stamp_flows=4)))
