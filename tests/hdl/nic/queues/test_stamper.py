"""VirtualClock stamps in hardware against the firmware's own."""

from random import Random

import pytest
from amaranth import ResetInserter, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.firmware.virtual_clock import VirtualClock
from lanikai.hdl.config import ConfigError
from lanikai.hdl.nic.queues.stamper import Stamper

BITS = 9


class Bench:
    def __init__(self, channels, start):
        self.dut = Stamper(channels=channels, bits=BITS)
        self.model = VirtualClock(channels=channels, bits=BITS)
        self.rtc = start
        self.model.look(start)

    def run(self, script, top=None):
        simulator = Simulator(self.dut if top is None else top)
        simulator.add_clock(1e-6)

        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.rtc, self.rtc % (1 << BITS))
            await script(self)

        simulator.add_testbench(bench)
        simulator.run()

    async def tick(self, ticks=1):
        await self.ctx.tick()
        self.rtc += ticks
        self.ctx.set(self.dut.rtc, self.rtc % (1 << BITS))

    async def set_vtick(self, channel, ticks):
        self.ctx.set(self.dut.write.payload, {"channel": channel, "ticks": ticks})
        self.ctx.set(self.dut.write.valid, 1)
        await self.tick()
        self.ctx.set(self.dut.write.valid, 0)
        if channel < self.dut.channels:
            self.model.set_vtick(channel, min(ticks, self.model.max_vtick_ticks))

    async def stamp(self, channel, *, ticks=1, wait=0):
        """Ask for a request's stamp, which the model agrees with, taken `wait` cycles later. Returns it and the cycles
        that it took to come."""
        ctx, dut = self.ctx, self.dut
        ctx.set(dut.request.payload, channel)
        ctx.set(dut.request.valid, 1)
        while not ctx.get(dut.request.ready):
            await self.tick(ticks)
        wanted = self.model.stamp(channel, self.rtc % (1 << BITS))
        await self.tick(ticks)
        ctx.set(dut.request.valid, 0)
        cycles = 1
        while not ctx.get(dut.stamp.valid):
            await self.tick(ticks)
            cycles += 1
        for _ in range(wait):
            await self.tick(ticks)
        assert ctx.get(dut.stamp.valid) and ctx.get(dut.stamp.payload.channel) == channel
        assert ctx.get(dut.stamp.payload.ticks) == wanted
        ctx.set(dut.stamp.ready, 1)
        await self.tick(ticks)
        ctx.set(dut.stamp.ready, 0)
        assert not ctx.get(dut.stamp.valid)
        return wanted, cycles


@settings(max_examples=20, deadline=None, print_blob=True)
@given(
    channels=st.sampled_from([1, 3, 4]),
    start=st.integers(0, (1 << BITS) - 1),
    steps=st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 200), st.integers(0, 1), st.sampled_from([0, 0, 0, 3, 80, 300])
        ),
        min_size=1,
        max_size=25,
    ),
)
def test_agrees_with_the_firmware(channels, start, steps):
    """Vticks of any length, stamps close upon each other and after idle times, on a clock of 9 bits."""

    async def script(b):
        for channel, number, ticks, idle in steps:
            for _ in range(idle):
                await b.tick()
                b.model.look(b.rtc % (1 << BITS))
            if idle == 3:
                await b.set_vtick(channel % channels, number)
            await b.stamp(channel % channels, ticks=ticks, wait=idle % 7)

    Bench(channels, start).run(script)


@pytest.mark.parametrize("wraps", [0.3, 0.6, 1.0, 2.4])
def test_an_idle_channel_of_any_age_starts_from_the_clock(wraps):
    async def script(b):
        await b.set_vtick(1, 40)
        await b.stamp(1)
        for _ in range(round(wraps * (1 << BITS))):
            await b.tick()
            b.model.look(b.rtc % (1 << BITS))
        now = b.rtc
        found, cycles = await b.stamp(1)
        # The scan may have been before it.
        assert (found - now - 40) % (1 << BITS) in range(5) and cycles == 3

    Bench(4, 0).run(script)


def test_a_scan_begins_with_each_quarter_of_the_clocks_range():
    """It is over within 16 cycles a channel; otherwise the stamper rests, also with stamps ahead of the clock."""
    channels, quarter = 4, 1 << (BITS - 2)

    async def script(b):
        await b.set_vtick(1, quarter)
        while not b.ctx.get(b.dut.rests):
            await b.tick()
        busy = {}
        while b.rtc < 2 << BITS:
            if b.rtc % (1 << BITS) == 150:
                await b.stamp(1)
            if not b.ctx.get(b.dut.rests):
                busy.setdefault(b.rtc // quarter, []).append(b.rtc % quarter)
            await b.tick()
        # From the start of the quarter until the last channel's look, of 4 cycles, is over.
        assert len(busy) == 7 and all(cycles[0] == 0 for cycles in busy.values())
        assert {cycles[-1] for cycles in busy.values()} == {16 * (channels - 1) + 5}

    Bench(channels, 0).run(script)


def test_time_may_pass_over_rests():
    """The clock jumps up to the next quarter of its range whenever the stamper rests, as in a simulation: stamps are
    those of the firmware."""
    seed = Random().randrange(1 << 31)
    print("seed", seed)
    chance = Random(seed)
    quarter, jumps = 1 << (BITS - 2), []

    async def script(b):
        for channel in range(3):
            await b.set_vtick(channel, chance.choice([1, 40, quarter]))
        for _ in range(150):
            until = b.rtc + chance.randrange(quarter)
            while b.rtc < until:
                ahead = min(until, (b.rtc // quarter + 1) * quarter) - b.rtc - 1
                jumps.append(ahead if ahead > 1 and b.ctx.get(b.dut.rests) else 1)
                await b.tick(jumps[-1])
                b.model.look(b.rtc % (1 << BITS))
            await b.stamp(chance.randrange(3), ticks=chance.randrange(2))

    Bench(3, chance.randrange(1 << BITS)).run(script)
    assert max(jumps) > 20


def test_after_a_reset_no_channel_is_ahead_of_the_clock():
    """The memory of auxVCs is not reset, nor are Vticks; the clock begins anew."""
    channels, reset = 3, Signal()
    bench = Bench(channels, 40)

    async def script(b):
        for channel in range(channels):
            await b.set_vtick(channel, 10 + channel)
            for _ in range(20):
                await b.stamp(channel, ticks=0)
        b.ctx.set(reset, 1)
        await b.ctx.tick()
        b.ctx.set(reset, 0)
        b.rtc = 0
        b.ctx.set(b.dut.rtc, 0)
        for channel in range(channels):
            b.model = VirtualClock(channels=channels, bits=BITS)
            b.model.set_vtick(channel, 10 + channel)
            assert (await b.stamp(channel, ticks=0))[0] == 10 + channel

    bench.run(script, ResetInserter(reset)(bench.dut))


def test_a_channel_that_does_not_exist_changes_nothing():
    async def script(b):
        await b.set_vtick(2, 7)
        await b.set_vtick(3, 99)
        first, _ = await b.stamp(2, ticks=0)
        assert (await b.stamp(2, ticks=0))[0] == (first + 7) % (1 << BITS)

    Bench(3, 20).run(script)


def test_sizes_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"^Stamper: channels = 0: at least 1$"):
        Stamper(channels=0)
    with pytest.raises(ConfigError, match=r"^Stamper: bits = 16: at least 17 for 1024 channels"):
        Stamper(channels=1024, bits=16)
