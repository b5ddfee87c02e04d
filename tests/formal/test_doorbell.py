"""Proof of doorbells with owners and priorities: nothing lost, in order, the highest first, nothing from a
stranger. It is exhaustive for so many cycles after power-on."""

import pytest
from amaranth import Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.doorbell import Doorbell
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

ENTRIES = 2
CONFIG = preset(
    NicConfig,
    "tiny",
    channels=2,
    doorbell_queue_entries=ENTRIES,
    doorbell_priorities=2,
    receive_doorbells="separate",
    owners=2,
)


def doorbell_spec(component):
    """One bank and one priority, chosen by the solver, with counts and its nth doorbell; and the table of channels."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    ring = dut.ring.payload
    spec.inputs(dut, "ring.valid", "pop", "receive_pop", "assigns")
    channel, owner = spec.free(2, "channel"), spec.free(1, "owner")
    word, receive = spec.free(3, "word"), spec.free(1, "receive")
    assigned = {name: spec.free(1, f"assigned_{name}") for name in ("channel", "owner", "priority", "open")}
    m.d.comb += [ring.channel.eq(channel), ring.owner.eq(owner), ring.word.eq(word), ring.receive.eq(receive)]
    m.d.comb += [dut.assign[name].eq(value) for name, value in assigned.items()]

    # The table, in registers.
    priority, mine = Signal(), Signal()
    for i in range(2):
        who, its_priority, opened = (
            Signal(name=f"owner_{i}"),
            Signal(name=f"priority_{i}"),
            Signal(name=f"open_{i}"),
        )
        with m.If(dut.assigns & (assigned["channel"] == i)):
            m.d.sync += [
                who.eq(assigned["owner"]),
                its_priority.eq(assigned["priority"]),
                opened.eq(assigned["open"]),
            ]
        with m.If(channel == i):
            m.d.comb += [priority.eq(its_priority), mine.eq(opened & (owner == who))]

    bank, chosen, nth = spec.constant(1, "bank"), spec.constant(1, "chosen"), spec.constant(2, "nth")
    takes = dut.ring.valid & dut.ring.ready
    enters = takes & mine & (receive == bank) & (priority == chosen)
    head, valid, pop = Signal.like(dut.head), Signal(), Signal()
    with m.If(bank):
        m.d.comb += [head.eq(dut.receive_head), valid.eq(dut.receive_head_valid), pop.eq(dut.receive_pop)]
    with m.Else():
        m.d.comb += [head.eq(dut.head), valid.eq(dut.head_valid), pop.eq(dut.pop)]
    # Words carry their priority and bank, so that an entry of the head is known for what it is.
    m.d.comb += Assume(word[:2] == ((priority << 1) | receive))
    leaves = valid & pop & (head.word[1] == chosen)
    count, entered, left, content = Signal(2), Signal(4), Signal(4), Signal(5)
    with m.If(enters & (entered == nth)):
        m.d.sync += content.eq(channel << 3 | word)
    old = Signal()  # the priority has had an entry before this cycle
    m.d.sync += [
        count.eq(count + enters - leaves),
        entered.eq(entered + enters),
        left.eq(left + leaves),
        old.eq(0),
    ]
    with m.If((count != 0) & ~leaves):
        m.d.sync += old.eq(1)
    refusals = Signal(4)
    m.d.sync += refusals.eq(refusals + (dut.ring.valid & ~mine))
    m.d.comb += [
        Assert(dut.refused == ~mine),
        Assert(dut.refusals == refusals),
        Assert(~enters | (count < ENTRIES)),
        Assert(~leaves | (count != 0)),
        # A write waits only for its own queue, or for its newest entry on its way to the head.
        Assert(dut.ring.ready | ~mine | (receive != bank) | (priority != chosen) | (count >= ENTRIES - 1)),
        Assert(~valid | (head.word[0] == bank)),
        Assert(~leaves | (left != nth) | (head.word == content[:3]) & (head.channel == content[3:])),
        # A doorbell that waits is shown, and nothing lower before it.
        Assert(~(old & (count != 0)) | (valid & (head.word[1] >= chosen))),
        Cover((count == ENTRIES) & leaves),
        Cover((left == 3) & (dut.refusals == 1)),
    ]
    return spec


@proof(block="Doorbell", states="rings of each priority are in order, and a stranger is not heard")
def test_doorbells_of_each_priority_are_in_order_and_a_stranger_is_not_heard(tmp_path):
    prove(doorbell_spec(Doorbell), tmp_path / "bmc", mode="bmc", depth=9, timeout_s=300)


@proof(
    block="Doorbell",
    states="the same in more cycles",
    like=test_doorbells_of_each_priority_are_in_order_and_a_stranger_is_not_heard,
)
@pytest.mark.full
def test_doorbells_of_priorities_in_more_cycles(tmp_path):
    prove(doorbell_spec(Doorbell), tmp_path / "bmc", mode="bmc", depth=14, timeout_s=1800)
    prove(doorbell_spec(Doorbell), tmp_path / "cover", mode="cover", depth=14, timeout_s=600)


MUTANTS = [
    ("(known.owner != self.ring.payload.owner)", "0"),
    ("room = room | (mine & queue.w_rdy)", "room = room | mine"),
    ("refused | ~known.open |", "refused |"),
    ("queue.w_en.eq(accepted & mine)", "queue.w_en.eq(self.ring.valid & mine)"),
    ("pop & ~higher if queues else pop", "pop"),
    ("for i in reversed(range(priorities))", "for i in range(priorities)"),
    ("(ring.receive == bank)", "1"),
]


@mutants_of(test_doorbells_of_each_priority_are_in_order_and_a_stranger_is_not_heard)
@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(*mutant, marks=[pytest.mark.full] if i > 1 else []) for i, mutant in enumerate(MUTANTS)],
)
def test_proof_of_priorities_catches_mutant(old, new, tmp_path):
    prove(
        doorbell_spec(mutate(Doorbell, old, new)), tmp_path, mode="bmc", depth=9, expect="fail", timeout_s=300
    )
