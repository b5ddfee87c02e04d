"""The proofs of small blocks over a grid of sizes: up to 16 VLs, buffers of 2 to 10 flits, every arbiter."""

from itertools import product

import pytest
from amaranth import Const, Mux, Signal
from amaranth.hdl import Assert, Assume
from lanikai.hdl.arbiter import ARBITERS
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.router.vl_buffer import VlBuffer
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

VLS = (1, 2, 3, 4, 8, 16)
DEPTHS = range(2, 11)
QUICK = {(3, 5)}
"""Sizes (VLs, depth) of the normal run."""


def sizes():
    return [
        pytest.param(vls, depth, marks=() if (vls, depth) in QUICK else pytest.mark.full)
        for vls, depth in product(VLS, DEPTHS)
    ]


MANY_VLS = 8
"""From so many VLs on the proof looks at the last one alone. With any VL, 16 VLs of 10 flits had no answer
after 108 s of processor time; with the last one they take 26 s."""


def lane_of(spec, vls):
    """The VL that is looked at: any, or of many the last one."""
    if vls >= MANY_VLS:
        return Const(vls - 1, range(vls))
    lane = spec.constant(range(max(2, vls)), "lane")
    spec.m.d.comb += Assume(lane < vls)
    return lane


def one_lane(component, vls, depth):
    """One VL of a buffer, any, and one item in it, any: it comes out once, as it was, in its place.

    The place is a count of the items before it. The VL is written and read as the credit rule allows. The other VLs are
    written and read at will, full or empty: nothing that is done to them may reach this one. That is more than a router
    needs, and far quicker to prove than counts of all VLs.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(shape=1, vls=vls, depth=depth)
    spec.inputs(dut, "write_valid", "write_vl", "write_data", "read_select", "pop")
    lane = lane_of(spec, vls)
    m.d.comb += [
        Assume(dut.write_vl < vls),
        Assume((dut.read_select & (dut.read_select - 1)) == 0),
        Assume(~dut.pop | dut.read_select.any()),
    ]
    count = Signal(range(depth + 1))
    writes = dut.write_valid & (dut.write_vl == lane)
    reads = dut.read_select.bit_select(lane, 1)
    pops = dut.pop & reads
    m.d.sync += count.eq(count + writes - pops)
    m.d.comb += [
        Assume(~writes | (count < depth)),
        Assume(~pops | (count != 0)),
        Assert(dut.non_empty.bit_select(lane, 1) == (count != 0)),
        Assert(dut.full.bit_select(lane, 1) == (count == depth)),
    ]
    marks = writes & spec.free(1, "marks")
    there, before, item = Signal(), Signal(range(depth + 1)), Signal()
    with m.If(marks & ~there):
        m.d.sync += [there.eq(1), before.eq(count - pops), item.eq(dut.write_data)]
    with m.Elif(there & pops):
        m.d.sync += [before.eq(before - 1), there.eq(before != 0)]
    m.d.comb += Assert(~(there & reads & (before == 0)) | (dut.read_data == item))
    return spec


@proof(
    block="VlBuffer",
    states="each VL's order is kept and nothing is lost: 1, 2, 3, 4 VLs, and the last of 8 and 16, of 2 to 10 flits",
)
@pytest.mark.parametrize(("vls", "depth"), sizes())
def test_buffer_of_a_size(vls, depth, tmp_path):
    """A ring is filled, emptied to the last item, and filled again beyond its beginning."""
    prove(one_lane(VlBuffer, vls, depth), tmp_path, mode="bmc", depth=depth + 5, timeout_s=900)


@mutants_of(test_buffer_of_a_size)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(self.full | filled) & ~popped", "filled & ~popped"),
        ("Cat(pointer[:row_bits], vl)", "Cat(pointer[:row_bits], 0)"),
    ],
)
def test_proof_of_a_size_of_buffer_catches_mutant(old, new, tmp_path):
    prove(one_lane(mutate(VlBuffer, old, new), 3, 5), tmp_path, mode="bmc", depth=10, expect="fail")


def one_account(component, vls, depth):
    """Credits of a VL, any, beside a plain count. The other VLs spend and get back at will."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(vls=vls, depth=depth)
    spec.inputs(dut, "spend", "spend_vl", "refund", "refund_vl")
    lane = lane_of(spec, vls)
    home = Signal(range(depth + 1), init=depth)
    spends, refunds = dut.spend & (dut.spend_vl == lane), dut.refund & (dut.refund_vl == lane)
    m.d.sync += home.eq(home + refunds - spends)
    m.d.comb += [
        Assume(dut.spend_vl < vls),
        Assume(dut.refund_vl < vls),
        Assume(~spends | (home != 0)),
        Assume(~refunds | (home != depth)),
        Assert(dut.available.bit_select(lane, 1) == (home != 0)),
    ]
    return spec


