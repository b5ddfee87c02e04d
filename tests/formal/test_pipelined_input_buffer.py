"""Proof of the pipelined router's VL buffers: order, nothing lost, and what goes with an item."""

from itertools import pairwise

import pytest
from amaranth import Array, Cat, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.router.pipelined.input_buffer import PipelinedInputBuffer
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

DEPTH, CYCLES = 4, 10
# A ring is filled, and its pointers have gone round, in fewer cycles than these.


def buffer_spec(component, vls=2):
    """VLs, each beside a plain queue of its items, and a reader that goes on only to what it has seen."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(shape=2, port_bits=1, vls=vls, depth=DEPTH)
    spec.inputs(
        dut,
        *("write_valid", "write_select", "write_data", "write_tail", "write_port"),
        *("pop", "next_select", "stays_popped", "stays_kept"),
    )
    stays = Mux(dut.pop, dut.stays_popped, dut.stays_kept)
    m.d.sync += dut.read_select.eq(Mux(stays, dut.read_select, dut.next_select))
    one_hot = [1 << v for v in range(vls)]
    m.d.comb += [
        Assume(Cat(dut.write_select == one for one in one_hot).any()),
        dut.write_vl.eq(dut.write_select[1] if vls > 1 else 0),
        Assume(Cat(dut.next_select == one for one in (0, *one_hot)).any()),
        Assume((dut.next_select & dut.read_select) == 0),
    ]
    # The VL that is read has an item that was there when its row was chosen.
    there, popped = Signal(), Signal(vls)
    stays_there, comes_there = Signal(), Signal()
    m.d.sync += [
        there.eq(Mux(stays, stays_there, comes_there)),
        popped.eq(Mux(dut.pop, dut.read_select, 0)),
    ]
    m.d.comb += Assume(~dut.pop | there)
    for vl in range(vls):
        count = Signal(range(DEPTH + 1), name=f"count_{vl}")
        queue = [Signal(4, name=f"item_{vl}_{i}") for i in range(DEPTH)]
        writes, pops = dut.write_valid & dut.write_select[vl], dut.pop & dut.read_select[vl]
        read = dut.read_select == 1 << vl
        with m.If(read):
            m.d.comb += stays_there.eq(Mux(dut.pop, count > 1, there))
        with m.If(dut.next_select[vl]):
            m.d.comb += comes_there.eq(count > 0)
        m.d.comb += [
            Assume(~writes | (count < DEPTH)),
            Assert(dut.non_empty[vl] == (count > 0)),
            Assert(~read | ~there | (dut.read_data == queue[0][:2])),
            Assert(~read | ~there | (dut.tail == queue[0][2])),
            Assert(~read | (count < 2) | (dut.tail_behind == queue[1][2])),
            Assert(~read | (count == 0) | (dut.last == (count == 1))),
            Assert(~read | (dut.read_vl == vl)),
            Assert(~popped[vl] | (count == 0) | (dut.behind == queue[0][3])),
            Cover((count == DEPTH) & pops),
        ]
        m.d.sync += count.eq(count + writes - pops)
        with m.If(pops):
            m.d.sync += [a.eq(b) for a, b in pairwise(queue)]
        with m.If(writes):
            m.d.sync += Array(queue)[count - pops].eq(Cat(dut.write_data, dut.write_tail, dut.write_port))
    return spec


@proof(block="PipelinedInputBuffer", states="each VL's order is kept and nothing is lost")
@pytest.mark.parametrize("vls", [1, 2])
def test_buffer_keeps_order_and_loses_nothing(vls, tmp_path):
    prove(buffer_spec(PipelinedInputBuffer, vls), tmp_path, mode="bmc", depth=CYCLES)


@proof(
    block="PipelinedInputBuffer",
    states="a full VL is read",
    like=test_buffer_keeps_order_and_loses_nothing,
)
def test_what_the_proof_speaks_of_is_reached(tmp_path):
    prove(buffer_spec(PipelinedInputBuffer), tmp_path, mode="cover", depth=CYCLES)


@mutants_of(test_buffer_keeps_order_and_loses_nothing)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The write that meets the last pop is lost; an empty VL has a tail; a second item is seen for ever, or never;
        # the row of a pick is that of the one before; the tail's flag too; so is the note behind.
        (
            "(self.non_empty & ~(popping & ~several)) | writing",
            "(self.non_empty | writing) & ~(popping & ~several)",
        ),
        ("Mux((self.write_select & self.non_empty).any(), tail_written, front_written)", "tail_written + 1"),
        ("popping & ~writing", "0"),
        ("writing & ~popping", "0"),
        ("self._late(next_row, row, front)", "self._late(row, row, front)"),
        ("self._late(tail_behind, self.tail, tail_other)", "self._late(self.tail, self.tail, tail_other)"),
        ("before.eq(following)", "before.eq(here)"),
    ],
)
def test_proof_catches_mutant(old, new, tmp_path):
    prove(
        buffer_spec(mutate(PipelinedInputBuffer, old, new)), tmp_path, mode="bmc", depth=CYCLES, expect="fail"
    )
