"""The rate control unit against a plain model, table 3.1 of the thesis, and clocks that wrap."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.rate.control import RateControl
from support.hdl.rate_model import RateModel

# gulati-thesis-2001 table 3.1: what is dispatched at t = 0, 1, ..., and the NDTs that stand before it.
PUBLISHED = Path(__file__).parents[4] / "sim" / "published.toml"
TABLE = tomllib.loads(PUBLISHED.read_text())["rate-table"]


class Bench:
    """A unit with its model beside it: every cycle the offer and the selected flow's state are compared."""

    def __init__(self, config, *, start=0):
        self.config, self.rtc = config, start
        self.model = RateModel(config.flows, max_lead=config.max_idt_ticks, max_lag=config.max_lag_ticks)
        # The NDTs reset to zero: on the model's line, the multiple of the clock's range nearest to `start`.
        span = 1 << config.rtc_bits
        self.model.ndt = [(start + span // 2 - 1) // span * span] * config.flows

    def run(self, script):
        self.dut = RateControl(self.config)
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-6)

        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.rtc, self.rtc % (1 << self.config.rtc_bits))
            await script(self)

        simulator.add_testbench(bench)
        simulator.run()

    @property
    def offer(self):
        valid, flow = self.ctx.get(self.dut.dispatch.valid), self.ctx.get(self.dut.dispatch.flow)
        return flow if valid else None

    async def cycle(self, ticks=0, *, select=0, **commands):
        """One cycle with `commands` (as `RateModel.cycle`), then `ticks` more on the clock; compares."""
        ctx, dut, bits = self.ctx, self.dut, self.config.rtc_bits
        dispatched, clear, enqueue = (commands.get(key) for key in ("dispatched", "clear", "enqueue"))
        write = commands.get("ndt") or commands.get("idt") or (select, 0)
        ctx.set(dut.dispatched.valid, dispatched is not None)
        ctx.set(dut.dispatched.payload, {"flow": dispatched or 0, "last": commands.get("last", False)})
        ctx.set(dut.clear.valid, clear is not None)
        ctx.set(dut.clear.payload, clear or 0)
        ctx.set(dut.enqueue.valid, enqueue is not None)
        ctx.set(dut.enqueue.payload, enqueue or 0)
        ctx.set(dut.select, write[0])
        ctx.set(dut.write_ticks, write[1] % (1 << bits))
        ctx.set(dut.write_idt, "idt" in commands)
        ctx.set(dut.write_ndt, "ndt" in commands)
        assert ctx.get(dut.dispatched.ready) and ctx.get(dut.enqueue.ready) and ctx.get(dut.clear.ready)
        await ctx.tick()
        for signal in (
            dut.dispatched.valid,
            dut.clear.valid,
            dut.enqueue.valid,
            dut.write_idt,
            dut.write_ndt,
        ):
            ctx.set(signal, 0)
        self.model.cycle(self.rtc, **commands)
        self.rtc += ticks
        ctx.set(dut.rtc, self.rtc % (1 << bits))
        assert self.offer == self.model.offer(self.rtc)
        ctx.set(dut.select, select)
        assert ctx.get(dut.ndt) == self.model.ndt[select] % (1 << bits)
        assert ctx.get(dut.idt) == self.model.idt[select]
        assert ctx.get(dut.valid) == self.model.valid[select]


def small(flows=4, bits=8):
    return preset(NicConfig, "tiny", flows=flows, rtc_bits=bits)


@pytest.mark.parametrize("start", [0, 250], ids=["from zero", "across the wrap"])
@pytest.mark.parametrize("unit", [1, 4], ids=["T=1 tick", "T=4 ticks"])
def test_table_3_1_tick_by_tick(start, unit):
    bench = Bench(small(flows=2), start=start)

    async def script(b):
        for flow, idt in enumerate(TABLE["idt"].values()):
            await b.cycle(select=flow, idt=(flow, idt * unit))
        for flow in (1, 0):
            await b.cycle(ndt=(flow, start))
            await b.cycle(enqueue=flow)
        for t, expected in enumerate(TABLE["dispatched"]):
            for flow, column in enumerate((TABLE["ndt_A"], TABLE["ndt_B"])):
                b.ctx.set(b.dut.select, flow)
                assert b.ctx.get(b.dut.ndt) == (start + unit * column[t]) % 256
            if expected == "-":
                assert b.offer is None
                await b.cycle(unit)
            else:
                assert b.offer == "AB".index(expected)
                await b.cycle(unit, dispatched=b.offer)

    bench.run(script)


@dataclass(frozen=True)
class Step:
    ticks: int
    select: int
    commands: dict


@st.composite
def cases(draw):
    """A unit and a few dozen cycles of commands: any flow, any mixture in a cycle."""
    flows = draw(st.sampled_from([1, 2, 3, 4, 7, 16]))
    flow = st.integers(0, flows - 1)
    ticks = st.sampled_from([0, 0, 1, 1, 1])
    steps = []
    for _ in range(draw(st.integers(10, 60))):
        commands = {}
        if draw(st.integers(0, 2)) == 0:
            commands["enqueue"] = draw(flow)
        take = draw(st.integers(0, 5))
        if take < 3:
            commands["dispatched"] = draw(flow) if take == 0 else "offer"
            commands["last"] = draw(st.booleans())
        rare = draw(st.integers(0, 19))
        if rare == 0:
            commands["clear"] = draw(flow)
        elif rare in (1, 2):
            commands["idt"] = (draw(flow), draw(st.integers(0, 12) | st.integers(0, 255)))
        elif rare == 3:
            commands["ndt"] = (draw(flow), draw(st.integers(-127, 127)))
        elif rare == 4:
            commands["idle"] = draw(st.integers(1, 150))
        steps.append(Step(draw(ticks), draw(flow), commands))
    return flows, draw(st.integers(0, 255)), steps


