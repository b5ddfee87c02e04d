"""Proofs of the adapter's completions: after their data, never over unread ones, and no queue holds up another one.

Exhaustive for so many cycles after power-on, with running indices that wrap in that time.
"""

import pytest
from amaranth import Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.completion_writer import CompletionWriter
from lanikai.hdl.hca.layout import CqeStatus
from lanikai.hdl.hca.receive.write_ends import WriteEnds
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = preset(HcaConfig, "tiny").replace(queue_pairs=2, completion_queues=2)
BASE = 0x1000
INDEX_BITS = 3
ENTRIES = 2


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i == 0 else [pytest.mark.full]) for i, one in enumerate(found)]


def writer_of(spec, component, *, first_index=7):
    """A writer with free inputs, whose queue q has its ring at (q + 1) * BASE; and the writes that are under way."""
    m = spec.m
    m.submodules.dut = dut = component(CONFIG, index_bits=INDEX_BITS, first_index=first_index)
    spec.inputs(dut, "axi.awready", "axi.wready", "axi.bvalid", "setup.valid", "consume.valid")
    setup, consume = dut.setup.payload, dut.consume.payload
    m.d.comb += [
        setup.queue.eq(spec.free(1, "setup_queue")),
        setup.owner.eq(spec.free(1, "setup_owner")),
        setup.entries_log2.eq(spec.free(1, "setup_log2")),
        setup.base.eq((setup.queue + 1) * BASE),
        consume.queue.eq(spec.free(1, "consume_queue")),
        consume.owner.eq(spec.free(1, "consume_owner")),
        consume.index.eq(spec.free(INDEX_BITS, "consume_index")),
        dut.axi.bresp.eq(spec.free(1, "error") << 1),
    ]
    for i in range(2):
        post = getattr(dut, f"post_{i}")
        spec.inputs(dut, f"post_{i}.valid")
        queue = spec.free(1, f"post_queue_{i}")
        m.d.comb += [post.payload.queue.eq(queue), post.payload.entry.tag.eq(spec.free(1, f"tag_{i}"))]
        waits, before = Signal(name=f"waits_{i}"), Signal(name=f"before_{i}")
        m.d.sync += [waits.eq(post.valid & ~post.ready), before.eq(queue)]
        m.d.comb += Assume(~waits | (post.valid & (queue == before)))
    axi = dut.axi
    addresses, beats, answers = (Signal(5, name=name) for name in ("addresses", "beats", "answers"))
    m.d.sync += [
        addresses.eq(addresses + (axi.awvalid & axi.awready)),
        beats.eq(beats + (axi.wvalid & axi.wready)),
        answers.eq(answers + (axi.bvalid & axi.bready)),
    ]
    # The bus answers only what it has taken.
    m.d.comb += Assume(~axi.bvalid | ((answers < addresses) & (answers < beats)))
    return dut, addresses, answers


def rings_spec(component):
    """Queue 0: its entries, its consumer and its death, as a process sees them."""
    spec = Spec()
    m = spec.m
    dut, _, _ = writer_of(spec, component)
    axi, consume = dut.axi, dut.consume
    # A write is seen in its first cycle on the bus.
    held, shown = Signal(), Signal()
    m.d.sync += held.eq(axi.awvalid & ~axi.awready)
    mine = axi.awaddr[12:14] == 1
    m.d.comb += shown.eq(axi.awvalid & ~held & mine)
    sets = Signal()
    m.d.comb += sets.eq(dut.setup.valid & dut.setup.ready & (dut.setup.payload.queue == 0))
    opened, owner = Signal(), Signal()
    written, consumed = Signal(INDEX_BITS), Signal(INDEX_BITS)  # since the set-up
    last, overrun = Signal(), Signal()
    entry_status = axi.wdata[40:45]
    takes = consume.valid & consume.ready & (consume.payload.queue == 0) & ~dut.refused
    here = Signal(INDEX_BITS)
    index = (consume.payload.index - 7)[:INDEX_BITS]
    m.d.comb += [
        here.eq(written + shown),
        Assert(~shown | opened),
        # Never over an entry that has not been consumed.
        Assert((here - consumed)[:INDEX_BITS] <= ENTRIES),
        # At its place, and none after the one that says OVERRUN, which fills the ring.
        Assert(~shown | (axi.awaddr == BASE + ((written + 7)[0] << 4))),
        Assert(~shown | ~overrun),
        last.eq(shown & axi.wvalid & (entry_status == CqeStatus.OVERRUN)),
        Assert(~shown | ((here - consumed)[:INDEX_BITS] < ENTRIES) | last),
        Assert(~shown | (axi.wdata[127] != (written + 7)[1])),
        # The consumer: only the owner's, only over what it could see.
        Assert(~takes | (opened & (consume.payload.owner == owner))),
        Assert(~takes | ((index - consumed)[:INDEX_BITS] <= (here - consumed)[:INDEX_BITS])),
        Cover(last & (consumed == 1)),
        Cover(shown & (written == 3)),
    ]
    with m.If(shown):
        m.d.sync += written.eq(here)
    with m.If(last):
        m.d.sync += overrun.eq(1)
    with m.If(takes):
        m.d.sync += consumed.eq(index)
    with m.If(sets):
        m.d.sync += [
            opened.eq(dut.setup.payload.entries_log2 == 1),
            owner.eq(dut.setup.payload.owner),
            written.eq(0),
            consumed.eq(0),
            overrun.eq(0),
        ]
    return spec


