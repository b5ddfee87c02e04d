"""Proofs of `TwoLevelArbiter.wait_bound` for tables of a few entries, with both pointers, in both units, and a limit
between the tables.

They hold for whoever keeps asking, and whatever the others and the grants' users do. `test_two_level.py` proves for any
tables, and for ever, that in one level nobody waits longer than two frames, and that the limit is kept.

Here is the bound as a whole, in InfiniBand's units too. Each case covers all that can happen in so many cycles after
reset as it says: some more than the bound.
"""

import sys
from typing import NamedTuple

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

from .test_two_level import ENTRIES, VLS, AnyTables

PACKET = 2
"""Most flits of a packet, which InfiniBand's units are charged by."""


class Case(NamedTuple):
    """Tables, rows (VL, weight), and the VL that keeps asking. Then the bound, flits of others, and so many of them as
    do go before it."""

    parameters: dict[str, str]
    patient: int
    high: tuple[tuple[int, int], ...]
    low: tuple[tuple[int, int], ...]
    limit: int
    bound: int
    reached: int


FAST, SLOW, IBA = {"pointer": "fast"}, {"pointer": "slow"}, {"pointer": "slow", "units": "iba"}
# The patient VL is the last of its table, so that it may go first in a frame, while the others do not ask, and last in
# the next.
CASES = {
    "fast frames": Case(FAST, 0, (), ((1, 2), (2, 1), (0, 1)), 255, 6, 5),
    "slow frames": Case(SLOW, 0, (), ((1, 2), (2, 1), (0, 1)), 255, 6, 6),
    "fast high": Case(FAST, 0, ((1, 2), (0, 1)), ((2, 1),), 1, 9, 7),
    "slow high": Case(SLOW, 0, ((1, 2), (0, 1)), ((2, 1),), 1, 9, 9),
    "fast low": Case(FAST, 1, ((0, 1),), ((2, 1), (1, 1)), 2, 8, 8),
    "slow low": Case(SLOW, 1, ((0, 1),), ((2, 1), (1, 1)), 2, 8, 8),
    # 4 flits a unit of weight, of which a packet takes a whole one; with a limit of 0 one packet of high goes for one
    # of low.
    "iba frames": Case(IBA, 0, (), ((1, 1), (0, 1)), 255, 10, 4),
    "iba low": Case(IBA, 1, ((0, 1),), ((1, 1),), 0, 2, 2),
    "iba high": Case(IBA, 0, ((1, 1), (0, 1)), ((2, 1),), 0, 22, 10),
}


def bound_of(case):
    iba = case.parameters is IBA
    return TwoLevelArbiter.wait_bound(
        case.patient,
        high=case.high,
        low=case.low,
        limit=case.limit,
        unit=4 if iba else 1,
        limit_unit=256 if iba else 1,
        packet_flits=PACKET if iba else 1,
    )


def waits(component, case):
    """The arbiter with the tables of `case`, for ever; the patient VL asks in every cycle."""
    bound = case.bound
    made = []

    class Tables(AnyTables):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            made.append(self)

    dut = component(vls=VLS, entries=ENTRIES, **case.parameters)
    module = sys.modules[component.__module__]
    replaced, module.VlTables = module.VlTables, Tables
    dut._MustUse__silence = True
    try:
        inside = dut.elaborate(None)
    finally:
        module.VlTables = replaced
    spec, tables = Spec(), made[0]
    m = spec.m
    m.submodules.dut = inside
    spec.inputs(dut, "requests", "tails", "advance")
    m.d.comb += tables.any_limit.eq(case.limit)
    for i, rows in enumerate((case.low, case.high)):
        for e, (vl, weight) in enumerate(rows):
            m.d.comb += [tables.vls[i][e].eq(vl), tables.weights[i][e].eq(weight)]
    mine = dut.grant[case.patient]
    underway, waited = Signal(VLS), Signal(range(bound + 2))
    m.d.comb += [
        Assume(dut.requests[case.patient]),
        *(Assume(~underway[v] | dut.tails[v]) for v in range(VLS)),
        Assert(waited <= bound),
        Cover(waited == case.reached),
    ]
    with m.If(dut.advance):
        m.d.sync += [
            underway.eq((underway & ~dut.grant) | (dut.grant & ~dut.tails)),
            waited.eq(Mux(mine, 0, waited + (waited <= bound))),
        ]
    return spec


def test_the_bounds_are_those_of_the_function():
    assert {name: bound_of(case) for name, case in CASES.items()} == {
        name: case.bound for name, case in CASES.items()
    }


EVERY_RUN = ("slow high",)


@proof(block="TwoLevelArbiter", states="no VL waits longer than `wait_bound`")
@pytest.mark.parametrize(
    "name", [name if name in EVERY_RUN else pytest.param(name, marks=pytest.mark.full) for name in CASES]
)
def test_nobody_waits_longer_than_the_bound(name, tmp_path):
    case = CASES[name]
    prove(waits(TwoLevelArbiter, case), tmp_path, mode="bmc", depth=case.bound + 6, timeout_s=600)


@proof(
    block="TwoLevelArbiter",
    states="a wait as long as the bound happens",
    like=test_nobody_waits_longer_than_the_bound,
)
@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_waits_as_long_as_that_happen(name, tmp_path):
    """With the slow pointer a wait as long as the bound happens.

    With the fast one a VL has gone in its pass before what is left of the frame. A packet in InfiniBand's units may be
    shorter than what it is charged.
    """
    case = CASES[name]
    prove(waits(TwoLevelArbiter, case), tmp_path, mode="cover", depth=case.bound + 6)


MUTANTS = [
    # A turn that never ends; a flit of high too many for one of low; a flit too many of a share; no limit.
    ("slow high", "closes.any() if slow else tail", "0 if slow else tail"),
    ("fast low", "(sent[fraction:] >= tables.limit)", "(sent[fraction:] > tables.limit)"),
    ("slow low", "(sent[fraction:] >= tables.limit)", "(sent[fraction:] > tables.limit)"),
    ("fast high", "now_last[i].eq(last_unit[i] | Mux(near, mine, 0))", "now_last[i].eq(last_unit[i])"),
    ("fast frames", "now_last[i].eq(last_unit[i] | Mux(near, mine, 0))", "now_last[i].eq(last_unit[i])"),
    ("slow frames", "closes.any() if slow else tail", "0 if slow else tail"),
    ("iba frames", "closes.any() if slow else tail", "0 if slow else tail"),
    ("iba low", "~(low_due & any_low)", "1"),
    ("iba high", "closes.any() if slow else tail", "0 if slow else tail"),
]


@mutants_of(test_nobody_waits_longer_than_the_bound)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [one if one[0] in EVERY_RUN else pytest.param(*one, marks=pytest.mark.full) for one in MUTANTS],
)
def test_proof_catches_mutant(name, old, new, tmp_path):
    case = CASES[name]
    spec = waits(mutate(TwoLevelArbiter, old, new), case)
    prove(spec, tmp_path, mode="bmc", depth=case.bound + 12, expect="fail")