@settings(max_examples=40, deadline=None, print_blob=True)
@given(cases())
def test_agrees_with_the_model(case):
    """Random commands on a clock of 8 bits, which wraps: the model's integers do not."""
    flows, start, steps = case
    bench = Bench(small(flows=flows), start=start)

    async def script(b):
        for flow in range(flows):
            await b.cycle(ndt=(flow, start))
        for step in steps:
            commands = dict(step.commands)
            for _ in range(commands.pop("idle", 0)):
                await b.cycle(1, select=step.select)
            if commands.get("dispatched") == "offer":
                commands["dispatched"] = b.offer
            if "ndt" in commands:
                commands["ndt"] = (commands["ndt"][0], b.rtc + commands["ndt"][1])
            await b.cycle(step.ticks, select=step.select, **commands)

    bench.run(script)


def test_enqueue_in_the_cycle_of_the_last_dispatch_keeps_the_flow_and_its_pace():
    async def script(b):
        await b.cycle(idt=(1, 10))
        await b.cycle(enqueue=1)
        assert b.offer == 1
        await b.cycle(dispatched=1, last=True, enqueue=1)
        assert b.model.valid[1] and b.model.ndt[1] == 110 and b.offer is None
        for _ in range(9):
            await b.cycle(1)
            assert b.offer is None
        await b.cycle(1)
        assert b.offer == 1
        # Far behind its pace, the new token starts from the clock instead.
        for _ in range(30):
            await b.cycle(1)
        await b.cycle(dispatched=1, last=True, enqueue=1)
        assert b.model.ndt[1] == b.rtc == 140

    Bench(small(), start=100).run(script)


def test_dispatch_and_enqueue_of_two_flows_in_one_cycle():
    async def script(b):
        await b.cycle(idt=(2, 5))
        await b.cycle(enqueue=2)
        await b.cycle(dispatched=2, enqueue=0, select=2)
        assert b.model.ndt[2] == 5 and b.offer == 0
        await b.cycle(dispatched=0, last=True)
        assert b.offer is None
        for _ in range(5):
            await b.cycle(1)
        assert b.offer == 2

    Bench(small()).run(script)


def test_a_change_of_idt_acts_from_the_next_dispatch_on():
    async def script(b):
        await b.cycle(idt=(0, 20))
        await b.cycle(enqueue=0)
        await b.cycle(dispatched=0)
        await b.cycle(idt=(0, 4))
        assert b.model.ndt[0] == 20
        for _ in range(20):
            assert b.offer is None
            await b.cycle(1)
        # In the very cycle of the dispatch the old IDT counts.
        await b.cycle(dispatched=0, idt=(0, 7))
        assert b.model.ndt[0] == 24 and b.model.idt[0] == 7

    Bench(small()).run(script)


def test_an_unregulated_flow_is_offered_every_cycle():
    async def script(b):
        await b.cycle(1, enqueue=3)
        for _ in range(100):
            assert b.offer == 3
            await b.cycle(1, dispatched=3)

    Bench(small()).run(script)


@pytest.mark.parametrize("wraps", [0.3, 0.5, 0.6, 1.0, 5.4])
def test_an_idle_flow_of_any_age_is_not_taken_for_a_future_one(wraps):
    """Without the scan the old NDT would look ahead of the clock for half of every wrap."""

    async def script(b):
        await b.cycle(ndt=(1, 17))
        for _ in range(round(256 * wraps)):
            await b.cycle(1)
        await b.cycle(enqueue=1)
        assert b.model.ndt[1] == b.rtc and b.offer == 1

    Bench(small(), start=17).run(script)


def test_a_flow_that_waits_for_ages_stays_on_offer_and_in_order():
    async def script(b):
        await b.cycle(idt=(2, 1))
        await b.cycle(1, enqueue=2)
        await b.cycle(1, enqueue=1)
        for _ in range(3 * 256):
            await b.cycle(1)
            assert b.offer in (1, 2)
        # It has its arrears, up to the limit: that many dispatches at once.
        await b.cycle(clear=1)
        count = 0
        while b.offer == 2:
            await b.cycle(dispatched=2)
            count += 1
        assert b.config.max_lag_ticks < count <= b.config.max_lag_ticks + b.config.flows + 1

    Bench(small()).run(script)


def test_commands_for_a_flow_that_does_not_exist_do_nothing():
    async def script(b):
        await b.cycle(enqueue=2)
        ctx, dut = b.ctx, b.dut
        for signal in (
            dut.enqueue.valid,
            dut.dispatched.valid,
            dut.clear.valid,
            dut.write_ndt,
            dut.write_idt,
        ):
            ctx.set(signal, 1)
        ctx.set(dut.enqueue.payload, 3)
        ctx.set(dut.clear.payload, 3)
        ctx.set(dut.dispatched.payload, {"flow": 3, "last": 1})
        ctx.set(dut.select, 3)
        ctx.set(dut.write_ticks, 9)
        await ctx.tick()
        b.model.cycle(0)
        ctx.set(dut.select, 3)
        assert (ctx.get(dut.ndt), ctx.get(dut.idt), ctx.get(dut.valid)) == (0, 0, 0)
        for flow in range(3):
            await b.cycle(select=flow)

    Bench(small(flows=3)).run(script)