@proof(
    block="CompletionWriter", states="no entry over an unread one, none of a dead queue, only owners consume"
)
def test_entries_go_over_no_unread_ones(tmp_path):
    prove(rings_spec(CompletionWriter), tmp_path / "bmc", mode="bmc", depth=11)
    prove(rings_spec(CompletionWriter), tmp_path / "cover", mode="cover", depth=12)


@mutants_of(test_entries_go_over_no_unread_ones)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("overrun.eq(used >= entries - 1)", "overrun.eq(used >= entries)"),
        ("| (ahead > written)", ""),
        ("| self._bit(self.dead, posted.queue)", ""),
        ('(self._row["consume"].owner != consume.owner)', "0"),
        ("phase.eq(~produced", "phase.eq(produced"),
    ),
)
def test_proof_of_rings_catches_mutant(old, new, tmp_path):
    prove(rings_spec(mutate(CompletionWriter, old, new)), tmp_path, mode="bmc", depth=11, expect="fail")


def answers_spec(component):
    """The nth write: its answer is told for its queue."""
    spec = Spec()
    m = spec.m
    dut, addresses, answers = writer_of(spec, component)
    axi = dut.axi
    nth = spec.constant(3, "nth")
    queue, known = Signal(), Signal()
    with m.If(axi.awvalid & axi.awready & (addresses == nth)):
        m.d.sync += [queue.eq(axi.awaddr[13]), known.eq(1)]
    its = axi.bvalid & axi.bready & (answers == nth)
    m.d.comb += [
        Assert(axi.bready),
        Assert(~its | known),
        Assert(dut.completed == (axi.bvalid & ~axi.bresp[1])),
        Assert(~(its & dut.completed) | (dut.completed_queue == queue)),
        Cover(its & (nth == 2) & queue),
    ]
    return spec


@proof(block="CompletionWriter", states="an entry is told of when the bus has answered it, and for its queue")
def test_entries_are_told_of_when_answered(tmp_path):
    prove(answers_spec(CompletionWriter), tmp_path / "bmc", mode="bmc", depth=11)
    prove(answers_spec(CompletionWriter), tmp_path / "cover", mode="cover", depth=12)


@mutants_of(test_entries_are_told_of_when_answered)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("under_way.w_data.eq(posted.queue)", "under_way.w_data.eq(0)"),
        ("self.completed.eq(answered & ~axi.bresp[1])", "self.completed.eq(answered)"),
    ),
)
def test_proof_of_answers_catches_mutant(old, new, tmp_path):
    prove(answers_spec(mutate(CompletionWriter, old, new)), tmp_path, mode="bmc", depth=11, expect="fail")


def waits_spec(component):
    """A bus that takes every write, no set-up: a post waits for one of the other source, whatever its queue does."""
    spec = Spec()
    m = spec.m
    dut, addresses, answers = writer_of(spec, component)
    m.d.comb += [Assume(dut.axi.awready & dut.axi.wready), Assume(addresses - answers < 6)]
    began = Signal()
    m.d.sync += began.eq(1)
    for i in range(2):
        post = getattr(dut, f"post_{i}")
        waited = Signal(3, name=f"waited_{i}")
        with m.If(~post.valid | post.ready | dut.setup.valid):
            m.d.sync += waited.eq(0)
        with m.Else():
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += [Assert(waited <= 1), Cover((waited == 1) & dut.dead[0])]
    return spec


@proof(block="CompletionWriter", states="no queue, dead or alive, holds the posts of another one")
def test_no_queue_holds_posts_of_another_one(tmp_path):
    prove(waits_spec(CompletionWriter), tmp_path / "bmc", mode="bmc", depth=11)
    prove(waits_spec(CompletionWriter), tmp_path / "cover", mode="cover", depth=12)


@mutants_of(test_no_queue_holds_posts_of_another_one)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("goes.eq(have & (lost | room))", "goes.eq(have & ~lost & room)"),
        ("goes.eq(have & (lost | room))", "goes.eq(have & (lost | (room & ~overrun)))"),
        ("turns.advance.eq(takes)", "turns.advance.eq(0)"),
    ),
)
def test_proof_of_waits_catches_mutant(old, new, tmp_path):
    prove(waits_spec(mutate(CompletionWriter, old, new)), tmp_path, mode="bmc", depth=11, expect="fail")


