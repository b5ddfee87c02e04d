"""Proofs of a link's foundations: the buffers of all virtual lanes, the credit loop, the pacing.

The sizes are small. The proofs are exhaustive for so many cycles after reset that every ring has gone round more than
once.
"""

from itertools import pairwise

import pytest
from amaranth import Array, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.link import LinkPacer
from lanikai.hdl.router import vl_buffer
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.router.vl_buffer import VlBuffer
from lanikai.hdl.router.vl_store import VlStore
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

DEPTH = 3


def buffer_spec(component):
    """A VL, any, beside a plain queue of its items; the other VL does what it likes by the same rules."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(shape=2, vls=2, depth=DEPTH)
    spec.inputs(dut, "write_valid", "write_vl", "write_data", "read_select", "pop")
    counts = [Signal(range(DEPTH + 1), name=f"count_{vl}") for vl in range(2)]
    items = [[Signal(2, name=f"item_{vl}_{i}") for i in range(DEPTH)] for vl in range(2)]
    m.d.comb += Assume(~dut.pop | (dut.read_select == 1) | (dut.read_select == 2))
    for vl in range(2):
        count, queue = counts[vl], items[vl]
        writes, pops = dut.write_valid & (dut.write_vl == vl), dut.pop & dut.read_select[vl]
        m.d.comb += [
            # The credit rule: what goes in has room.
            Assume(~writes | (count < DEPTH)),
            Assume(~pops | (count > 0)),
            Assert(dut.non_empty[vl] == (count > 0)),
            Assert(dut.full[vl] == (count == DEPTH)),
            Assert((dut.read_select != 1 << vl) | (count == 0) | (dut.read_data == queue[0])),
            Assert((dut.read_select != 1 << vl) | (dut.read_vl == vl)),
        ]
        m.d.sync += count.eq(count + writes - pops)
        with m.If(pops):
            m.d.sync += [a.eq(b) for a, b in pairwise(queue)]
        with m.If(writes):
            m.d.sync += Array(queue)[count - pops].eq(dut.write_data)
    return spec


@proof(block="VlBuffer", states="each VL's order is kept and nothing is lost, in distributed memory")
def test_vl_buffer_keeps_order_and_loses_nothing(tmp_path):
    prove(buffer_spec(VlBuffer), tmp_path, mode="bmc", depth=10)


@mutants_of(test_vl_buffer_keeps_order_and_loses_nothing)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The write that meets the last pop is lost; full is not seen; a place is reused too early.
        ("(self.non_empty & ~emptied) | written", "(self.non_empty | written) & ~emptied"),
        ("(self.full | filled) & ~popped", "filled & ~popped"),
        (
            "read.addr.eq(address(front.here, self.read_vl))",
            "read.addr.eq(address(front.following, self.read_vl))",
        ),
        ("Cat(pointer[:row_bits], vl)", "Cat(pointer[:row_bits], 0)"),
    ],
)
def test_proof_of_buffer_catches_mutant(old, new, tmp_path):
    prove(buffer_spec(mutate(VlBuffer, old, new)), tmp_path, mode="bmc", depth=12, expect="fail")


@pytest.fixture
def in_block_ram(monkeypatch):
    """Buffers of any size stand in block RAM; the function given back puts another store in its place."""
    monkeypatch.setattr(vl_buffer, "BLOCK_RAM_ROWS", 0)
    return lambda store: monkeypatch.setattr(vl_buffer, "VlStore", store)


@proof(block="VlBuffer", states="the same in block RAM")
def test_vl_buffer_in_block_ram_keeps_order_and_loses_nothing(in_block_ram, tmp_path):
    prove(buffer_spec(VlBuffer), tmp_path, mode="bmc", depth=10)


@mutants_of(test_vl_buffer_in_block_ram_keeps_order_and_loses_nothing)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The item on its way is not seen; it is not kept; it is kept with the wrong VL. A VL that had arrivals
        # goes on with them; a VL's first item is not the one that has just come.
        ("coming & (coming_vl == vl)", "Value.cast(0)"),
        ("moved_write.en.eq(coming)", "moved_write.en.eq(0)"),
        ("moved_write.addr.eq(coming_vl)", "moved_write.addr.eq(self.refill_vl)"),
        ("bit_select(self.refill_vl, 1).eq(0)", "bit_select(self.refill_vl, 1).eq(1)"),
        ("bit_select(self.write_vl, 1).eq(1)", "bit_select(self.write_vl, 1).eq(0)"),
    ],
)
def test_proof_of_buffer_in_block_ram_catches_mutant(old, new, in_block_ram, tmp_path):
    in_block_ram(mutate(VlStore, old, new))
    prove(buffer_spec(VlBuffer), tmp_path, mode="bmc", depth=12, expect="fail")


def credit_spec(credits_class, *, extra=0):
    """A transmitter that sends what it likes while it has credits, a wire of a cycle each way, and a receiver that
    takes flits out when it likes.

    `extra`: the flits by which the transmitter overrates the buffer.
    """
    spec = Spec()
    m = spec.m
    m.submodules.credits = credits = credits_class(vls=2, depth=2 + extra)
    m.submodules.buffer = buffer = VlBuffer(shape=1, vls=2, depth=2)
    wants, vl = spec.free(1, "wants"), spec.free(1, "vl")
    takes, taken_vl = spec.free(1, "takes"), spec.free(1, "taken_vl")
    sends, pops = Signal(), Signal()
    flit_valid, flit_vl, credit_valid, credit_vl = Signal(), Signal(), Signal(), Signal()
    m.d.comb += [
        sends.eq(wants & credits.available.bit_select(vl, 1)),
        pops.eq(takes & buffer.non_empty.bit_select(taken_vl, 1)),
        credits.spend.eq(sends),
        credits.spend_vl.eq(vl),
        credits.refund.eq(credit_valid),
        credits.refund_vl.eq(credit_vl),
        buffer.write_valid.eq(flit_valid),
        buffer.write_vl.eq(flit_vl),
        buffer.read_select.eq(1 << taken_vl),
        buffer.pop.eq(pops),
    ]
    m.d.sync += [flit_valid.eq(sends), flit_vl.eq(vl), credit_valid.eq(pops), credit_vl.eq(taken_vl)]
    for v in range(2):
        home = Signal(4, init=2 + extra, name=f"credits_{v}")
        held = Signal(4, name=f"buffered_{v}")
        arrives = flit_valid & (flit_vl == v)
        returns = credit_valid & (credit_vl == v)
        m.d.sync += [
            home.eq(home + returns - (sends & (vl == v))),
            held.eq(held + arrives - (pops & (taken_vl == v))),
        ]
        m.d.comb += [
            Assert(credits.available[v] == (home != 0)),
            Assert(home + arrives + held + returns == 2 + extra),
            Assert(held <= 2),
            Assert(~arrives | ~buffer.full[v]),
            Cover(held == 2),
        ]
    return spec


@proof(block="Credits", states="credits and flits are constant together, and nothing overflows")
def test_credits_and_flits_are_constant_and_nothing_overflows(tmp_path):
    prove(credit_spec(Credits), tmp_path / "bmc", mode="bmc", depth=12)
    prove(credit_spec(Credits), tmp_path / "cover", mode="cover", depth=8)


@mutants_of(test_credits_and_flits_are_constant_and_nothing_overflows)
def test_a_credit_too_many_overflows(tmp_path):
    prove(credit_spec(Credits, extra=1), tmp_path, mode="bmc", depth=8, expect="fail")


@mutants_of(test_credits_and_flits_are_constant_and_nothing_overflows)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(self.available & ~last) | back", "(self.available | back) & ~last"),
        ("self.spend & (spent.following", "(spent.following"),
    ],
)
def test_proof_of_credits_catches_mutant(old, new, tmp_path):
    prove(credit_spec(mutate(Credits, old, new)), tmp_path, mode="bmc", depth=14, expect="fail")


NUM, DEN = 2, 5


def pacer_spec(component):
    """The pacer. `excess`: the most, over all windows that end now, of den * flits - num * cycles."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(LinkConfig(rate_num=NUM, rate_den=DEN))
    spec.inputs(dut, "sent")
    excess, idle = Signal(8), Signal(3)
    gained = excess + Mux(dut.sent, DEN, 0)
    m.d.sync += [
        excess.eq(Mux(gained > NUM, gained - NUM, 0)),
        idle.eq(Mux(dut.sent, 0, idle + (idle != 7))),
    ]
    m.d.comb += [
        Assume(~dut.sent | dut.slot),
        Assert(excess <= DEN),
        # After idle time, as long as the two flits before it can hold up the wire, a flit leaves at once.
        Assert((idle < 2) | dut.slot),
    ]
    return spec


@proof(block="LinkPacer", states="the rate is kept over every window, and used after idle time")
def test_pacer_keeps_the_rate(tmp_path):
    """The proof is for 25 cycles: all that its few states can do."""
    prove(pacer_spec(LinkPacer), tmp_path, mode="bmc", depth=25)


@mutants_of(test_pacer_keeps_the_rate)
@pytest.mark.parametrize(
    ("old", "new"), [("debt < num", "debt < den"), ("debt + den - num", "den - num"), ("debt > num", "0")]
)
def test_proof_of_pacer_catches_mutant(old, new, tmp_path):
    prove(pacer_spec(mutate(LinkPacer, old, new)), tmp_path, mode="bmc", depth=25, expect="fail")