@proof(
    block="Credits",
    states="a VL has a credit exactly while not all are spent: 1, 2, 3, 4 VLs, and the last of 8 and 16, "
    "of 2 to 10 flits",
)
@pytest.mark.parametrize(("vls", "depth"), sizes())
def test_credits_of_a_size(vls, depth, tmp_path):
    """All credits of a VL are spent, come home, and are spent again."""
    prove(one_account(Credits, vls, depth), tmp_path, mode="bmc", depth=depth + 5, timeout_s=900)


@mutants_of(test_credits_of_a_size)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(self.available & ~last) | back", "(self.available | back) & ~last"),
        ("self.spend & (spent.following", "(spent.following"),
    ],
)
def test_proof_of_a_size_of_credits_catches_mutant(old, new, tmp_path):
    prove(one_account(mutate(Credits, old, new), 3, 5), tmp_path, mode="bmc", depth=10, expect="fail")


def contract(dut, vl):
    """One grant, to a requester, whenever anybody asks."""
    spec = Spec()
    spec.m.submodules.dut = dut
    spec.inputs(dut, "requests", "advance", *(["tails"] if vl else []))
    spec.m.d.comb += [
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~dut.requests) == 0),
        Assert(dut.grant.any() == dut.requests.any()),
        # What is not asked is not remembered as a request.
        Assert(Mux(dut.requests == 0, dut.grant == 0, 1)),
    ]
    return spec


@proof(
    block="each VL arbiter",
    states="one grant, to a requester, whenever anybody asks, of 1, 2, 3, 4, 8, 16 VLs",
)
@pytest.mark.parametrize("vls", [pytest.param(n, marks=() if n == 3 else pytest.mark.full) for n in VLS])
@pytest.mark.parametrize("name", VL_ARBITERS)
def test_vl_arbiter_of_a_size(name, vls, tmp_path):
    """Arbiters with tables stand with those of reset. Their rewriting is in `test_two_level.py`."""
    dut = make_vl_arbiter(name, vls=vls, entries=4, control_vl=15 if vls == 16 else None)
    prove(contract(dut, True), tmp_path, mode="bmc", depth=6, timeout_s=900)


@proof(
    block="each arbiter",
    states="one grant, to a requester, whenever anybody asks, of 1, 2, 3, 4, 8, 16",
    like=test_vl_arbiter_of_a_size,
)
@pytest.mark.full
@pytest.mark.parametrize("size", VLS)
@pytest.mark.parametrize("name", ARBITERS)
def test_arbiter_of_a_size(name, size, tmp_path):
    prove(contract(ARBITERS[name](size=size), False), tmp_path, mode="bmc", depth=6)


@mutants_of(test_vl_arbiter_of_a_size)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fcfs", "requests[u] & before[u, v] for u", "before[u, v] for u"),
        ("fixed_priority", "lowest_bit(requests)", "requests"),
    ],
)
def test_proof_of_a_size_of_arbiter_catches_mutant(name, old, new, tmp_path):
    dut = mutate(VL_ARBITERS[name], old, new)(vls=8)
    prove(contract(dut, True), tmp_path, mode="bmc", depth=6, expect="fail")
