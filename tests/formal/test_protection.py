"""Proof of protection: what is given is allowed, what is allowed is given, as a whole or nothing of it.

It is exhaustive for so many cycles after power-on, with tables that are written at any time, and page entries that the
solver chooses.
"""

import pytest
from amaranth import Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.protection import Protection
from lanikai.hdl.nic.owners.translation import Translation
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

CONFIG = preset(NicConfig, "tiny", owners=2, regions=2, channels=2, translation_entries=4)


def protection_spec(component):
    """The access under way beside the rows of the tables as they were when it was taken."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    asked = dut.access.payload
    spec.inputs(dut, "assigns", "regions", "access.valid", "segment.ready", "lookup.ready", "answer.valid")
    spec.inputs(dut, *(f"assign.{name}" for name in ("owner", "open")))
    spec.inputs(
        dut, *(f"region.{name}" for name in ("valid", "writable", "key", "owner", "start", "bytes", "table"))
    )
    spec.inputs(dut, *(f"access.payload.{name}" for name in ("key", "address", "bytes", "write")))
    spec.inputs(dut, *(f"answer.payload.{name}" for name in ("present", "frame")))
    numbers = {name: spec.free(2, name) for name in ("assigned", "made", "channel", "number")}
    m.d.comb += [
        dut.assign.channel.eq(numbers["assigned"]),
        dut.region.region.eq(numbers["made"]),
        asked.channel.eq(numbers["channel"]),
        asked.region.eq(numbers["number"]),
    ]
    # The tables' rows that the access is about: there are 2 of each, numbers are up to 3.
    channels = [Signal.like(dut.assign, name=f"row_{i}") for i in range(2)]
    regions = [Signal.like(dut.region, name=f"area_{i}") for i in range(2)]
    channel, region, wanted = Signal.like(dut.assign), Signal.like(dut.region), Signal.like(asked)
    known = Signal()
    busy, given, absent, looked = Signal(), Signal(17), Signal(), Signal(6)
    takes = dut.access.valid & dut.access.ready
    for i in range(2):
        with m.If(dut.assigns & (numbers["assigned"] == i)):
            m.d.sync += channels[i].eq(dut.assign)
        with m.If(dut.regions & (numbers["made"] == i)):
            m.d.sync += regions[i].eq(dut.region)
        with m.If(takes & (numbers["channel"] == i)):
            m.d.sync += channel.eq(channels[i])
        with m.If(takes & (numbers["number"] == i)):
            m.d.sync += region.eq(regions[i])
    segment, gives = dut.segment.payload, dut.segment.valid & dut.segment.ready
    with m.If(gives):
        m.d.sync += [given.eq(given + segment.bytes), busy.eq(~segment.last)]
    with m.If(dut.answer.valid & dut.answer.ready):
        m.d.sync += [absent.eq(absent | ~dut.answer.payload.present), looked.eq(looked + 1)]
    with m.If(takes):
        m.d.sync += [
            wanted.eq(asked),
            busy.eq(1),
            given.eq(0),
            absent.eq(0),
            looked.eq(0),
            known.eq((numbers["channel"] < 2) & (numbers["number"] < 2)),
        ]
    offset = wanted.address - region.start
    allowed = (
        (known & channel.open & region.valid)
        & (region.key == wanted.key)
        & (region.owner == channel.owner)
        & (wanted.address >= region.start)
        & (offset + wanted.bytes <= region.bytes)
        & (region.writable | ~wanted.write)
        & (wanted.address[:2] == 0)
    )
    good = segment.status == CompletionStatus.OK
    at = wanted.address + given
    m.d.comb += [
        Assume(~dut.answer.valid | dut.answer.ready),
        # Few bits, at both ends of the address space, or the adders take the solver hours.
        *(
            Assume(word[14:31] == word[31].replicate(17))
            for word in (asked.address, dut.region.start, dut.region.bytes)
        ),
        Assume(asked.bytes[14:] == 0),
        Assert(~dut.access.ready | ~busy),
        Assert(~dut.segment.valid | busy),
        Assert(~(dut.lookup.valid) | (busy & allowed & ~absent)),
        Assert(~dut.lookup.valid | (dut.lookup.payload.table == region.table)),
        Assert(
            ~dut.lookup.valid
            | (dut.lookup.payload.page == (wanted.address[12:] - region.start[12:] + looked)[:20])
        ),
    ]
    with m.If(dut.segment.valid):
        m.d.comb += [
            # Nothing is given that is not allowed; what is allowed is given.
            Assert(good == (allowed & ~absent)),
            Assert(good | (segment.last & (segment.bytes == 0) & (given == 0))),
            # Each piece goes on where the one before it ended, within a page, and the last one ends the access.
            Assert(~good | (segment.bytes == 0) | (segment.address[:12] == at[:12])),
            Assert(~good | (segment.address[:12] + segment.bytes <= 4096)),
            Assert(~good | (segment.last == (given + segment.bytes == wanted.bytes))),
            Assert(~good | (segment.bytes != 0) | (wanted.bytes == 0)),
        ]
    m.d.comb += [Cover(gives & good & segment.last & (wanted.bytes > 4096)), Cover(gives & ~good & absent)]
    return spec


@proof(block="Protection", states="an access is done if and only if it is allowed")
def test_an_access_is_done_if_and_only_if_it_is_allowed(tmp_path):
    prove(protection_spec(Protection), tmp_path / "bmc", mode="bmc", depth=8, timeout_s=900)


@proof(
    block="Protection",
    states="the same in more cycles",
    like=test_an_access_is_done_if_and_only_if_it_is_allowed,
)
@pytest.mark.full
def test_accesses_in_more_cycles(tmp_path):
    prove(protection_spec(Protection), tmp_path / "bmc", mode="bmc", depth=12, timeout_s=3600)
    prove(protection_spec(Protection), tmp_path / "cover", mode="cover", depth=16, timeout_s=600)


MUTANTS = [
    ("region.owner != channel.owner", "0"),
    ("region.key != wanted.key", "0"),
    ("with m.Elif(after > region.bytes)", "with m.Elif(0)"),
    ("after = Signal(33), Signal(34)", "after = Signal(32), Signal(32)"),
    ("wanted.write & ~region.writable", "0"),
    ("after = Signal(33), Signal(34)", "after = Signal(32), Signal(34)"),
    ("with m.If(~self.answer.payload.present):", "with m.If(0):"),
    ("& channel.open", ""),
    ("read.en.eq(asks)", "read.en.eq(1)"),
    ("last.eq((start_offset + ", "last.eq((0 + "),
    ("with m.Elif(low != 0):", "with m.Elif(0):"),
]


@mutants_of(test_an_access_is_done_if_and_only_if_it_is_allowed)
@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(*mutant, marks=[pytest.mark.full] if i > 1 else []) for i, mutant in enumerate(MUTANTS)],
)
def test_proof_of_protection_catches_mutant(old, new, tmp_path):
    prove(
        protection_spec(mutate(Protection, old, new)),
        tmp_path,
        mode="bmc",
        depth=12,
        expect="fail",
        timeout_s=600,
    )


def translation_spec(component):
    """One page, chosen by the solver. An answer is what host memory said since the page's last invalidation."""
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(CONFIG)
    axi, lookup, forget = dut.axi, dut.lookup.payload, dut.invalidate.payload
    spec.inputs(dut, "lookup.valid", "answer.ready", "invalidate.valid", "invalidate.payload.scope")
    spec.inputs(dut, "axi.arready", "axi.rvalid", "axi.rdata", "axi.rresp")
    page, region = spec.free(3, "page"), spec.free(1, "region")
    gone_page, gone_region = spec.free(3, "gone_page"), spec.free(1, "gone_region")
    m.d.comb += [lookup.page.eq(page), lookup.region.eq(region), lookup.table.eq(0x1000)]
    m.d.comb += [forget.page.eq(gone_page), forget.region.eq(gone_region)]
    chosen, chosen_region = spec.constant(3, "chosen"), spec.constant(1, "chosen_region")
    asks = dut.lookup.valid & dut.lookup.ready
    mine, busy, reading = Signal(), Signal(), Signal()
    with m.If(dut.answer.valid & dut.answer.ready):
        m.d.sync += busy.eq(0)
    with m.If(asks):
        m.d.sync += [mine.eq((page == chosen) & (region == chosen_region)), busy.eq(1)]
    with m.If(axi.arvalid & axi.arready):
        m.d.sync += reading.eq(1)
    with m.If(axi.rvalid):
        m.d.sync += reading.eq(0)
    # The words of host memory on the page since it was forgotten.
    frame, said = Signal(20), Signal()
    with m.If(axi.rvalid & mine):
        m.d.sync += [frame.eq(axi.rdata[12:]), said.eq(axi.rdata[0] & ~axi.rresp[1])]
    forgotten = (
        (forget.scope >= 2)
        | ((forget.scope == 1) & (gone_region == chosen_region))
        | ((forget.scope == 0) & (gone_region == chosen_region) & (gone_page == chosen))
    )
    with m.If(dut.invalidate.valid & dut.invalidate.ready), m.If(forgotten):
        m.d.sync += said.eq(0)
    held = Signal()
    m.d.sync += [held.eq(axi.arvalid & ~axi.arready)]
    m.d.comb += [
        Assume(~axi.rvalid | reading),
        Assert(~dut.invalidate.ready | ~busy),
        Assert(~dut.answer.valid | busy),
        Assert(~held | axi.arvalid),
        Assert(~axi.arvalid | (axi.araddr >= 0x1000)),
        Assert(~(axi.arvalid & mine) | (axi.araddr == 0x1000 + 4 * chosen)),
        Assert(~(dut.answer.valid & mine) | (dut.answer.payload.present == said)),
        Assert(~(dut.answer.valid & mine & said) | (dut.answer.payload.frame == frame)),
        Cover(dut.answer.valid & mine & said & (dut.hits == 2) & (dut.misses == 2)),
    ]
    return spec


