"""Proof of the turns by number: the next requester behind the last one served, and nobody else."""

import pytest
from amaranth import Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.arbiter.numbered_round_robin import NumberedRoundRobin
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

SIZES = (5, 20, 40)
"""Requesters: in one row, in two, in three of four."""


def turns_spec(component, *, size):
    """Any requests. The last one served, and any requester beside the one whose turn it is."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(size=size)
    spec.inputs(dut, "requests", "advance")
    other = spec.constant(range(size), "other")
    last, began = Signal(range(size), init=size - 1), Signal()
    used = dut.advance & dut.requests.any()
    with m.If(used):
        m.d.sync += [last.eq(dut.number), began.eq(1)]

    def behind(number):
        """How far it is from the one behind the last one served to this one, going round."""
        return Mux(number > last, number - last - 1, number + size - last - 1)

    here = (dut.requests >> dut.number)[0]
    m.d.comb += [
        Assume(other < size),
        # The proof's view of the block's register; after reset it is the last place of the last row.
        Assert((dut._served == last) | ~began),
        Assert((dut._served == (1 << len(dut._served)) - 1) | began),
        Assert((last == size - 1) | began),
        Assert(last < size),
        Assert(dut.any == dut.requests.any()),
        Assert(~dut.any | ((dut.number < size) & here)),
        Assert(~(dut.requests >> other)[0] | (behind(dut.number) <= behind(other))),
        Cover(used & began & (last == size - 1) & (dut.number == 1)),
        Cover(used & began & (dut.number == size - 1) & dut.requests[0]),
    ]
    return spec


@proof(
    block="NumberedRoundRobin",
    states="the turn is a requester's, and nobody who asks stands between the last turn and this one",
)
@pytest.mark.parametrize("size", SIZES)
def test_turns_go_round(size, tmp_path):
    prove(turns_spec(NumberedRoundRobin, size=size), tmp_path / "prove", mode="prove", depth=2)
    prove(turns_spec(NumberedRoundRobin, size=size), tmp_path / "cover", mode="cover", depth=4)


@mutants_of(test_turns_go_round)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mine & (~0 << 1 << place)", "mine & (~0 << place)"),
        ("filled & (~0 << 1 << row)", "filled & (~0 << row)"),
        ("Mux(later.any(), _lowest(later), _lowest(filled))", "_lowest(filled)"),
        ("Mux(behind.any(), Cat(_lowest(behind), row), ", "Mux(0, 0, "),
        ("with m.If(self.advance & self.any)", "with m.If(self.advance)"),
        ("Cat(Mux(low.any(),", "Cat(Mux(high.any(),"),
    ],
)
def test_proof_of_turns_catches_mutant(old, new, tmp_path):
    prove(
        turns_spec(mutate(NumberedRoundRobin, old, new), size=40),
        tmp_path,
        mode="bmc",
        depth=4,
        expect="fail",
    )
