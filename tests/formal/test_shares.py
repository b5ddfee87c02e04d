"""Proofs of the VLs' shares in the long run: equal turns of round robin and FCFS, FCFS' line, quanta of deficit round
robin. Weights by tables are in `test_two_level.py`."""

from functools import partial

import pytest
from amaranth import Array, Const, Mux, Signal, signed
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.vl_arbiter.deficit_round_robin import DeficitRoundRobinVlArbiter
from lanikai.hdl.vl_arbiter.fcfs import FcfsVlArbiter
from lanikai.hdl.vl_arbiter.round_robin import RoundRobinVlArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

VLS, PACKET = 3, 2


def play(component, vls=VLS):
    """An arbiter of `vls` VLs whose VLs ask as they like, with packets of at most `PACKET` flits."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(vls=vls)
    spec.inputs(dut, "requests", "tails", "advance")
    underway = Signal(vls)  # a packet's first flit has gone: the next is its last
    m.d.comb += [Assume(~underway[v] | dut.tails[v]) for v in range(vls)]
    with m.If(dut.advance):
        m.d.sync += underway.eq((underway & ~dut.grant) | (dut.grant & ~dut.tails))
    return spec, dut


def equal_turns(component):
    """Neither of two VLs that keep asking goes twice before the other. Their flits never differ by more than one."""
    spec, dut = play(component)
    m = spec.m
    one, two = spec.constant(VLS, "one"), spec.constant(VLS, "two")
    last = Signal(2)  # who of them went last
    for who in (one, two):
        m.d.comb += [Assume((who & (who - 1)) == 0), Assume((dut.requests & who).any())]
    goes = [dut.advance & (dut.grant & who).any() for who in (one, two)]
    m.d.comb += [Assume(one != two), Assert(~(goes[0] & last[0])), Assert(~(goes[1] & last[1]))]
    with m.If(goes[0] | goes[1]):
        m.d.sync += last.eq(Mux(goes[0], 1, 2))
    m.d.comb += Cover(goes[0] & last[1])
    return spec


def line(component):
    """Nobody goes while another VL asks that has stood longer in the line, or as long with a lower number.

    With packets a VL that keeps asking stands there until its tail has gone.
    """
    spec, dut = play(component)
    m = spec.m
    by_packet = dut.unit == "packet"
    stands = [Signal(4, name=f"stands_{v}") for v in range(VLS)]  # cycles in the line before this one
    for v in range(VLS):
        leaves = dut.advance & dut.grant[v] & (dut.tails[v] if by_packet else 1)
        m.d.sync += stands[v].eq(Mux(dut.requests[v] & ~leaves, stands[v] + 1, 0))
        for u in range(VLS):
            if u != v:
                first = (stands[u] > stands[v]) | ((stands[u] == stands[v]) & (u < v))
                m.d.comb += Assert(~(dut.grant[v] & dut.requests[u] & first))
    who, waited = spec.constant(VLS, "patient"), Signal(4)
    m.d.comb += [
        Assume((who & (who - 1)) == 0),
        Assume((dut.requests & who).any()),
        Assert(waited <= FcfsVlArbiter.wait_bound(VLS, packet_flits=PACKET if by_packet else 1)),
    ]
    with m.If(dut.advance):
        m.d.sync += waited.eq(Mux((dut.grant & who).any(), 0, waited + 1))
    return spec


def quanta(component):
    """Each of two VLs that keep asking sends in n turns n quanta and at most the rest of a packet.

    No quantum is smaller than a packet. They are written in the first cycles.
    """
    vls = 2
    spec, dut = play(component, vls)
    m = spec.m
    quantum = [spec.constant(2, f"quantum_{v}") for v in range(vls)]
    time, began = Signal(range(vls + 1)), Signal()
    m.d.sync += time.eq(time + ~began)
    m.d.comb += [
        *(Assume(one >= PACKET) for one in quantum),
        began.eq(time == vls),
        Assume(dut.requests == began.replicate(vls)),
        dut.table.write.eq(~began),
        dut.table.vl.eq(time),
        dut.table.weight.eq(Array([*quantum, Const(0, 2)])[time]),
    ]
    last = Signal(vls)
    goes = dut.advance & dut.grant.any()
    beyond = [Signal(signed(6), name=f"beyond_{v}") for v in range(vls)]  # flits less the quanta of its turns
    with m.If(goes):
        m.d.sync += last.eq(dut.grant)
    for v in range(vls):
        begins = dut.grant[v] & ~last[v]
        with m.If(goes & dut.grant[v]):
            m.d.sync += beyond[v].eq(beyond[v] + 1 - Mux(begins, quantum[v], 0))
        m.d.comb += [
            Assert(beyond[v] < PACKET),
            # When another one's turn begins, this one has had all of its own.
            Assert(~(goes & last[v] & ~dut.grant[v]) | (beyond[v] >= 0)),
            Cover(began & (beyond[v] == PACKET - 1)),
        ]
    return spec


FCFS, FCFS_PACKET = FcfsVlArbiter, partial(FcfsVlArbiter, unit="packet")


@proof(
    block="RoundRobinVlArbiter, FcfsVlArbiter",
    states="of two that keep asking neither goes twice before the other",
)
@pytest.mark.parametrize("component", [RoundRobinVlArbiter, FCFS], ids=["round_robin", "fcfs"])
def test_turns_are_equal(component, tmp_path):
    prove(equal_turns(component), tmp_path, mode="bmc", depth=10)


@proof(
    block="FcfsVlArbiter",
    states="nobody goes before one that has stood longer in the line",
    like=test_turns_are_equal,
)
@pytest.mark.parametrize("component", [FCFS, FCFS_PACKET], ids=["flit", "packet"])
def test_fcfs_keeps_the_line(component, tmp_path):
    prove(line(component), tmp_path, mode="bmc", depth=10)


@proof(block="DeficitRoundRobinVlArbiter", states="every turn has its quantum", like=test_turns_are_equal)
def test_deficit_gives_every_turn_its_quantum(tmp_path):
    """The proof covers more than a round of turns, whatever they are."""
    prove(quanta(DeficitRoundRobinVlArbiter), tmp_path / "bmc", mode="bmc", depth=2 + 12)
    prove(quanta(DeficitRoundRobinVlArbiter), tmp_path / "cover", mode="cover", depth=12)


MUTANTS = [
    # Turns that stay; a line without memory; a packet that is cut; a line that begins anew with each flit.
    (equal_turns, RoundRobinVlArbiter, {}, "above.eq(~(grant << 1) + 1)", "above.eq(~grant + 1)"),
    (line, FcfsVlArbiter, {}, "(older[u, v] & waiting[u]) | ~waiting[v]", "1"),
    (line, FcfsVlArbiter, {"unit": "packet"}, 'if self.unit == "packet" else', "if False else"),
    # Debts forgotten; what a packet takes beyond the quantum not counted; a turn more after the last flit of one.
    (quanta, DeficitRoundRobinVlArbiter, {}, "set_debt.data.eq(after_owes)", "set_debt.data.eq(0)"),
    (quanta, DeficitRoundRobinVlArbiter, {}, "taken, taken + 1)", "taken, taken)"),
    (quanta, DeficitRoundRobinVlArbiter, {}, "~after_left.any()", "~allowed.any()"),
]


@mutants_of(test_turns_are_equal)
@pytest.mark.parametrize(("spec", "component", "parameters", "old", "new"), MUTANTS)
def test_proof_catches_mutant(spec, component, parameters, old, new, tmp_path):
    mutant = partial(mutate(component, old, new), **parameters)
    prove(spec(mutant), tmp_path, mode="bmc", depth=14, expect="fail")