@proof(block="Translation", states="an answer is what host memory says")
def test_translation_answers_what_host_memory_says(tmp_path):
    prove(translation_spec(Translation), tmp_path / "bmc", mode="bmc", depth=11, timeout_s=900)


@proof(
    block="Translation", states="the same in more cycles", like=test_translation_answers_what_host_memory_says
)
@pytest.mark.full
def test_translation_in_more_cycles(tmp_path):
    prove(translation_spec(Translation), tmp_path / "bmc", mode="bmc", depth=20, timeout_s=1800)
    prove(translation_spec(Translation), tmp_path / "cover", mode="cover", depth=24, timeout_s=600)


TRANSLATION_MUTANTS = [
    ("hit.eq(keeps & (read.data.page == wanted.page))", "hit.eq(keeps)"),
    ("(read.data.region == wanted.region)", "1"),
    ("m.d.comb += write.en.eq(entry.present)", "m.d.comb += write.en.eq(0)"),
    ("got.present & ~axi.rresp[1]", "got.present"),
    ("m.d.sync += valid.eq(0)", "m.d.sync += valid.eq(valid)"),
    ("m.d.comb += read.addr.eq(at + 1)", "m.d.comb += read.addr.eq(at)"),
    (
        "with m.If(hit):\n                    m.d.sync += valid",
        "with m.If(0):\n                    m.d.sync += valid",
    ),
]


@mutants_of(test_translation_answers_what_host_memory_says)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(*mutant, marks=[pytest.mark.full] if i > 0 else [])
        for i, mutant in enumerate(TRANSLATION_MUTANTS)
    ],
)
def test_proof_of_translation_catches_mutant(old, new, tmp_path):
    spec = translation_spec(mutate(Translation, old, new))
    prove(spec, tmp_path, mode="bmc", depth=20, expect="fail", timeout_s=600)
