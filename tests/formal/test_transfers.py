"""Proofs of the card's transfers behind their queue: those that are checked, and those that are not."""

import pytest
from amaranth import Cat, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.nic.dma.host_dma import HOST_DMA_COMMAND
from lanikai.hdl.nic.owners.checked_dma import CheckedDma
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.owners.transfer_split import TransferSplit
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

OK, BUS_ERROR = CompletionStatus.OK.value, CompletionStatus.BUS_ERROR.value


def split(component):
    """Transfers of both kinds, two under way at most. The two sides keep what `TransferSplit` asks of them.

    - A transfer is given to the side of its kind alone, once, with its fields.
    - Ends come in the order of the starts, one for each transfer, with that transfer's status.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component()
    spec.inputs(dut, "start.valid", "start.payload", "plain.ready", "checked.ready")
    spec.inputs(dut, "plain_done", "plain_error", "checked_done", "checked_status")
    wanted, access = dut.start.payload, dut.checked.payload.access
    starts = dut.start.valid & dut.start.ready
    plain, checked = dut.plain.valid & dut.plain.ready, dut.checked.valid & dut.checked.ready
    # Those under way, the oldest first: their kinds, and whether the checked one has ended and only shows it yet.
    count, kinds, shows = Signal(2), Signal(2), Signal()
    fresh = Signal()  # the newest one was taken in the cycle before
    here = [(count > n) for n in range(2)]
    any_checked = Cat(here[n] & kinds[n] for n in range(2)).any()
    m.d.comb += [
        # The gate takes nothing while a checked transfer is under way, which is one at most; two in all.
        Assume(~plain | (~any_checked & (count < 2))),
        Assume(~checked | (~any_checked & (count < 2))),
        # A side ends what it has, not in the cycle after it was taken, and a checked one only alone.
        Assume(~dut.plain_done | (here[0] & ~kinds[0] & ~((count == 1) & fresh))),
        Assume(~dut.checked_done | (here[0] & kinds[0] & (count == 1) & ~shows & ~fresh)),
        Assert(starts == (plain | checked)),
        Assert(~(plain & checked)),
        Assert(~starts | (checked == wanted.checked)),
        Assert(~dut.plain.valid | ~wanted.checked),
        Assert(~dut.checked.valid | wanted.checked),
        Assert(Cat(*(dut.plain.payload[name] for name, _ in HOST_DMA_COMMAND)) == _fields(wanted)),
        Assert(access.address == wanted.host_address),
        Assert(access.write == wanted.to_host),
        Assert(access.bytes == wanted.bytes),
        Assert(dut.checked.payload.sram_address == wanted.sram_address),
        Assert(
            Cat(access.channel, access.region, access.key) == Cat(wanted.channel, wanted.region, wanted.key)
        ),
        Assert(~dut.done | here[0]),
        Assert(~dut.done | (Mux(kinds[0], shows, dut.plain_done))),
        Assert(~(dut.plain_done | shows) | dut.done),
        Assert(~dut.done | (dut.result.status == Mux(kinds[0], dut.checked_status, _bus(dut.plain_error)))),
        Assert(~dut.done | (dut.result.error == (dut.result.status != OK))),
        Cover(dut.done & kinds[0] & (count == 1)),
        Cover(dut.done & ~kinds[0] & (count == 2)),
    ]
    left = count - dut.done
    after = Mux(dut.done, kinds >> 1, kinds)
    m.d.sync += [
        count.eq(left + starts),
        kinds.eq(Mux(starts, Mux(left == 0, wanted.checked, Cat(after[0], wanted.checked)), after)),
        shows.eq(dut.checked_done),
        fresh.eq(starts),
    ]
    # The checked side is under way until it shows its end.
    m.d.comb += [Assert(count <= 2), Assert(~shows | (here[0] & kinds[0] & (count == 1)))]
    return spec


def _fields(wanted):
    return Cat(*(wanted[name] for name, _ in HOST_DMA_COMMAND))


def _bus(error):
    return Mux(error, BUS_ERROR, OK)


@proof(
    block="TransferSplit",
    states="each transfer goes once, whole, to its side; ends are in order, with their status",
)
def test_transfers_go_to_their_side_and_end_in_order(tmp_path):
    prove(split(TransferSplit), tmp_path / "ever", depth=3)
    prove(split(TransferSplit), tmp_path / "cover", mode="cover", depth=6)


@mutants_of(test_transfers_go_to_their_side_and_end_in_order)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("with m.If(wanted.checked):", "with m.If(~wanted.checked):"),
        ("self.start.ready.eq(self.checked.ready)", "self.start.ready.eq(self.plain.ready)"),
        ("with m.If(ended):", "with m.If(self.checked_done):"),
        ("self.done.eq(self.plain_done | ended)", "self.done.eq(self.plain_done | self.checked_done)"),
        ("access.write.eq(wanted.to_host)", "access.write.eq(~wanted.to_host)"),
        ("with m.Elif(self.plain_error):", "with m.Elif(self.plain_done):"),
    ],
)
def test_proof_of_split_catches_mutant(old, new, tmp_path):
    prove(split(mutate(TransferSplit, old, new)), tmp_path, mode="bmc", depth=6, expect="fail")


def checked(component):
    """An access whose pieces come when they like, and an engine that ends each command when it likes.

    - A piece that is allowed gives one command, with its address, bytes and direction, while the bus has not failed.
    - A piece that is forbidden, and any after an error on the bus, gives none.
    - The SRAM's address goes on by the bytes that were done.
    - The access ends once, after the last piece and the last command, with the first bad status.
    """
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component()
    spec.inputs(dut, "start.valid", "start.payload", "access.ready", "segment.valid", "segment.payload")
    spec.inputs(dut, "command.ready", "dma_done", "dma_error")
    starts = dut.start.valid & dut.start.ready
    asks, piece = dut.access.valid & dut.access.ready, dut.segment.valid & dut.segment.ready
    command = dut.command.valid & dut.command.ready
    wanted, segment = Signal.like(dut.start.payload), Signal.like(dut.segment.payload)
    busy, asked, owed, runs, bad, last, first_bad = (Signal(name=name) for name in (
        "access_under_way", "asked", "owed", "runs", "bad", "was_last", "forbidden"
    ))  # fmt: skip
    place, status, shows = Signal(20), Signal(5), Signal()
    with m.If(starts):
        m.d.sync += [wanted.eq(dut.start.payload), busy.eq(1), asked.eq(0), owed.eq(0), bad.eq(0), last.eq(0)]
        m.d.sync += [place.eq(dut.start.payload.sram_address), status.eq(OK), first_bad.eq(0)]
    with m.If(asks):
        m.d.sync += asked.eq(1)
    allowed = (dut.segment.payload.status == OK) & ~bad
    with m.If(piece):
        m.d.sync += [segment.eq(dut.segment.payload), owed.eq(allowed), last.eq(dut.segment.payload.last)]
        with m.If(dut.segment.payload.status != OK):
            m.d.sync += [first_bad.eq(1), status.eq(dut.segment.payload.status)]
    with m.If(command):
        m.d.sync += [owed.eq(0), runs.eq(1)]
    ends = runs & dut.dma_done
    with m.If(ends):
        m.d.sync += [runs.eq(0), place.eq(place + segment.bytes)]
        with m.If(dut.dma_error):
            m.d.sync += [bad.eq(1), status.eq(BUS_ERROR)]
    m.d.sync += shows.eq(dut.done)
    with m.If(dut.done):
        m.d.sync += busy.eq(0)
    payload = dut.command.payload
    m.d.comb += [
        Assume(~dut.dma_done | runs),
        # `Protection`: pieces of an access that was asked for, none after the last; a forbidden one is the only one.
        Assume(~dut.segment.valid | (busy & asked & ~last)),
        Assume(~dut.segment.valid | (dut.segment.payload.status == OK) | dut.segment.payload.last),
        Assert(~dut.access.valid | (busy & ~asked)),
        Assert(~dut.access.valid | (dut.access.payload == wanted.access)),
        Assert(~starts | ~busy),
        Assert(dut.busy == busy),
        Assert(~piece | (~owed & ~runs)),
        Assert(~dut.command.valid | (owed & ~runs & ~bad)),
        Assert(~dut.command.valid | (payload.host_address == segment.address)),
        Assert(~dut.command.valid | (payload.bytes == segment.bytes)),
        Assert(~dut.command.valid | (payload.to_host == wanted.access.write)),
        Assert(~dut.command.valid | (payload.sram_address == place)),
        Assert(~dut.done | (busy & last & ~owed & ~runs)),
        Assert(~shows | (dut.status == status)),
        Cover(shows & bad & (place != wanted.sram_address)),
        Cover(shows & first_bad),
    ]
    return spec


CHECKED_DEPTH = 14
"""An access of two pieces (start, access, then piece, command, transfer and end of each), and the next one's first."""


