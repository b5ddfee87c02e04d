"""Proofs of how messages end at an adapter's send side: once, after their tail, and only with what they were.

Exhaustive for so many cycles after power-on, of small sizes.
"""

import sys

import pytest
from amaranth import Array, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.departures import Departures
from lanikai.hdl.hca.ends import SOURCES, Ends
from lanikai.hdl.hca.layout import CqeStatus
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = preset(HcaConfig, "tiny").replace(queue_pairs=2)
VLS, PACKETS = CONFIG.link.vls, CONFIG.vl_packets
MESSAGES = 3
"""Messages that may have begun and not ended; the block has more, which so few cycles do not reach."""


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i == 0 else [pytest.mark.full]) for i, one in enumerate(found)]


def few(*change):
    """The class, or a mutant with a `change`, with room for few messages."""
    found = mutate(Departures, *(change or ("SPARE = 8", "SPARE = 8")))
    vars(sys.modules[found.__module__])["SPARE"] = MESSAGES - VLS * PACKETS
    return found


def departures_spec(component):
    """Any packets of two VLs; one of them, by its tag, is followed from its record to the end of its message."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    spec.inputs(
        dut, "begin", "begin_vl", "record_valid", "record_vl", "flit", "flit_vl", "tail", "start", "end.ready"
    )
    record, end, refused = dut.record, dut.end.payload, spec.free(1, "refused")
    for name, bits in (("qp", 1), ("queue", 1), ("traffic_class", 1), ("destination", 1), ("flits", 2)):
        m.d.comb += record[name].eq(spec.free(bits, name))
    for name, bits in (("last", 1), ("signaled", 1), ("failed", 1), ("tag", 1), ("bytes", 2)):
        m.d.comb += record[name].eq(spec.free(bits, name))
    # A VL's packets: begun, in its buffer, on the link. The port has room for so many.
    begun, there, gone = (
        Array(Signal(4, name=f"{name}_{i}") for i in range(VLS)) for name in ("begun", "there", "gone")
    )
    busy = [Signal(4, name=f"told_{i}") for i in range(VLS)]
    ended, under_way, lasts = dut.end.valid & dut.end.ready, Signal(4), Signal(4)
    is_last = dut.record_valid & record.last
    for i in range(VLS):
        begins, comes, goes = (
            valid & (vl == i)
            for valid, vl in (
                (dut.begin, dut.begin_vl),
                (dut.record_valid, dut.record_vl),
                (dut.tail, dut.flit_vl),
            )
        )
        m.d.sync += [
            begun[i].eq(begun[i] + begins),
            there[i].eq(there[i] + comes),
            gone[i].eq(gone[i] + goes),
        ]
        m.d.sync += busy[i].eq(gone[i])
        m.d.comb += [
            Assume(~begins | ((begun[i] - gone[i])[:4] != PACKETS)),
            Assume(~comes | (begun[i] != there[i])),
            Assume(~goes | (there[i] != gone[i])),
            Assume(~(dut.flit & (dut.flit_vl == i)) | (begun[i] != gone[i])),
            Assert(dut.vl_busy[i] == (begun[i] != busy[i])),
        ]
    # A packet's first flit is the VL's first one since the tail before it: its time.
    now, inside, times = Signal(4), Signal(VLS), Array(Signal(4, name=f"time_{i}") for i in range(VLS))
    header_time = Signal(4)
    m.d.sync += now.eq(now + 1)
    with m.If(dut.flit):
        m.d.sync += inside.bit_select(dut.flit_vl, 1).eq(~dut.tail)
        with m.If(~inside.bit_select(dut.flit_vl, 1)):
            m.d.sync += times[dut.flit_vl].eq(now)
    m.d.comb += [
        dut.now.eq(now),
        Assume(~dut.tail | dut.flit),
        dut.retired.eq(ended | refused),
        # A message begins as there is room. It ends by its last packet, or is refused.
        Assume(~dut.start | dut.room),
        Assume(~(is_last | refused) | (under_way != 0)),
        Assume(~(is_last & refused) & ~(ended & refused)),
    ]
    m.d.sync += [
        under_way.eq(under_way + dut.start - is_last - refused),
        lasts.eq(lasts + is_last - ended),
    ]
    # The packet that is followed.
    mine, chosen, place, vl, kept = Signal(), Signal(), Signal(4), Signal(), Signal.like(record)
    its_tail, left, told, seen = Signal(), Signal(), Signal(), Signal()
    m.d.comb += [
        mine.eq(dut.record_valid & record.tag[0]),
        Assume(~mine | ~chosen),
        its_tail.eq(chosen & dut.tail & (dut.flit_vl == vl) & (gone[vl] == place)),
    ]
    with m.If(mine):
        m.d.sync += [chosen.eq(1), place.eq(there[dut.record_vl]), vl.eq(dut.record_vl), kept.eq(record)]
    is_told = dut.end.valid & end.tag[0]
    m.d.sync += [told.eq(left), seen.eq(seen | (is_told & dut.end.ready))]
    with m.If(its_tail):
        m.d.sync += left.eq(1)
        m.d.sync += header_time.eq(Mux(inside.bit_select(vl, 1), times[vl], now))
    tail_before, its_tail_before = Signal(), Signal()
    m.d.sync += [tail_before.eq(dut.tail), its_tail_before.eq(its_tail)]
    entered = dut.entered
    m.d.comb += [
        # The end: after the tail, once, of a last packet alone, with what the packet's record said.
        Assert(~is_told | (told & ~seen & kept.last)),
        Assert(
            ~is_told
            | (
                (end.qp == kept.qp)
                & (end.queue == kept.queue)
                & (end.bytes == kept.bytes)
                & (end.signaled == kept.signaled)
                & (end.departed == header_time)
                & (end.status == Mux(kept.failed, CqeStatus.BUS_ERROR, CqeStatus.OK))
            )
        ),
        # It is not lost: nothing under way, and nothing to be taken.
        Assert(~(told & kept.last & ~seen) | dut.end.valid),
        Assert(~dut.quiet | ~chosen | ~kept.last | seen),
        Assert(lasts + under_way <= MESSAGES),
        Assert(dut.room == (lasts + under_way != MESSAGES)),
        # What injection control is told, in the cycle after the tail.
        Assert(dut.entered_valid == tail_before),
        Assert(
            ~its_tail_before
            | (
                (entered.traffic_class == kept.traffic_class)
                & (entered.destination == kept.destination)
                & (entered.flits == kept.flits)
                & (entered.last == kept.last)
            )
        ),
        Assert(dut.packets == sum(busy)),
        Cover(is_told & kept.failed & vl & (place == 2)),
        Cover(seen & dut.quiet),
        Cover(~dut.room & dut.end.valid),
    ]
    return spec


@proof(
    block="Departures",
    states="each message ends once, after its last tail, as its record and its header's time say; no end is lost",
)
def test_messages_end_after_their_tails(tmp_path):
    prove(departures_spec(few()), tmp_path / "bmc", mode="bmc", depth=11)
    prove(departures_spec(few()), tmp_path / "cover", mode="cover", depth=12)


@mutants_of(test_messages_end_after_their_tails)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("tail & gone.last)", "tail)"),
        ("read.addr.eq(Cat(outs.here, tail_vl))", "read.addr.eq(Cat(outs.here, self.flit_vl))"),
        ("outs.step_vl.eq(tail_vl)", "outs.step_vl.eq(0)"),
        ("outs.step.eq(tail)", "outs.step.eq(self.tail)"),
        ("self.room.eq(under_way != most)", "self.room.eq(1)"),
        ("with m.If(gone.failed)", "with m.If(0)"),
        ("self.flit & ~inside.bit_select(self.flit_vl, 1)", "self.flit"),
        ("count.take.eq(tail)", "count.take.eq(tail & gone.last)"),
        ("+ self.start - self.retired", "+ self.start - self.end.valid"),
        ("write.addr.eq(Cat(ins.here, self.record_vl))", "write.addr.eq(Cat(outs.here, self.record_vl))"),
    ),
)
def test_proof_of_departures_catches_mutant(old, new, tmp_path):
    prove(departures_spec(few(old, new)), tmp_path, mode="bmc", depth=11, expect="fail")


def ends_spec(component):
    """Any ends from all sources: what each comes to, by the state of its queue pair."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    spec.inputs(dut, "setup_valid", "post.ready", "ended.ready")
    m.d.comb += [dut.setup.qp.eq(spec.free(1, "setup_qp")), dut.setup.open.eq(spec.free(1, "opens"))]
    is_open = Array(Signal(name=f"open_{i}") for i in range(2))
    with m.If(dut.setup_valid):
        m.d.sync += is_open[dut.setup.qp].eq(dut.setup.open)
    end, takes, sources = Signal.like(dut.departed.payload), Signal(), Signal(len(SOURCES))
    for i, name in enumerate(SOURCES):
        source = getattr(dut, name)
        spec.inputs(dut, f"{name}.valid")
        for field, bits in (
            ("qp", 1),
            ("queue", 1),
            ("tag", 2),
            ("bytes", 2),
            ("status", 5),
            ("signaled", 1),
        ):
            m.d.comb += source.payload[field].eq(spec.free(bits, f"{name}_{field}"))
        waits, before = Signal(name=f"waits_{i}"), Signal.like(source.payload, name=f"before_{i}")
        others = Signal(3, name=f"others_{i}")
        m.d.sync += [waits.eq(source.valid & ~source.ready), before.eq(source.payload)]
        m.d.comb += [
            Assume(~waits | (source.valid & (source.payload == before))),
            sources[i].eq(source.valid & source.ready),
            # Each of the others goes once at most before it.
            Assert(others < len(SOURCES)),
        ]
        with m.If(sources[i]):
            m.d.sync += [end.eq(source.payload), others.eq(0)]
        with m.Elif(takes & source.valid):
            m.d.sync += others.eq(others + 1)
    m.d.comb += [takes.eq(sources.any()), Cover(others == len(SOURCES) - 1)]
    # The one that was taken: it is looked at, posted if it has to be, and ends.
    has, looked, wanted, posts = Signal(), Signal(), Signal(), Signal()
    taken, sent, failed, throttled, dropped = (
        Signal(4, name=name) for name in ("taken", "sent", "failed", "throttled", "dropped")
    )
    here, bad = is_open[end.qp], end.status != CqeStatus.OK
    finishes = dut.ended.valid & dut.ended.ready
    # It is counted when it is looked at, or with its completion, by whether its queue pair is open then.
    counts = Signal()
    with m.If(takes):
        m.d.sync += [has.eq(1), looked.eq(0), taken.eq(taken + 1)]
    with m.Elif(has & ~looked):
        m.d.sync += [looked.eq(1), wanted.eq(here & (end.signaled | bad))]
        m.d.comb += counts.eq(~here | ~(end.signaled | bad))
    with m.If(looked & wanted & (posts | ~here)):
        m.d.sync += wanted.eq(0)
        m.d.comb += counts.eq(1)
    with m.If(counts):
        with m.If(~here):
            m.d.sync += dropped.eq(dropped + 1)
        with m.Elif(bad):
            m.d.sync += [failed.eq(failed + 1), throttled.eq(throttled + (end.status == CqeStatus.THROTTLED))]
        with m.Else():
            m.d.sync += sent.eq(sent + 1)
    with m.If(finishes):
        m.d.sync += has.eq(0)
    post = dut.post.payload
    m.d.comb += [
        posts.eq(dut.post.valid & dut.post.ready),
        Assert(~takes | ~has),
        Assert(~(sources & (sources - 1)).any()),
        Assert(dut.retired == sources[:2].any()),
        # A completion only for an end that needs one, of an open queue pair, once; and then the end.
        Assert(dut.post.valid == (has & looked & wanted & here)),
        Assert(dut.ended.valid == (has & looked & ~wanted)),
        Assert(~dut.ended.valid | (dut.ended.payload == end.qp)),
        Assert(
            ~dut.post.valid
            | (
                (post.queue == end.queue)
                & (post.entry.qp == end.qp)
                & (post.entry.tag == end.tag)
                & (post.entry.bytes == end.bytes)
                & (post.entry.status == end.status)
            )
        ),
        Assert(dut.sent == sent),
        Assert(dut.failed == failed),
        Assert(dut.throttled == throttled),
        Assert(dut.dropped == dropped),
        Assert(taken == (sent + failed + dropped + (has & (~looked | wanted)))[:4]),
        Assert(~dut.quiet | ~has),
        Cover(posts & (end.status == CqeStatus.THROTTLED) & (dropped == 1) & (sent == 1)),
        Cover(has & looked & wanted & ~here),
    ]
    return spec