def ends_spec(component):
    """The nth item, which ends a message, and any burst before it: what the post says, and when."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    spec.inputs(dut, "item.valid", "answer", "error", "post.ready")
    item = dut.item.payload
    m.d.comb += [
        item.awaits.eq(spec.free(1, "awaits")),
        item.ends.eq(spec.free(1, "ends")),
        item.qp.eq(spec.free(1, "qp")),
        item.post.entry.tag.eq(spec.free(1, "tag")),
        item.post.entry.bytes.eq(5),
    ]
    taken, answer = dut.item.valid & dut.item.ready, dut.answer & dut.answer_ready
    posted = dut.post.valid & dut.post.ready
    nth, burst = spec.constant(3, "nth"), spec.constant(3, "burst")
    items, awaited, ended, answers, posts = (
        Signal(5, name=name) for name in ("items", "awaited", "ended", "answers", "posts")
    )
    m.d.sync += [
        items.eq(items + taken),
        awaited.eq(awaited + (taken & item.awaits)),
        ended.eq(ended + (taken & item.ends)),
        answers.eq(answers + answer),
        posts.eq(posts + posted),
    ]
    # The bus answers only bursts whose item has been taken.
    m.d.comb += Assume(~dut.answer | (answers < awaited))
    # The nth item: its queue pair, its number among the ends, the answers that it needs.
    known, qp, tag, number, needs = Signal(), Signal(), Signal(), Signal(5), Signal(5)
    with m.If(taken & (items == nth) & item.ends):
        m.d.sync += [
            known.eq(1),
            qp.eq(item.qp),
            tag.eq(item.post.entry.tag),
            number.eq(ended),
            needs.eq(awaited + item.awaits),
        ]
    # The chosen burst is of the message that the nth item ends: no other end of its queue pair lies between.
    chosen, burst_qp, between, failed, any_error = Signal(), Signal(), Signal(), Signal(), Signal()
    with m.If(taken & item.awaits & (awaited == burst)):
        m.d.sync += [chosen.eq(1), burst_qp.eq(item.qp), between.eq(item.ends & (items != nth))]
    with m.Elif(taken & chosen & item.ends & (item.qp == burst_qp) & (items != nth) & (items < nth)):
        m.d.sync += between.eq(1)
    with m.If(answer & dut.error):
        m.d.sync += any_error.eq(1)
        with m.If(answers == burst):
            m.d.sync += failed.eq(1)
    its = Signal()
    entry = dut.post.payload.entry
    m.d.comb += [
        its.eq(dut.post.valid & known & (posts == number)),
        # An answer that waited on the bus would hold up those of the completion writer, for which the post may wait.
        Assert(dut.answer_ready),
        Assert(~its | (answers >= needs)),
        Assert(~its | (entry.tag == tag)),
        Assert(~its | any_error | (entry.status == 0)),
        Assert(~its | (entry.bytes == 0) | (entry.bytes == 5)),
        Assert(
            ~(its & failed & chosen & ~between & (burst < needs) & (burst_qp == qp))
            | ((entry.status == CqeStatus.BUS_ERROR) & (entry.bytes == 0))
        ),
        Cover(its & failed & chosen & ~between & (burst_qp == qp) & (needs == 3)),
        Cover(its & any_error & (entry.status == 0) & (number == 1)),
    ]
    return spec


@proof(
    block="WriteEnds", states="a message ends after the answers of all its bursts, and says so if one failed"
)
def test_messages_end_after_their_answers(tmp_path):
    prove(ends_spec(WriteEnds), tmp_path / "bmc", mode="bmc", depth=11)
    prove(ends_spec(WriteEnds), tmp_path / "cover", mode="cover", depth=12)


@mutants_of(test_messages_end_after_their_answers)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("front.ends & (answered | ~front.awaits)", "front.ends"),
        ("failed.bit_select(front.qp, 1).eq(1)", "failed.bit_select(front.qp, 1).eq(0)"),
        ("answered.eq(0), failed.bit_select(front.qp, 1).eq(0)", "answered.eq(0), failed.eq(0)"),
        ("answered.eq(0), failed.bit_select", "failed.bit_select"),
        ("self.answer_ready.eq(1)", "self.answer_ready.eq(items.r_rdy & front.awaits & ~answered)"),
    ),
)
def test_proof_of_ends_catches_mutant(old, new, tmp_path):
    prove(ends_spec(mutate(WriteEnds, old, new)), tmp_path, mode="bmc", depth=11, expect="fail")
