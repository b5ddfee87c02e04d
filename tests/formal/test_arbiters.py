"""Proofs of the arbiters. There is one grant, only to a requester, to one whenever anybody asks, and no longer wait
than the bound. For each arbiter there are mutants that the proof catches."""

from itertools import permutations

import pytest
from amaranth import Array, Const, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.arbiter.least_recent import LeastRecentArbiter
from lanikai.hdl.arbiter.round_robin import RoundRobinArbiter
from lanikai.hdl.vl_arbiter.base import VlArbiter
from lanikai.hdl.vl_arbiter.deficit_round_robin import DeficitRoundRobinVlArbiter
from lanikai.hdl.vl_arbiter.fcfs import FcfsVlArbiter
from lanikai.hdl.vl_arbiter.fixed_priority import FixedPriorityVlArbiter
from lanikai.hdl.vl_arbiter.round_robin import RoundRobinVlArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

VLS = 4
FREE, ALWAYS = False, True


def contract(spec, dut):
    """One-hot, only to a requester, and to one whenever anybody asks (work conservation)."""
    spec.m.d.comb += [
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~dut.requests) == 0),
        Assert(dut.grant.any() == dut.requests.any()),
    ]


def wait_of(spec, dut, *, bound, always):
    """Any requester that keeps asking is passed over at most `bound` times, and can be passed over as often as that.

    With `always`, every grant is used: then the last bound + 3 cycles tell all of an arbiter's state.
    """
    m = spec.m
    who = spec.constant(len(dut.requests), "patient")
    waited = Signal(range(bound + 2))
    m.d.comb += [
        Assume((who & (who - 1)) == 0),
        Assume((dut.requests & who).any()),
        Assert(waited <= bound),
        Cover(waited == bound),
    ]
    if always:
        m.d.comb += Assume(dut.advance)
    with m.If(dut.advance):
        m.d.sync += waited.eq(Mux((dut.grant & who).any(), 0, waited + 1))


def round_robin(component, always):
    spec = Spec()
    vl = issubclass(component, VlArbiter)
    spec.m.submodules.dut = dut = component(vls=VLS) if vl else component(size=VLS)
    spec.inputs(dut, "requests", "advance")
    contract(spec, dut)
    wait_of(spec, dut, bound=VLS - 1, always=always)
    return spec


def least_recent(component, always):
    """The contract of round robin holds. The pairs are an order, without which induction would start from any."""
    spec = round_robin(component, always)
    dut = spec.m.submodules["dut"]
    spec.m.d.comb += Assert((dut._served & (dut._served - 1)) == 0)
    for i, j, k in permutations(range(VLS), 3):
        spec.m.d.comb += Assert(~(dut._before(i, j) & dut._before(j, k) & dut._before(k, i)))
    return spec


def fcfs(component, always):
    spec = Spec()
    spec.m.submodules.dut = dut = component(vls=VLS)
    spec.inputs(dut, "requests", "tails", "advance")
    contract(spec, dut)
    wait_of(spec, dut, bound=FcfsVlArbiter.wait_bound(VLS), always=always)
    return spec


def fixed_priority(component, always):
    """No VL goes while a lower one asks; the control VL, here the highest, goes before all."""
    spec = Spec()
    spec.m.submodules.dut = dut = component(vls=VLS, control_vl=VLS - 1)
    spec.inputs(dut, "requests", "advance")
    contract(spec, dut)
    spec.m.d.comb += Assert(~dut.requests[-1] | dut.grant[-1])
    spec.m.d.comb += [Assert(~(dut.grant[v] & dut.requests[u])) for v in range(VLS - 1) for u in range(v)]
    return spec