@proof(
    block="CheckedDma",
    states="pieces that are allowed are done once, in place; forbidden ones never; the status is right",
)
def test_checked_transfers_do_what_is_allowed_and_nothing_else(tmp_path):
    prove(checked(CheckedDma), tmp_path / "bmc", mode="bmc", depth=CHECKED_DEPTH)
    prove(checked(CheckedDma), tmp_path / "cover", mode="cover", depth=CHECKED_DEPTH)


@mutants_of(test_checked_transfers_do_what_is_allowed_and_nothing_else)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(self.segment.payload.status != CompletionStatus.OK) | failed", "failed"),
        ("(self.segment.payload.status != CompletionStatus.OK) | failed", "self.segment.payload.status != 0"),
        ("wanted.sram_address + piece.bytes", "wanted.sram_address"),
        ("command.to_host.eq(wanted.access.write)", "command.to_host.eq(0)"),
        ("self.status.eq(piece.status)", "self.status.eq(CompletionStatus.BUS_ERROR)"),
        ("with m.If(piece.last):", "if True:"),
    ],
)
def test_proof_of_checked_transfers_catches_mutant(old, new, tmp_path):
    spec = checked(mutate(CheckedDma, old, new))
    prove(spec, tmp_path, mode="bmc", depth=CHECKED_DEPTH, expect="fail")
