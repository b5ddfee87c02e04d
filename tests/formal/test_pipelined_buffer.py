"""Proof of the pipelined router's VL buffers: order, nothing lost, and the flags of little room."""

from itertools import pairwise

import pytest
from amaranth import Array, Mux, Signal
from amaranth.hdl import Assert, Assume
from lanikai.hdl.router.pipelined import vl_buffer
from lanikai.hdl.router.pipelined.vl_buffer import PipelinedVlBuffer
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

DEPTH, CYCLES = 4, 9
# A ring is filled, and its pointers have gone round, in fewer cycles than these.


def buffer_spec(component, foretold):
    """Two VLs, each beside a plain queue of its items."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(shape=2, vls=2, depth=DEPTH, peek=1, margins=(1, 2), foretold=foretold)
    spec.inputs(dut, "write_valid", "write_select", "write_data", "pop", "peek_select")
    if foretold:
        spec.inputs(dut, "next_select", "next_stays")
        m.d.sync += dut.read_select.eq(Mux(dut.next_stays, dut.read_select, dut.next_select))
        m.d.comb += [
            Assume(dut.next_select != 3),
            Assume((dut.next_select & dut.read_select) == 0),
        ]
    else:
        spec.inputs(dut, "read_select")
    m.d.comb += [
        Assume((dut.write_select == 1) | (dut.write_select == 2)),
        Assume((dut.peek_select == 1) | (dut.peek_select == 2)),
        Assume(~dut.pop | (dut.read_select == 1) | (dut.read_select == 2)),
    ]
    for vl in range(2):
        count = Signal(range(DEPTH + 1), name=f"count_{vl}")
        queue = [Signal(2, name=f"item_{vl}_{i}") for i in range(DEPTH)]
        writes, pops = dut.write_valid & dut.write_select[vl], dut.pop & dut.read_select[vl]
        read, peeked = dut.read_select == 1 << vl, dut.peek_select == 1 << vl
        m.d.comb += [
            Assume(~writes | (count < DEPTH)),
            Assume(~pops | (count > 0)),
            Assert(dut.non_empty[vl] == (count > 0)),
            Assert(dut.near_full[0][vl] == (count >= DEPTH - 1)),
            Assert(dut.near_full[1][vl] == (count >= DEPTH - 2)),
            Assert(~read | (count == 0) | (dut.read_data == queue[0])),
            Assert(~read | (count == 0) | (dut.last == (count == 1))),
            Assert(~read | (dut.read_vl == vl)),
            Assert(~peeked | (count == 0) | (dut.peek_data == queue[0][0])),
        ]
        m.d.sync += count.eq(count + writes - pops)
        with m.If(pops):
            m.d.sync += [a.eq(b) for a, b in pairwise(queue)]
        with m.If(writes):
            m.d.sync += Array(queue)[count - pops].eq(dut.write_data)
    return spec


@proof(block="PipelinedVlBuffer", states="each VL's order is kept and nothing is lost, in both memories")
@pytest.mark.parametrize("foretold", [pytest.param(False, marks=pytest.mark.full), True])
@pytest.mark.parametrize("in_block_ram", [False, True])
def test_buffer_keeps_order_and_loses_nothing(foretold, in_block_ram, monkeypatch, tmp_path):
    if in_block_ram:
        monkeypatch.setattr(vl_buffer, "DISTRIBUTED_ROWS", 0)
    prove(buffer_spec(PipelinedVlBuffer, foretold), tmp_path, mode="bmc", depth=CYCLES)


@mutants_of(test_buffer_keeps_order_and_loses_nothing)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The write that meets the last pop is lost; an empty VL has a tail; room is told late, or for ever; the row of
        # a pick is that of the one before.
        ("(self.non_empty & ~emptied) | writing", "(self.non_empty | writing) & ~emptied"),
        ("Mux((self.write_select & self.non_empty).any(), tail_written, front_written)", "tail_written + 1"),
        ("writing & ~popping", "writing"),
        ("popping & ~writing", "popping"),
        ("front_written + size - 1", "front_written + size"),
        ("Mux(self.pop, next_row, row)", "row"),
    ],
)
def test_proof_catches_mutant(old, new, tmp_path):
    prove(
        buffer_spec(mutate(PipelinedVlBuffer, old, new), True),
        tmp_path,
        mode="bmc",
        depth=CYCLES,
        expect="fail",
    )
