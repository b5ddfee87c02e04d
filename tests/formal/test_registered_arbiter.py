"""Proof of the table arbiter with registers: each decision is that of `TwoLevelArbiter`, and none is late."""

from itertools import pairwise

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.vl_arbiter.registered_two_level import DECISION_CYCLES, RegisteredTwoLevelArbiter
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

VLS = 3
DEPTH = 24
"""Four flits, with `DECISION_CYCLES` each, and the first decision's wait."""


def beside_the_plain_one(component, pointer):
    """Any requests, and flits that go whenever the decision stands or later, with the tables as after reset.

    Requests stay until their flit goes, or fall with `drop`.

    The plain arbiter is asked by the requests that were looked at, in the cycle in which the flit goes.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(vls=VLS, entries=VLS, pointer=pointer)
    m.submodules.plain = plain = TwoLevelArbiter(vls=VLS, entries=VLS, pointer=pointer)
    spec.inputs(dut, "requests")
    goes = spec.free(1, "goes")
    history = [Signal(VLS, name=f"asked_{cycle}") for cycle in range(1, DECISION_CYCLES)]
    m.d.sync += [history[0].eq(dut.requests), *(b.eq(a) for a, b in pairwise(history))]
    stood, kept, looked_at = Signal(), Signal(VLS), Signal(VLS)
    went = Signal(VLS)
    m.d.sync += went.eq(Mux(dut.advance, dut.grant, 0))
    m.d.comb += [
        dut.drop.eq((history[0] & ~dut.requests & ~went).any()),
        dut.advance.eq(goes & dut.decided & ~dut.drop),
        looked_at.eq(kept),
        plain.advance.eq(dut.advance),
    ]
    with m.If(~stood):
        m.d.comb += looked_at.eq(history[-1])
    with m.If(dut.decided):
        m.d.comb += plain.requests.eq(looked_at)
    m.d.sync += [stood.eq(dut.decided & ~dut.drop & ~dut.advance), kept.eq(looked_at)]
    # How long all have asked without a decision.
    waits, flits = Signal(range(DECISION_CYCLES + 1)), Signal(range(8))
    with m.If(dut.requests.all() & ~dut.decided & ~dut.drop):
        m.d.sync += waits.eq(waits + 1)
    with m.Else():
        m.d.sync += waits.eq(0)
    m.d.sync += flits.eq(flits + dut.advance)
    m.d.comb += [
        Assume(flits != 7),
        Assert(~dut.decided | looked_at.any()),
        Assert(~dut.decided | (dut.grant == plain.grant)),
        Assert(~dut.decided | dut.drop | (dut.grant & dut.requests).any()),
        Assert(waits < DECISION_CYCLES),
        Cover((flits == 4) & dut.decided & (dut.grant == 0b100)),
    ]
    return spec


@proof(
    block="RegisteredTwoLevelArbiter",
    states="each decision is that of `TwoLevelArbiter`, and comes within 4 cycles, with the tables of reset",
)
@pytest.mark.parametrize("pointer", ["fast", pytest.param("slow", marks=pytest.mark.full)])
def test_decisions_are_those_of_the_plain_arbiter(pointer, tmp_path):
    spec = beside_the_plain_one(RegisteredTwoLevelArbiter, pointer)
    prove(spec, tmp_path / "bmc", mode="bmc", depth=DEPTH, timeout_s=1200)
    spec = beside_the_plain_one(RegisteredTwoLevelArbiter, pointer)
    prove(spec, tmp_path / "cover", mode="cover", depth=DEPTH + 6, timeout_s=1200)


@mutants_of(test_decisions_are_those_of_the_plain_arbiter)
@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "pointer"),
    [
        ("state.has_share[i] & ~wraps if slow", "state.has_share[i] if slow", "slow"),
        ("with m.If(opens):", "with m.If(1):", "fast"),
        ("self.decided.eq(~opens & (age == _SETTLED - 1))", "self.decided.eq(~opens)", "fast"),
        ("with m.If(self.advance | self.drop | restarts):", "with m.If(self.advance | restarts):", "fast"),
        ("places[2 * i + 1] < places[2 * i]", "places[2 * i + 1] > places[2 * i]", "fast"),
    ],
)
def test_proof_catches_mutant(old, new, pointer, tmp_path):
    spec = beside_the_plain_one(mutate(RegisteredTwoLevelArbiter, old, new), pointer)
    prove(spec, tmp_path, mode="bmc", depth=DEPTH, expect="fail", timeout_s=1200)
