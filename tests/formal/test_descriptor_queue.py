"""Proofs of the descriptor queue in both orders: nothing lost, nothing twice, the right one first, full and empty."""

from itertools import pairwise

import pytest
from amaranth import Cat, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.nic.queues.descriptor_queue import DescriptorQueue
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

ENTRIES = 3
STAMP_BITS = 3
DEPTH = 7


def order_spec(component, order):
    """The queue beside a list in registers. A newcomer's place is counted from the end of the list: it is before all
    entries at the end that it may overtake."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(2, entries=ENTRIES, order=order, stamp_bits=STAMP_BITS)
    spec.inputs(dut, "push.valid", "push.payload", "pop", "protect")
    count = Signal(range(ENTRIES + 1))
    waiting = [Signal(2 + 1 + STAMP_BITS + 1, name=f"waiting_{i}") for i in range(ENTRIES)]
    new = dut.push.payload
    list_goes_on, is_open, newest_here, newest_at = Signal(), Signal(), Signal(), Signal(range(ENTRIES))
    enters = dut.push.valid & dut.push.ready
    head_is_rest = waiting[0][-1]
    may_leave = count != 0
    if order == "timestamp":
        may_leave &= ~is_open | head_is_rest
    leaves = dut.pop & may_leave

    # `place` in the list as it stands before the head leaves.
    place = Signal(range(ENTRIES + 1))
    if order == "arrival":
        m.d.comb += place.eq(count)
    else:
        m.d.comb += place.eq(count)
        stays = Signal(ENTRIES)
        for i in range(ENTRIES):
            stamp = waiting[i][3 : 3 + STAMP_BITS]
            in_time = ~(new.stamp - stamp)[STAMP_BITS - 1]
            m.d.comb += stays[i].eq(in_time | (dut.protect > i) | waiting[i][-1] | (leaves if i == 0 else 0))
        for i in reversed(range(ENTRIES)):
            with m.If((count > i) & ~stays[i]):
                m.d.comb += place.eq(i)
        with m.If(list_goes_on):
            m.d.comb += place.eq(Mux(newest_here, newest_at + 1, 0))
    m.d.comb += [
        Assert(dut.level == count),
        Assert(dut.push.ready == (count != ENTRIES)),
        Assert(dut.head_valid == may_leave),
        Assert(~may_leave | (dut.head == waiting[0][:2])),
        Assert(~may_leave | (dut.head_more == waiting[0][2])),
        Cover((count == ENTRIES) & leaves),
        Cover(enters & leaves & (count == 2) & (place == (2 if order == "arrival" else 1))),
    ]
    after = [Signal.like(waiting[0], name=f"after_{i}") for i in range(ENTRIES)]
    stayed = [Mux(leaves, b, a) for a, b in pairwise([*waiting, waiting[0]])]
    at = Signal.like(place)
    m.d.comb += at.eq(place - (leaves & (place != 0)))
    item = Cat(new.descriptor, new.more, new.stamp, list_goes_on)
    for i in range(ENTRIES):
        shifted = stayed[i - 1] if i else item
        m.d.comb += after[i].eq(Mux(enters, Mux(at == i, item, Mux(at < i, shifted, stayed[i])), stayed[i]))
        m.d.sync += waiting[i].eq(after[i])
    m.d.sync += count.eq(count + enters - leaves)
    with m.If(leaves):
        m.d.sync += is_open.eq(waiting[0][2])
    with m.If(enters):
        m.d.sync += [list_goes_on.eq(new.more), newest_here.eq(1), newest_at.eq(at)]
    with m.Elif(leaves):
        m.d.sync += [newest_here.eq(newest_here & (newest_at != 0)), newest_at.eq(newest_at - 1)]
    return spec


def loss_spec(component, order):
    """One descriptor, of any number and at any time, is marked.

    It leaves once, as it came, unless it is still there. An empty queue holds it no more. Stamps are any, comparable or
    not.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(2, entries=ENTRIES, order=order, stamp_bits=STAMP_BITS)
    spec.inputs(dut, "push.valid", "push.payload", "pop", "protect")
    inside, was = Signal(), Signal()
    count = Signal(range(ENTRIES + 1))
    value = spec.constant(1, "value")
    marked = dut.push.payload.descriptor[0]
    enters = dut.push.valid & dut.push.ready
    leaves = dut.pop & dut.head_valid
    m.d.comb += [
        Assume(~(enters & marked) | (~was & (dut.push.payload.descriptor[1] == value))),
        Assert(~(leaves & dut.head[0]) | (inside & (dut.head[1] == value))),
        Assert((count != 0) | ~inside),
        Assert(dut.level == count),
        Assert(~enters | (count < ENTRIES)),
        Assert(~leaves | (count != 0)),
        Cover(was & ~inside & (count == 0)),
    ]
    m.d.sync += [
        count.eq(count + enters - leaves),
        was.eq(was | (enters & marked)),
        inside.eq((inside & ~(leaves & dut.head[0])) | (enters & marked)),
    ]
    return spec


SPECS = {"order": order_spec, "loss": loss_spec}


@proof(block="DescriptorQueue", states="order is kept and nothing is lost")
@pytest.mark.parametrize("order", [pytest.param("arrival", marks=pytest.mark.full), "timestamp"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_descriptor_queue_keeps_order_and_loses_nothing(spec, order, tmp_path):
    prove(SPECS[spec](DescriptorQueue, order), tmp_path / "bmc", mode="bmc", depth=DEPTH)
    prove(SPECS[spec](DescriptorQueue, order), tmp_path / "cover", mode="cover", depth=DEPTH)


MUTANTS = [
    ("loss", "arrival", "Mux(at == self.entries - 1, 0, at + 1)", "at + 1"),
    ("loss", "timestamp", "self.push.ready.eq(self.level != self.entries)", "self.push.ready.eq(1)"),
    (
        "loss",
        "timestamp",
        "m.d.sync += [rows[i].eq(rows[0]), linked[i].eq(0)]",
        "m.d.sync += linked[i].eq(0)",
    ),
    ("loss", "timestamp", "before.eq(stays & ((~stays)[:n] - 1))", "before.eq(stays)"),
    ("order", "arrival", "popped.eq(self.pop & self.head_valid)", "popped.eq(self.pop)"),
    ("order", "timestamp", "~(stamp - stamps[i])[self.stamp_bits - 1]", "stamp >= stamps[i]"),
    (
        "order",
        "timestamp",
        "~(stamp - stamps[i])[self.stamp_bits - 1]",
        "(stamps[i] - stamp)[self.stamp_bits - 1]",
    ),
    ("order", "timestamp", "(self.protect > i)", "(self.protect > i + 1)"),
    ("order", "timestamp", "| popped", "| 0"),
    ("order", "timestamp", "Mux(newest.any(), newest | (newest - 1), 0)", "newest | (newest - 1)"),
    ("order", "timestamp", "(~is_open | linked[0])", "1"),
]


@mutants_of(test_the_descriptor_queue_keeps_order_and_loses_nothing)
@pytest.mark.parametrize(
    ("spec", "order", "old", "new"),
    # Every third, of both proofs; the others take long on top.
    [pytest.param(*mutant, marks=[] if i % 3 == 1 else pytest.mark.full) for i, mutant in enumerate(MUTANTS)],
)
def test_proof_of_the_descriptor_queue_catches_mutant(spec, order, old, new, tmp_path):
    mutant = mutate(DescriptorQueue, old, new)
    prove(SPECS[spec](mutant, order), tmp_path, mode="bmc", depth=DEPTH, expect="fail")
