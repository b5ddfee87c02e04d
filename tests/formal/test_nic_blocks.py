"""Proofs of the card's decisions in hardware: when a flow may send, and that no doorbell is lost.

The sizes are small, and the proofs exhaustive for so many cycles after reset.
"""

from itertools import pairwise

import pytest
from amaranth import Array, Cat, Const, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.doorbell import Doorbell
from lanikai.hdl.nic.rate.control import RateControl
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

FLOWS = 2
RATE = preset(NicConfig, "tiny", flows=FLOWS, rtc_bits=8)
CHARGED = RATE.replace(rate_charge="bytes", mtu_bytes=8)
"""Bytes charged, in parts of 8: an NDT has 3 bits of a tick."""
START = 256 - 3
"""The clock's first value: its wrap at 256 comes after a few cycles, whatever the steps. An NDT is 0 after reset,
which is then as good as 256: ahead of the clock, by less than half its range."""


def rate_spec(component, config=RATE):
    """The unit beside the rule of gulati-thesis-2001 3.2.2 in numbers that never wrap.

    - NDT = max(NDT, RTC) for the first token.
    - The flow with the smallest NDT that has come is next; ties go to the lower flow.
    - Then NDT += IDT, or the part of it that the packet's bytes are.
    - An IDT of 0 brings an NDT behind the clock to it.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(config)
    part = config.rate_fraction_bits
    bits = 9 + part
    now, fine_now = Signal(9, init=START), Signal(bits)
    m.d.comb += fine_now.eq(now << part)
    m.d.sync += now.eq(now + spec.free(2, "step"))
    idt = [spec.constant(2, f"idt_{f}") for f in range(FLOWS)]
    spec.inputs(dut, "enqueue.valid", "enqueue.payload", "dispatched.valid", "dispatched.payload.last")
    spec.inputs(dut, "select")
    charged: Value = Const(1)
    if part:
        spec.inputs(dut, "dispatched.payload.bytes")
        said = dut.dispatched.payload.bytes
        charged = Mux(
            said == 0, config.charge_unit_bytes, Mux(said < config.mtu_bytes, said, config.mtu_bytes)
        )
    # The intervals are written first.
    cycle = Signal(range(FLOWS + 1))
    m.d.sync += cycle.eq(Mux(cycle == FLOWS, FLOWS, cycle + 1))
    working = cycle == FLOWS
    m.d.comb += [
        dut.rtc.eq(now),
        dut.write_idt.eq(~working),
        dut.write_ticks.eq(Array([*idt, 0])[cycle]),
        dut.dispatched.payload.flow.eq(dut.dispatch.flow),
        Assume(working | ((dut.select == cycle) & ~dut.enqueue.valid)),
        Assume(~dut.dispatched.valid | dut.dispatch.valid),
    ]
    ndt = [Signal(bits, name=f"ndt_{f}", init=256 << part) for f in range(FLOWS)]
    valid = [Signal(name=f"valid_{f}") for f in range(FLOWS)]
    due = [valid[f] & (ndt[f] <= fine_now) for f in range(FLOWS)]
    m.d.comb += [
        Assert(dut.dispatch.valid == Cat(due).any()),
        Assert(~dut.dispatch.valid | (dut.dispatch.flow == (due[1] & ~(due[0] & (ndt[0] <= ndt[1]))))),
        Cover(dut.dispatch.valid & (dut.dispatch.flow == 1) & (now > 256)),
    ]
    for f in range(FLOWS):
        goes = dut.dispatched.valid & (dut.dispatch.flow == f)
        stays = valid[f] & ~(goes & dut.dispatched.payload.last)
        enters = dut.enqueue.valid & (dut.enqueue.payload == f) & ~stays
        before, after = Signal(bits, name=f"before_{f}"), Signal(bits, name=f"after_{f}")
        tick = (ndt[f] + ((1 << part) - 1) >> part)[:8]
        m.d.comb += [
            before.eq(Mux(goes & (idt[f] == 0) & (ndt[f] < fine_now), fine_now, ndt[f])),
            after.eq(before + Mux(goes, idt[f] * charged, 0)),
            Assert((dut.select != f) | (dut.valid == valid[f])),
            Assert((dut.select != f) | ~valid[f] | (dut.ndt == tick)),
        ]
        m.d.sync += [
            valid[f].eq(stays | enters),
            ndt[f].eq(Mux(enters & (after < fine_now), fine_now, after)),
        ]
    return spec


RATE_DEPTH = 7


@proof(
    block="RateControl", states="the flow with the earliest due time is offered, also across the clock's wrap"
)
@pytest.mark.parametrize(
    ("config", "depth"),
    [(RATE, RATE_DEPTH), pytest.param(CHARGED, RATE_DEPTH - 1, marks=pytest.mark.full)],
    ids=["packets", "bytes"],
)
def test_rate_control_keeps_the_rule_across_the_wrap(config, depth, tmp_path):
    prove(rate_spec(RateControl, config), tmp_path / "bmc", mode="bmc", depth=depth, timeout_s=1200)
    prove(rate_spec(RateControl, config), tmp_path / "cover", mode="cover", depth=depth, timeout_s=1200)


@mutants_of(test_rate_control_keeps_the_rule_across_the_wrap)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(difference(rtc, time) >= 0)", "(difference(rtc, time) > 0)"),
        ("difference(high[1], low[1]) < 0", "difference(high[1], low[1]) <= 0"),
        ("(difference(rtc, time) >= 0)", "(rtc >= time)"),  # wrong across the wrap
        ("Mux(difference(waiting, rtc) < 0, rtc, waiting)", "rtc"),
        ("after.eq(before + advance)", "after.eq(rtc + advance)"),
        ("(idt_of_dispatched.data == 0) &", "Value.cast(0) &"),  # not regulated: first for ever
        ("(idt_of_dispatched.data == 0) &", "Value.cast(1) &"),
    ],
)
def test_proof_of_rate_control_catches_mutant(old, new, tmp_path):
    prove(rate_spec(mutate(RateControl, old, new)), tmp_path, mode="bmc", depth=RATE_DEPTH, expect="fail")


@mutants_of(test_rate_control_keeps_the_rule_across_the_wrap)
@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("result.eq(Mux(lead < least, rtc + least", "result.eq(Mux(lead < 0, rtc + least"),
        ("fine(config, self.rtc)", "fine(config, self.rtc) | 1"),
        ("charged_bytes(m, config, self.dispatched.payload)", "config.charge_unit_bytes"),
    ],
)
def test_proof_of_charged_bytes_catches_mutant(old, new, tmp_path):
    spec = rate_spec(mutate(RateControl, old, new), CHARGED)
    prove(spec, tmp_path, mode="bmc", depth=RATE_DEPTH, expect="fail")


ENTRIES = 2
BELLS = preset(NicConfig, "tiny", doorbell="queue", doorbell_queue_entries=ENTRIES)


def doorbell_spec(component):
    """The hardware queue beside a plain one: all channels in the order of arrival, nothing lost, none twice."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(BELLS)
    word = spec.free(3, "word")
    channel = spec.free(3, "channel")
    spec.inputs(dut, "ring.valid", "pop")
    count = Signal(range(ENTRIES + 1))
    queue = [Signal(6, name=f"queued_{i}") for i in range(ENTRIES)]
    exists = channel < BELLS.channels
    enters = dut.ring.valid & dut.ring.ready & exists
    leaves = dut.pop & dut.head_valid
    refusals = Signal(8)
    m.d.comb += [
        dut.ring.payload.word.eq(word),
        dut.ring.payload.channel.eq(channel),
        # A write waits only while the queue is full, or its newest entry is on its way to the head.
        Assert(dut.ring.ready | (count == ENTRIES) | ~dut.head_valid),
        Assert(~enters | (count < ENTRIES)),
        Assert(dut.waiting == count),
        Assert(dut.pending == (count != 0)),
        Assert(~dut.head_valid | ((count != 0) & (dut.head.word == queue[0][:3]))),
        Assert(~dut.head_valid | (dut.head.channel == queue[0][3:])),
        Assert(dut.refusals == refusals),
        Cover((count == ENTRIES) & leaves),
    ]
    # The head shows at most a cycle after the queue has one.
    hidden = Signal()
    m.d.sync += hidden.eq((count != 0) & ~dut.head_valid)
    m.d.comb += Assert(~hidden | dut.head_valid)
    m.d.sync += [count.eq(count + enters - leaves), refusals.eq(refusals + (dut.ring.valid & ~exists))]
    with m.If(leaves):
        m.d.sync += [a.eq(b) for a, b in pairwise(queue)]
    with m.If(enters):
        m.d.sync += Array(queue)[count - leaves].eq(Cat(word, channel))
    return spec


@proof(block="Doorbell", states="no ring is lost, and order is kept")
def test_doorbell_queue_loses_nothing_and_keeps_order(tmp_path):
    prove(doorbell_spec(Doorbell), tmp_path / "bmc", mode="bmc", depth=12)
    prove(doorbell_spec(Doorbell), tmp_path / "cover", mode="cover", depth=8)


@mutants_of(test_doorbell_queue_loses_nothing_and_keeps_order)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.ring.ready.eq(room | self.refused)", "self.ring.ready.eq(1)"),
        ("queue.w_en.eq(accepted & mine)", "queue.w_en.eq(self.ring.valid & mine)"),
        ("entry.channel.eq(ring.channel)", "entry.channel.eq(0)"),
    ],
)
def test_proof_of_doorbell_catches_mutant(old, new, tmp_path):
    prove(doorbell_spec(mutate(Doorbell, old, new)), tmp_path, mode="bmc", depth=12, expect="fail")
