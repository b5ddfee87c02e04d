"""Proof of the arbiter of the pipelined router's outputs: one grant, to one who asks, and a bounded wait in bursts."""

from itertools import permutations

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.router.pipelined.output_arbiter import BurstArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

SIZE = 4


def bursts(component):
    """A requester that keeps asking lets each of the others have one burst at most, whatever their lengths.

    Whoever goes on also asks in the next cycle, as picks do.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(size=SIZE)
    spec.inputs(dut, "requests", "open", "goes_on")
    who = spec.constant(SIZE, "patient")
    on, waited = Signal(SIZE), Signal(range(SIZE + 2))
    passed = dut.grant & ~who
    m.d.sync += [
        on.eq(Mux(dut.open, dut.grant & dut.goes_on, on)),
        waited.eq(Mux((dut.grant & who).any(), 0, waited + (passed & ~dut.goes_on).any())),
    ]
    before = [[dut._before(i, j) if i != j else 0 for j in range(SIZE)] for i in range(SIZE)]
    behind = [sum(Mux(who[i], before[i][j], 0) for i in range(SIZE) if i != j) for j in range(SIZE)]
    m.d.comb += [
        Assume((who & (who - 1)) == 0),
        Assume((dut.requests & who).any()),
        Assume((on & ~dut.requests) == 0),
        Assert((on & (on - 1)) == 0),
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~dut.requests) == 0),
        Assert(dut.grant.any() == (dut.requests.any() & dut.open)),
        # A burst is not broken, and those who had theirs come after the one who waits.
        Assert((on == 0) | ~dut.open | (dut.grant == on)),
        Assert(waited <= sum(behind)),
        Assert(waited <= SIZE - 1),
        Cover(waited == SIZE - 1),
    ]
    for i, j, k in permutations(range(SIZE), 3):
        m.d.comb += Assert(~(before[i][j] & before[j][k] & before[k][i]))
    for i, j in permutations(range(SIZE), 2):
        m.d.comb += Assert(~on[i] | before[i][j])
    return spec


@proof(
    block="BurstArbiter",
    states="a requester lets each of the others have one burst at most, which is not broken",
)
def test_burst_arbiter_is_proved(tmp_path):
    """By induction, for ever; and the bound is reached."""
    prove(bursts(BurstArbiter), tmp_path / "proof", depth=2)
    prove(bursts(BurstArbiter), tmp_path / "cover", mode="cover", depth=8)


@mutants_of(test_burst_arbiter_is_proved)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.requests[i] & self._beats(i, j)", "self._beats(i, j)"),
        ("self.goes_on[i], Mux", "~self.goes_on[i], Mux"),
        ("~self.goes_on[j], first", "self.goes_on[j], first"),
        ("self.goes_on[i], Mux", "1, Mux"),
    ],
)
def test_proof_catches_mutant(old, new, tmp_path):
    prove(bursts(mutate(BurstArbiter, old, new)), tmp_path, mode="bmc", depth=8, expect="fail")


def urgency(component):
    """Those who are urgent come before all others, and only they may break a burst of one who is not."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(size=SIZE)
    spec.inputs(dut, "requests", "urgent", "open", "goes_on")
    on, pressing = Signal(SIZE), Signal(SIZE)
    m.d.sync += on.eq(Mux(dut.open, dut.grant & dut.goes_on, on))
    m.d.comb += [
        pressing.eq(dut.requests & dut.urgent),
        Assume((on & ~dut.requests) == 0),
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~dut.requests) == 0),
        Assert(dut.grant.any() == (dut.requests.any() & dut.open)),
        Assert(~pressing.any() | ~dut.open | (dut.grant & pressing).any()),
        Assert((on == 0) | ~dut.open | (dut.grant == on) | ((pressing & ~on).any() & ~(pressing & on).any())),
        Cover((on != 0) & (dut.grant != on) & dut.open),
    ]
    before = [[dut._before(i, j) if i != j else 0 for j in range(SIZE)] for i in range(SIZE)]
    for i, j, k in permutations(range(SIZE), 3):
        m.d.comb += Assert(~(before[i][j] & before[j][k] & before[k][i]))
    for i, j in permutations(range(SIZE), 2):
        m.d.comb += Assert(~on[i] | before[i][j])
    return spec


@proof(
    block="BurstArbiter",
    states="who is urgent comes first; nothing else breaks a burst",
)
def test_who_is_urgent_comes_first(tmp_path):
    """By induction, for ever; and a burst is broken."""
    prove(urgency(BurstArbiter), tmp_path / "proof", depth=2)
    prove(urgency(BurstArbiter), tmp_path / "cover", mode="cover", depth=4)


@mutants_of(test_who_is_urgent_comes_first)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Mux(self.urgent[i] == self.urgent[j], self._before(i, j), self.urgent[i])", "self._before(i, j)"),
        ("self._before(i, j), self.urgent[i])", "self._before(i, j), self.urgent[j])"),
        ("self.goes_on[i], Mux", "~self.goes_on[i], Mux"),
    ],
)
def test_proof_of_urgency_catches_mutant(old, new, tmp_path):
    prove(urgency(mutate(BurstArbiter, old, new)), tmp_path, mode="bmc", depth=6, expect="fail")