def deficit(component, always):
    """Quanta are up to 3 and packets up to 2 flits, written while traffic flows or not.

    No wait is longer than a turn of each of the others, by the quanta that they ever had.
    """
    spec = Spec()
    m, vls, packet = spec.m, 3, 2
    m.submodules.dut = dut = component(vls=vls)
    spec.inputs(dut, "requests", "tails", "advance", "table.write", "table.vl")
    quanta = [spec.constant(2, f"quantum_{v}") for v in range(vls)]
    m.d.comb += dut.table.weight.eq(Array([*quanta, 0])[dut.table.vl])
    contract(spec, dut)
    underway = Signal(vls)  # a packet's first flit has gone: the next is its last
    m.d.comb += [Assume(~underway[v] | dut.tails[v]) for v in range(vls)]
    with m.If(dut.advance):
        m.d.sync += underway.eq((underway & ~dut.grant) | (dut.grant & ~dut.tails))
    who = spec.constant(range(vls), "patient")
    waited = Signal(5)
    with m.If(dut.advance):
        m.d.sync += waited.eq(Mux(dut.grant.bit_select(who, 1), 0, waited + 1))
    most = [Mux(quantum == 0, 1, quantum) + packet - 1 for quantum in quanta]
    m.d.comb += [
        Assume(who < vls),
        Assume(dut.requests.bit_select(who, 1)),
        Assert(waited <= sum((Mux(who == v, 0, turn) for v, turn in enumerate(most)), Const(0))),
        Cover(waited == 8),
    ]
    return spec


SPECS = {
    "deficit": (deficit, DeficitRoundRobinVlArbiter),
    "round_robin": (round_robin, RoundRobinArbiter),
    "least_recent": (least_recent, LeastRecentArbiter),
    "vl_round_robin": (round_robin, RoundRobinVlArbiter),
    "fcfs": (fcfs, FcfsVlArbiter),
    "fixed_priority": (fixed_priority, FixedPriorityVlArbiter),
}


@proof(
    block="each arbiter", states="one grant, to a requester, whenever anybody asks; waits within the bound"
)
@pytest.mark.parametrize("name", SPECS)
def test_arbiter_is_proved(name, tmp_path):
    """The proof is by induction while every grant is used. With grants that are not used, it is for 10 cycles after
    reset. Deficit round robin, whose past reaches further back, has only the latter."""
    spec, component = SPECS[name]
    if name != "deficit":
        prove(spec(component, ALWAYS), tmp_path / "always", depth=VLS + 3)
    prove(spec(component, FREE), tmp_path / "free", mode="bmc", depth=10)


@proof(block="each arbiter", states="a wait as long as the bound happens", like=test_arbiter_is_proved)
@pytest.mark.parametrize("name", ["round_robin", "fcfs", "deficit"])
def test_wait_can_be_as_long_as_the_bound(name, tmp_path):
    spec, component = SPECS[name]
    prove(spec(component, FREE), tmp_path, mode="cover", depth=12)


MUTANTS = [
    # Two grants; a grant to nobody; one who waits for ever; a turn lost without `advance`.
    ("round_robin", "pick & (~pick + 1)", "pick"),
    ("round_robin", "self.grant.eq(pick & (~pick + 1))", "self.grant.eq(self.requests & above)"),
    ("round_robin", "above.eq(~(self.grant << 1) + 1)", "above.eq(~self.grant + 1)"),
    ("round_robin", "self.advance & self.requests.any()", "self.requests.any()"),
    ("least_recent", "self.requests[i] & self._before(i, j)", "self._before(i, j)"),
    ("least_recent", "(self._kept[i, j] | self._served[j]) & ~", "self._kept[i, j] & ~"),
    ("least_recent", "Mux(self.advance, self.grant, 0)", "self.grant"),
    ("vl_round_robin", "above.eq(~(grant << 1) + 1)", "above.eq(~grant + 1)"),
    ("fcfs", "requests[u] & before[u, v] for u", "before[u, v] for u"),
    ("fcfs", "(older[u, v] & waiting[u]) | ~waiting[v]", "older[u, v]"),
    ("fcfs", "else grant)", "else 0)"),
    ("deficit", "Mux(ends, 0, grant)", "grant"),
    ("deficit", "Mux(goes_on, left, quantum - debt)", "quantum"),
    ("deficit", "after_left.eq(Mux(allowed.any(), allowed - 1, 0))", "after_left.eq(allowed)"),
    ("fixed_priority", "lowest_bit(requests)", "requests"),
    ("fixed_priority", "lowest_bit(requests)", "lowest_bit(requests >> 1) << 1"),
]


@mutants_of(test_arbiter_is_proved)
@pytest.mark.parametrize(("name", "old", "new"), MUTANTS)
def test_proof_catches_mutant(name, old, new, tmp_path):
    spec, component = SPECS[name]
    prove(spec(mutate(component, old, new), FREE), tmp_path, mode="bmc", depth=10, expect="fail")
