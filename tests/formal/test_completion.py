"""Proofs of completion: entries whole, in order, after their data, never over others; no event is missed.

There is one queue, exhaustively for so many cycles after power-on. A statement that depends on which entry, or which
data transfer, is made of one that the solver chooses.
"""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import LinkConfig, NicConfig, preset
from lanikai.hdl.nic.dma.bus_fence import BusFence
from lanikai.hdl.nic.owners.completion import Completion
from lanikai.hdl.nic.owners.event_flags import EventFlags
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof


def mutants(*found, quick=1):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i < quick else [pytest.mark.full]) for i, one in enumerate(found)]


LOG2 = 1
CONFIG = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=2),
    bus_bits=64,
    owners=8,
    completion_queues=1,
    completion_batch=2,
)
BASE = 0x1000
FIRST = {0: 0, 1: 0xFFFF}
"""A queue's first entry: with one that stalls the running indices wrap after it."""


def fence_spec(component):
    """The fence for any transfers: one that stood on the bus at the last mark is answered when the fence is clear.

    Answers with an ID come in order. The solver chooses which transfer, which ID and which direction.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component()
    bus = dut.watched
    spec.inputs(dut, *(f"watched.{name}" for name in bus.signature.members), "mark")
    chosen = spec.constant(1, "chosen_id")
    nth = spec.constant(2, "nth")
    for kind, ended in (("aw", bus.bvalid & bus.bready), ("ar", bus.rvalid & bus.rready & bus.rlast)):
        valid, ready, identity = (getattr(bus, f"{kind}{name}") for name in ("valid", "ready", "id"))
        answer = bus.bid if kind == "aw" else bus.rid
        held, held_id = Signal(name=f"{kind}_held"), Signal(2, name=f"{kind}_held_id")
        shown, taken, answers = (Signal(4, name=f"{kind}_{what}") for what in ("shown", "taken", "answers"))
        mine = identity == chosen
        new = valid & ~held
        m.d.comb += [
            Assume(~held | (valid & (identity == held_id))),
            Assume(identity < 2),
            Assume(answer < 2),
            # Nothing is answered that has not been asked: of either ID.
            Assume(~(ended & (answer == chosen)) | (answers < taken)),
        ]
        others = Signal(4, name=f"{kind}_others")
        m.d.comb += Assume(~(ended & (answer != chosen)) | (others != 0))
        m.d.sync += [
            held.eq(valid & ~ready),
            held_id.eq(identity),
            shown.eq(shown + (new & mine)),
            taken.eq(taken + (valid & ready & mine)),
            answers.eq(answers + (ended & (answer == chosen))),
            others.eq(others + (valid & ready & ~mine) - (ended & (answer != chosen))),
        ]
        # The nth one with the chosen ID was on the bus at the last mark.
        marked = Signal(name=f"{kind}_marked")
        with m.If(dut.mark):
            m.d.sync += marked.eq(shown + (new & mine) > nth)
        m.d.comb += [
            Assert(~(dut.clear & marked) | (answers > nth)),
            Cover(marked & dut.clear & (shown > taken)),
        ]
    return spec


@proof(block="BusFence", states="the fence waits for all that was under way")
def test_fence_waits_for_all_that_was_under_way(tmp_path):
    prove(fence_spec(BusFence), tmp_path / "bmc", mode="bmc", depth=9)
    prove(fence_spec(BusFence), tmp_path / "cover", mode="cover", depth=9)


@mutants_of(test_fence_waits_for_all_that_was_under_way)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("Mux(self.mark, now,", "Mux(self.mark, under_way,"),
        ("& (answer_id == i)", ""),
        ("valid & ~seen &", "valid & ready &"),
        ("now.eq(under_way +", "now.eq(0 +"),
    ),
)
def test_proof_of_fence_catches_mutant(old, new, tmp_path):
    prove(fence_spec(mutate(BusFence, old, new)), tmp_path, mode="bmc", depth=9, expect="fail")


def flags_spec(component):
    """A flag that was set is up, and shown, until it is acknowledged by its number; and it gets its turn."""
    spec = Spec()
    m = spec.m
    size = 3
    m.submodules.dut = dut = component(size=size)
    spec.inputs(dut, "set", "acknowledge")
    which = spec.constant(range(size), "which")
    up, overtaken = Signal(), Signal(3)
    shown = dut.any & (dut.index == which)
    mine = dut.set.bit_select(which, 1)
    m.d.comb += [
        Assume(which < size),
        Assert(~up | dut.any),
        Assert(~shown | up),
        Assert(~dut.any | (dut.index < size)),
        # Any other flag is acknowledged once at most before this one.
        Assert(overtaken < size),
        Cover(overtaken == size - 1),
    ]
    m.d.sync += [
        up.eq((up & ~(dut.acknowledge & shown)) | mine),
        overtaken.eq(Mux(up & ~(dut.acknowledge & shown), overtaken + (dut.acknowledge & up), 0)),
    ]
    return spec


@proof(block="EventFlags", states="flags stay until acknowledged, and each gets its turn")
def test_flags_stay_until_acknowledged_and_get_their_turn(tmp_path):
    prove(flags_spec(EventFlags), tmp_path / "bmc", mode="bmc", depth=10)
    prove(flags_spec(EventFlags), tmp_path / "cover", mode="cover", depth=10)


@mutants_of(test_flags_stay_until_acknowledged_and_get_their_turn)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("((flags & ~taken) | self.set)", "((flags | self.set) & ~taken)"),
        ("Mux(later.any(), first_later, first)", "first"),
        ("taken.eq(1 << self.index)", "taken.eq(~0)"),
    ),
)
def test_proof_of_flags_catches_mutant(old, new, tmp_path):
    prove(flags_spec(mutate(EventFlags, old, new)), tmp_path, mode="bmc", depth=10, expect="fail")


class Bus:
    """The host's bus under the unit's port. The solver drives it as it likes, within the rules; and the rules are
    checked."""

    def __init__(self, spec, axi):
        m: Module = spec.m
        spec.inputs(axi, "awready", "wready", "bvalid", "bresp")
        for channel, names in (("aw", ("awaddr", "awlen")), ("w", ("wdata", "wstrb", "wlast"))):
            held = Signal(name=f"{channel}_held")
            m.d.sync += held.eq(getattr(axi, f"{channel}valid") & ~getattr(axi, f"{channel}ready"))
            m.d.comb += Assert(~held | getattr(axi, f"{channel}valid"))
            for name in names:
                before = Signal.like(getattr(axi, name), name=f"{name}_before")
                m.d.sync += before.eq(getattr(axi, name))
                m.d.comb += Assert(~held | (getattr(axi, name) == before))
        # One burst at a time: the place of its next beat, whether it can be answered.
        self.beat, self.last = Signal(4), Signal()
        addressed = Signal()
        ends = axi.bvalid & axi.bready
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += addressed.eq(1)
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [self.beat.eq(self.beat + 1), self.last.eq(axi.wlast)]
        with m.If(ends):
            m.d.sync += [addressed.eq(0), self.last.eq(0), self.beat.eq(0)]
        m.d.comb += [
            Assume(~axi.bvalid | (addressed & self.last)),
            Assert(~(axi.awvalid & addressed)),
            Assert(~(axi.wvalid & self.last)),
            Assert(~axi.arvalid & axi.bready),
            Assert(axi.awburst == 1),
            # `wlast` stands where the address says, when both are known.
            Assert(~(axi.wvalid & axi.awvalid) | (axi.wlast == (self.beat == axi.awlen))),
        ]


def completion_spec(component, *, stall):
    """A queue of 2 entries beside running numbers: entries posted, entries in memory, entries consumed."""
    spec = Spec()
    m = spec.m
    first = FIRST[stall]
    dut = component(CONFIG, first_index=first)
    dut._MustUse__silence = True
    m.submodules.dut = dut.elaborate(None)
    bus = Bus(spec, dut.axi)
    axi = dut.axi
    post, setup, consume = dut.post.payload, dut.setup.payload, dut.consume.payload
    spec.inputs(dut, "post.valid", "post.payload.bytes", "consume.valid", "consume.payload.index")
    spec.inputs(dut, "consume.payload.arm", "consume.payload.owner", "acknowledge")
    spec.inputs(dut, *(f"watched.{name}" for name in ("awvalid", "bvalid")))
    ready = Signal()  # the queue is set up
    m.d.sync += ready.eq(ready | dut.setup.ready)
    m.d.comb += [
        dut.setup.valid.eq(~ready),
        setup.base.eq(BASE),
        setup.entries_log2.eq(LOG2),
        setup.batch.eq(spec.constant(2, "batch")),
        setup.lag_cycles.eq(spec.constant(2, "lag")),
        setup.stall.eq(stall),
        setup.owner.eq(5),
        post.entry.eq(1),
        Assume(ready | ~(dut.post.valid | dut.consume.valid)),
        # Answers are good; errors are for the simulated tests.
        Assume(axi.bresp == 0),
    ]
    posts = dut.post.valid & dut.post.ready
    entries = 1 << LOG2

    # The data: one transfer at a time, and one of them is chosen.
    data, data_held, transfers, answered = Signal(), Signal(), Signal(4), Signal(4)
    watched = dut.watched
    new = watched.awvalid & ~data_held
    m.d.comb += [
        watched.awready.eq(1),
        watched.bready.eq(1),
        Assume(~(watched.awvalid & data)),
        Assume(~watched.bvalid | data),
    ]
    m.d.sync += [
        data.eq((data | watched.awvalid) & ~watched.bvalid),
        transfers.eq(transfers + new),
        answered.eq(answered + watched.bvalid),
    ]

    # The chosen post: the nth that was taken; what it said, and the transfers before it.
    nth = spec.constant(3, "nth")
    taken, content, before = Signal(5), Signal(16), Signal(4)
    with m.If(posts):
        m.d.sync += taken.eq(taken + 1)
        with m.If(taken == nth):
            m.d.sync += [content.eq(post.bytes), before.eq(transfers + new)]
    known = taken > nth

    # Beats in the order of the ring.
    beats, written, consumed = Signal(5), Signal(5), Signal(5)
    beat = axi.wvalid & (beats == nth)
    word = axi.wdata
    lost = Signal()  # the queue was overrun
    m.d.sync += lost.eq(lost | dut.failed)
    overrun, phase = word[16:21] == 31, ~(first + beats)[LOG2]
    m.d.comb += [
        Assert(~axi.awvalid | (axi.awaddr == BASE + 8 * ((first + beats - bus.beat) % entries))),
        # Whatever the index, the unit waits for the answer of what it has written, and then is free for the next.
        Assert(~axi.bvalid | dut._ended),
        Assert(~beat | known),
        Assert(~beat | (answered >= before)),
        Assert(~beat | overrun | (word[:16] == content)),
        Assert(~axi.wvalid | (axi.wstrb == 0xFF)),
        Assert(~axi.wvalid | ((word[31] == phase) & (word[63] == phase))),
        # Never over an entry that has not been consumed, and OVERRUN only when one is left.
        Assert(~axi.wvalid | (beats - consumed < entries)),
        Assert(~(axi.wvalid & overrun) | lost),
        Assert(~lost | ~stall),
        Assert(beats <= taken),
    ]
    with m.If(axi.wvalid & axi.wready):
        m.d.sync += beats.eq(beats + 1)
    with m.If(axi.bvalid):
        m.d.sync += written.eq(beats)

    # The consumer: whatever it says; it may have seen what a burst that has begun brings.
    begun, begun_before = Signal(5), Signal(5)
    m.d.sync += begun_before.eq(begun)
    m.d.comb += begun.eq(Mux(axi.awvalid, beats - bus.beat + axi.awlen + 1, begun_before))
    asked, index = dut.consume.valid & dut.consume.ready, (consume.index - first)[:16]
    true = (index >= consumed) & (index <= begun) & (consume.owner == 5)
    m.d.comb += Assert(~asked | (dut.refused == ~true))
    with m.If(asked & true):
        m.d.sync += consumed.eq(index)

    # Armed, an entry that it has not seen, and no event: never. Who acknowledges the event that came of arming looks
    # again, and has to arm again.
    arms, wanted, met, unseen = asked & true & consume.arm, Signal(), Signal(), written > consumed
    answers = dut.acknowledge & (met | unseen)
    m.d.sync += [wanted.eq(arms | (wanted & ~answers)), met.eq(~arms & wanted & ~answers & (met | unseen))]
    m.d.comb += Assert(~(wanted & unseen) | dut.event)
    m.d.comb += (
        Cover((written == 3) & dut.event & (consumed == 1))
        if stall
        else Cover(lost & (written == 2) & dut.event)
    )
    return spec


DEPTH = 14


@proof(block="Completion", states="entries come whole, in order, after their data, and wake who waits")
@pytest.mark.parametrize("stall", [0, 1])
def test_entries_come_whole_in_order_after_their_data_and_wake_who_waits(stall, tmp_path):
    prove(completion_spec(Completion, stall=stall), tmp_path / "bmc", mode="bmc", depth=DEPTH, timeout_s=600)


@proof(
    block="Completion",
    states="the same in more cycles",
    like=test_entries_come_whole_in_order_after_their_data_and_wake_who_waits,
)
@pytest.mark.full
@pytest.mark.parametrize("stall", [0, 1])
def test_completion_in_more_cycles(stall, tmp_path):
    prove(completion_spec(Completion, stall=stall), tmp_path / "bmc", mode="bmc", depth=20, timeout_s=3600)
    prove(completion_spec(Completion, stall=stall), tmp_path / "cover", mode="cover", depth=30, timeout_s=600)


MUTANTS = [
    (
        1,
        "(index + 1)[: self._index_bits] == self._end",
        "index + 1 == self._end",
    ),  # stood still at entry 65,536
    (0, "clear = fence.clear", "clear = Signal(init=1)"),
    (1, "& ~(setup.stall & (used >= entries))", ""),
    (0, "(used >= entries - 1)", "(used >= entries)"),
    (1, "phase.eq(~produced", "phase.eq(produced"),
    (1, "Mux(here, self._end, self._state", "Mux(0, self._end, self._state"),
    (1, "| (steps > issued)", ""),
    (1, "| (setup.owner != consume.owner)", ""),
    (1, "self._armed.bit_select(queue, 1).eq(~finds)", "self._armed.bit_select(queue, 1).eq(0)"),
]


@mutants_of(test_entries_come_whole_in_order_after_their_data_and_wake_who_waits)
@pytest.mark.parametrize(("stall", "old", "new"), mutants(*MUTANTS))
def test_proof_of_completion_catches_mutant(stall, old, new, tmp_path):
    spec = completion_spec(mutate(Completion, old, new), stall=stall)
    prove(spec, tmp_path, mode="bmc", depth=24, expect="fail", timeout_s=600)