@proof(
    block="Ends",
    states="each end becomes a completion once if it needs one, is counted, and then ends; sources take turns",
)
def test_ends_become_completions(tmp_path):
    prove(ends_spec(Ends), tmp_path / "bmc", mode="bmc", depth=14)
    prove(ends_spec(Ends), tmp_path / "cover", mode="cover", depth=16)


@mutants_of(test_ends_become_completions)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("self.post.valid.eq(table.open)", "self.post.valid.eq(1)"),
        ("with m.Elif(end.signaled |", "with m.Elif(1 |"),
        ("with m.Elif(self.post.ready):", "with m.Elif(1):"),
        (
            "self.post.valid.eq(table.open)\n                with m.If(~table.open)",
            "self.post.valid.eq(table.open)\n                with m.If(0)",
        ),
        ("with m.Else():\n                    has_ended()", "with m.Else():\n                    pass"),
        ("end.signaled | (end.status != CqeStatus.OK)", "end.signaled"),
        ("with m.If(self.ended.ready)", "with m.If(1)"),
        ("arbiter.advance.eq(took)", "arbiter.advance.eq(0)"),
        ("arbiter.grant[:2]", "arbiter.grant[:1]"),
        ("counted(self.throttled)", "counted(self.failed)"),
    ),
)
def test_proof_of_ends_catches_mutant(old, new, tmp_path):
    prove(ends_spec(mutate(Ends, old, new)), tmp_path, mode="bmc", depth=14, expect="fail")
