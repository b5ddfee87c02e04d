"""Proofs of shares in InfiniBand's units: packets are charged in whole units, a turn has its entry's weight of them.

`test_two_level.py` proves for any tables, and for ever, that the arbiter keeps an account. Here stands the account's
meaning, for two VLs that keep asking.
"""

import sys

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

from .test_two_level import ENTRIES, VLS, AnyTables

PACKET, MOST_WEIGHT = 6, 2
"""Most flits of a packet, which is more than a unit of 4; most units of an entry."""
DEPTH = 20
"""Two turns of the heaviest entry, 8 flits each, and the rest of a packet."""


def turns(component):
    """VLs 0 and 1 keep asking, with an entry each of any weight.

    A turn ends with the packet whose units, 4 flits or the rest of a packet, make up the weight, and not before.
    """
    made = []

    class Tables(AnyTables):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            made.append(self)

    dut = component(vls=VLS, entries=ENTRIES, pointer="slow", units="iba")
    module = sys.modules[component.__module__]
    replaced, module.VlTables = module.VlTables, Tables
    dut._MustUse__silence = True
    try:
        inside = dut.elaborate(None)
    finally:
        module.VlTables = replaced
    spec, tables = Spec(), made[0]
    m, unit = spec.m, dut.weight_flits
    assert unit == 4
    m.submodules.dut = inside
    spec.inputs(dut, "tails", "advance")
    weights = [spec.constant(2, f"weight_{v}") for v in range(2)]
    m.d.comb += [dut.requests.eq(3), tables.any_limit.eq(255)]
    for v, weight in enumerate(weights):
        m.d.comb += [
            Assume((weight != 0) & (weight <= MOST_WEIGHT)),
            tables.vls[0][v].eq(v),
            tables.weights[0][v].eq(weight),
        ]
    last = Signal(2)  # who had the turn
    goes = dut.advance & dut.grant.any()
    with m.If(goes):
        m.d.sync += last.eq(dut.grant)
    for v, weight in enumerate(weights):
        length, units = Signal(range(PACKET), name=f"length_{v}"), Signal(4, name=f"units_{v}")
        mine = goes & dut.grant[v]
        begins = mine & ~last[v]
        had = Mux(begins, 0, units)
        tail = dut.tails[v]
        charged = (length + unit) >> 2
        m.d.comb += Assume(~mine | (length != PACKET - 1) | tail)
        with m.If(mine):
            m.d.sync += [length.eq(Mux(tail, 0, length + 1)), units.eq(had + Mux(tail, charged, 0))]
        m.d.comb += [
            # Nobody else goes inside of a packet, nor before the turn has had its weight.
            Assert(~(goes & last[v] & ~dut.grant[v]) | ((length == 0) & (units >= weight))),
            # No packet begins in a turn that has had it.
            Assert(~(mine & (length == 0)) | (had < weight)),
            Cover(goes & last[v] & ~dut.grant[v] & (units == MOST_WEIGHT + 1)),
        ]
    return spec


@proof(
    block="TwoLevelArbiter",
    states="in InfiniBand's units a turn has its entry's weight, each packet in whole units",
)
def test_a_turn_has_its_weight_in_units(tmp_path):
    prove(turns(TwoLevelArbiter), tmp_path / "bmc", mode="bmc", depth=DEPTH)
    prove(turns(TwoLevelArbiter), tmp_path / "cover", mode="cover", depth=DEPTH)


@mutants_of(test_a_turn_has_its_weight_in_units)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("less[:rounding] & ~tail.replicate(rounding)", "less[:rounding]"),  # charged flit by flit
        ("now_has[i].eq(has_share[i] & ~wraps[i])", "now_has[i].eq(has_share[i])"),  # a turn that goes on
        ("level & tail, grant & base", "level, grant & base"),  # a packet that ends with its share
    ],
)
def test_proof_of_units_catches_mutant(old, new, tmp_path):
    prove(turns(mutate(TwoLevelArbiter, old, new)), tmp_path, mode="bmc", depth=DEPTH, expect="fail")
