"""Policies of injection control against plain models."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.injection.at_least_one import AtLeastOne
from lanikai.hdl.hca.injection.none import NoInjectionControl
from lanikai.hdl.hca.injection.policy import SetupKind
from lanikai.hdl.hca.injection.self_tuned import SelfTuned, SelfTuner
from support.formal.harness import mutate

SEED = 1
SMALL = HcaConfig(link=LinkConfig(flit_bits=128, vls=4, hop_bits=2), destinations=8)
FULL = HcaConfig(destinations=8)
"""16 VLs, of which the last one is for control packets."""


def run(dut, bench, *, clocked=True):
    async def whole(ctx):
        await bench(ctx, dut)

    simulator = Simulator(dut)
    if clocked:
        simulator.add_clock(1e-6)
    simulator.add_testbench(whole)
    simulator.run()


async def set_up(ctx, dut, kind, index, value):
    ctx.set(dut.setup, {"kind": kind, "index": index, "value": value})
    ctx.set(dut.setup_valid, 1)
    await ctx.tick()
    ctx.set(dut.setup_valid, 0)


def test_without_control_every_message_is_allowed():
    async def bench(ctx, dut):
        ctx.set(dut.control.vl_busy, 0xFFFF)
        ctx.set(dut.control.vl_full, 0xFFFF)
        await ctx.delay(1e-9)
        assert ctx.get(dut.control.allow)
        assert not ctx.get(dut.control.never)

    run(NoInjectionControl(FULL), bench, clocked=False)


def at_least_one(component=AtLeastOne, config=SMALL, seed=SEED):
    """Any ports of destinations, and any state of the adapter's VLs and the router's."""
    chance = random.Random(seed)
    ports = [chance.randrange(1 << config.link.hop_bits) for _ in range(config.destinations)]
    data_vls = config.link.vls - (config.link.vls == 16)
    all_busy = (1 << data_vls) - 1
    outcomes = []

    async def bench(ctx, dut):
        for node, port in enumerate(ports):
            await set_up(ctx, dut, SetupKind.OUTPUT_PORT, node, port)
        # Words of other kinds, and of nodes without a row, change nothing.
        await set_up(ctx, dut, SetupKind.FLIT_ENERGY, 1, ports[1] + 1)
        await set_up(ctx, dut, SetupKind.OUTPUT_PORT, config.destinations, ports[0] + 1)
        for _ in range(400):
            count = 1 << config.link.hop_bits
            none_free, some_taken = chance.getrandbits(count), chance.getrandbits(count)
            some_taken |= none_free
            busy = chance.choice([0, all_busy, all_busy & chance.getrandbits(data_vls)])
            node, vl = chance.randrange(config.destinations), chance.randrange(config.link.vls)
            # The VL of control packets has no say.
            ctx.set(dut.control.vl_busy, busy | chance.getrandbits(1) << config.link.vls - 1 & ~all_busy)
            ctx.set(dut.control.ask, {"destination": node, "vl": vl, "flits": 40, "packets": 1})
            ctx.set(dut.side, none_free | some_taken << count)
            await ctx.tick()
            router = ["all", "some", "none"][(some_taken >> ports[node] & 1) + (none_free >> ports[node] & 1)]
            adapter = "all" if busy == 0 else "none" if busy == all_busy else "some"
            expected = "all" in (router, adapter) or "none" not in (router, adapter)
            expected |= vl == data_vls
            assert bool(ctx.get(dut.control.allow)) == expected, f"seed {seed}: {router} {adapter}"
            assert not ctx.get(dut.control.never)
            outcomes.append((router, adapter))

    run(component(config), bench)
    assert len(set(outcomes)) == 9


@pytest.mark.parametrize("config", [SMALL, FULL], ids=["4 VLs", "16 VLs"])
def test_at_least_one_follows_its_rule(config):
    at_least_one(config=config)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" | ~some_taken", ""),
        (" | ~busy.any()", ""),
        ("(~busy.all() & ~none_free)", "~none_free"),
        ("(~busy.all() & ~none_free)", "~busy.all()"),
        ("read.addr.eq(control.ask.destination)", "read.addr.eq(0)"),
        (" & (self.setup.index < self.config.destinations)", ""),
        (" & (self.setup.kind == SetupKind.OUTPUT_PORT)", ""),
        ("control.ask.vl == data_vls", "0"),
    ],
)
def test_a_mutant_of_at_least_one_is_caught(old, new):
    with pytest.raises(AssertionError):
        at_least_one(mutate(AtLeastOne, old, new), FULL)


def test_self_tuned_holds_all_but_control_messages_while_the_network_throttles():
    async def bench(ctx, dut):
        for throttle in (0, 1):
            for vl in range(16):
                ctx.set(dut.side, throttle)
                ctx.set(dut.control.ask.vl, vl)
                await ctx.delay(1e-9)
                assert bool(ctx.get(dut.control.allow)) == (not throttle or vl == 15)

    run(SelfTuned(FULL), bench, clocked=False)


class PlainTuner:
    """The side band and the threshold in plain numbers. `cycle` is called with what it sees in each."""

    def __init__(self, buffers):
        self.buffers = buffers
        self.up, self.down = -(-buffers // 100), -(-4 * buffers // 100)
        self.threshold = self.up
        self.time = 0
        self.samples = deque([0, 0, 0], maxlen=3)  # the one under way last
        self.at = 0
        self.delivered = []
        self.previous = 0

    def estimate(self):
        before, known, _ = self.samples
        # Known is 32 cycles old when it arrives; the line has a slope of (known - before) / 32.
        return known + ((known - before) * (32 + self.time % 32) >> 5)

    def throttles(self):
        return self.estimate() > self.threshold

    def cycle(self, full, delivered):
        self.delivered.append(delivered)
        if self.time % 32 == 31:
            throttled = self.throttles()
            self.samples.append(full)
            if self.time % 96 == 95:
                # The period that has arrived ended a gathering ago.
                end = self.time + 1 - 32
                now = sum(self.delivered[max(0, end - 96) : end])
                if 4 * now < 3 * self.previous:
                    self.threshold = max(0, self.threshold - self.down)
                elif throttled:
                    self.threshold = min(self.buffers, self.threshold + self.up)
                self.previous = now
        self.time += 1


def tuner(component=SelfTuner, buffers=250, adapters=16, steady=1, seed=SEED, cycles=9000):
    """Loads that come and go: full buffers and flits delivered change by stretches of random length.

    Flits of a cycle are the fewer below those of their stretch, the more `steady` they are.
    """
    chance = random.Random(seed)
    model = PlainTuner(buffers)
    seen = []

    async def bench(ctx, dut):
        full, rate, left = 0, 0, 0
        for _ in range(cycles):
            if not left:
                left = chance.randrange(20, 900)
                full, rate = (
                    chance.choice([0, buffers, chance.randrange(buffers)]),
                    chance.randrange(adapters + 1),
                )
            left -= 1
            now = min(buffers, max(0, full + chance.randrange(-9, 10) * (full > 0)))
            delivered = rate - chance.randrange(rate + 1) // steady
            ctx.set(dut.full, now)
            ctx.set(dut.delivered, delivered)
            assert ctx.get(dut.estimate) == model.estimate(), f"seed {seed}, cycle {model.time}"
            assert ctx.get(dut.threshold) == model.threshold, f"seed {seed}, cycle {model.time}"
            assert bool(ctx.get(dut.throttle)) == model.throttles(), f"seed {seed}, cycle {model.time}"
            seen.append((model.threshold, model.throttles()))
            model.cycle(now, delivered)
            await ctx.tick()

    run(component(buffers=buffers, adapters=adapters), bench)
    thresholds = [threshold for threshold, _ in seen]
    assert min(thresholds) == 0
    assert max(thresholds) > 3 * model.up
    assert {throttles for _, throttles in seen} == {False, True}


def test_the_tuner_follows_its_rule():
    tuner()


def test_the_tuner_counts_the_flits_of_1024_adapters():
    """A period has up to 98,304 of them, more than 16 bits hold."""
    tuner(adapters=1024, steady=20)


@pytest.mark.parametrize("full", [0, 1, 250])
def test_an_empty_network_throttles_nobody_after_97_cycles(full):
    async def bench(ctx, dut):
        ctx.set(dut.full, full)
        await ctx.tick().repeat(200)
        assert bool(ctx.get(dut.throttle)) == (full > 200)
        ctx.set(dut.full, 0)
        await ctx.tick().repeat(97)
        for _ in range(200):
            assert not ctx.get(dut.throttle)
            await ctx.tick()

    run(SelfTuner(buffers=250, adapters=1), bench)


def test_the_threshold_stays_within_the_number_of_buffers():
    async def bench(ctx, dut):
        # Always throttled, and never a drop: up, a step every 96 cycles. 4 buffers: steps of 1.
        ctx.set(dut.full, 4)
        for _ in range(10):
            await ctx.tick().repeat(96)
            assert ctx.get(dut.threshold) <= 4
        assert ctx.get(dut.threshold) == 4

    run(SelfTuner(buffers=4, adapters=1), bench)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GATHER_CYCLES = 32", "GATHER_CYCLES = 64"),
        ("TUNING_GATHERS = 3", "TUNING_GATHERS = 4"),
        ("UP_PERCENT, DOWN_PERCENT = 1, 4", "UP_PERCENT, DOWN_PERCENT = 4, 1"),
        ("DROP_QUARTERS = 3", "DROP_QUARTERS = 4"),
        ("known.eq(under_way)", "known.eq(self.full)"),
        ("line.eq(line + slope)", "line.eq(line)"),
        ("m.d.sync += [period.eq(0), before.eq(arrived)]", "m.d.sync += [period.eq(0), before.eq(period)]"),
        ("Mux(self.threshold < self.down, 0, self.threshold - self.down)", "self.threshold - self.down"),
        ("m.Elif(self.throttle)", "m.Else()"),
    ],
)
def test_a_mutant_of_the_tuner_is_caught(old, new):
    with pytest.raises(AssertionError):
        tuner(mutate(SelfTuner, old, new))


@pytest.mark.parametrize("buffers", [0, 1 << 15])
def test_a_tuner_of_too_few_or_too_many_buffers_is_refused(buffers):
    with pytest.raises(ConfigError, match=rf"^SelfTuner: buffers = {buffers}: 1 to 32767$"):
        SelfTuner(buffers=buffers, adapters=1)


@pytest.mark.parametrize("adapters", [0, 1025])
def test_a_tuner_of_too_few_or_too_many_adapters_is_refused(adapters):
    with pytest.raises(ConfigError, match=f"^SelfTuner: adapters = {adapters}: 1 to 1024$"):
        SelfTuner(buffers=1, adapters=adapters)


def test_counts_of_16_bits_are_too_narrow():
    with pytest.raises(AssertionError):
        tuner(mutate(SelfTuner, "range(self._adapters * cycles + 1)", "16"), adapters=1024, steady=20)
