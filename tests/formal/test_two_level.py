"""Proofs of the two-level arbiter, with weights in flits and in InfiniBand's units: for any tables, any traffic, and
for ever.

The tables are any sums that the proof likes, and come anew whenever it likes (`AnyTables`); that `VlTables` adds
its entries up is proved on its own.
"""

import pytest
from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.arbiter.two_level import TwoLevelArbiter
from lanikai.hdl.arbiter.vl import TableSignature
from lanikai.hdl.arbiter.vl_tables import VlTables

from .harness import Spec, mutate, prove

# `scheduler` elaborates the arbiter itself, to see what is inside.
pytestmark = pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")

VLS = 3
SHARE_BITS = 3
IBA = {"pointer": "slow", "units": "iba"}


class AnyTables(wiring.Component):
    """In the place of `VlTables`: `sums` (low and high, a VL each) and `limit` come from outside, and are free to
    change after a `swap`, as `fresh` tells."""

    def __init__(self, *, vls, entries):
        super().__init__(
            {
                "table": Out(TableSignature(vls=vls, entries=entries)),
                "select_vl": In(2),
                "select_high": In(1),
                "share": Out(SHARE_BITS),
                "listed": Out(data.ArrayLayout(vls, 2)),
                "single": Out(data.ArrayLayout(vls, 2)),
                "limit": Out(8),
                "pending": Out(1),
                "swap": In(1),
                "sums": In(SHARE_BITS).array(2, vls),
                "any_limit": In(8),
                "any_pending": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows = Array([*self.sums[0], 0, *self.sums[1], 0])
        m.d.comb += [
            self.share.eq(rows[Cat(self.select_vl, self.select_high)]),
            self.limit.eq(self.any_limit),
            self.pending.eq(self.any_pending),
        ]
        for i in range(2):
            m.d.comb += self.listed[i].eq(Cat(s != 0 for s in self.sums[i]))
            m.d.comb += self.single[i].eq(Cat(s == 1 for s in self.sums[i]))
        return m


def scheduler(component, **parameters):
    """The arbiter with any tables, and beside it the exact account of what each VL has left of a frame."""
    made = []

    class Tables(AnyTables):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            made.append(self)

    module = __import__("sys").modules[component.__module__]
    replaced, module.VlTables = module.VlTables, Tables
    try:
        dut = component(vls=VLS, entries=1, **parameters)
        inside = dut.elaborate(None)
    finally:
        module.VlTables = replaced
    spec, tables, state = Spec(), made[0], dut.internals
    m = spec.m
    m.submodules.dut = inside
    spec.inputs(dut, "requests", "tails", "advance")
    spec.inputs(tables, "any_limit", "any_pending")
    sums = [[spec.free(SHARE_BITS, f"sum_{i}_{v}") for v in range(VLS)] for i in range(2)]
    swapped = Signal(init=1)
    m.d.sync += swapped.eq(tables.swap)
    for i in range(2):
        for v in range(VLS):
            before = Signal.like(sums[i][v], name=f"sum_{i}_{v}_before")
            m.d.sync += before.eq(sums[i][v])
            m.d.comb += [tables.sums[i][v].eq(sums[i][v]), Assume(swapped | (sums[i][v] == before))]

    unit, by_packet = dut.weight_flits, dut.by_packet
    shares = [[sums[i][v] << (unit.bit_length() - 1) for v in range(VLS)] for i in range(2)]

    def charged(before, tail):
        """What is left after a flit; a packet is charged in whole units, what it takes beyond is forgiven."""
        less = Mux(before == 0, 0, before - 1)
        return Mux(tail, less & ~(unit - 1), less)[: len(before)]

    m.d.comb += [
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~dut.requests) == 0),
        Assert(dut.grant.any() == dut.requests.any()),
    ]
    left = [[Signal(len(shares[i][v]), name=f"left_{i}_{v}") for v in range(VLS)] for i in range(2)]
    in_frame = [
        Signal(VLS, name=f"in_frame_{i}") for i in range(2)
    ]  # VLs that have share, or a packet to end
    asks = [Cat(dut.requests[v] & (sums[i][v] != 0) for v in range(VLS)) for i in range(2)]
    can = [asks[i] & in_frame[i] for i in range(2)]
    level = state.high
    tail = (dut.grant & dut.tails).any() if by_packet else Const(1)
    goes = dut.advance & dut.requests.any()
    # A packet that was begun goes on while it asks.
    begun, begun_level = Signal(VLS), Signal()
    with m.If(goes):
        m.d.sync += [begun.eq(Mux(tail | ~(asks[0] | asks[1]).any(), 0, dut.grant)), begun_level.eq(level)]
    continues = (begun & Mux(begun_level, asks[1], asks[0])).any()
    # High goes first unless it has sent its limit while low asks; a VL in no table goes last.
    fraction = dut.limit_flits.bit_length() - 1
    sent = Signal(8 + fraction)
    due = (tables.limit != 255) & (sent != 0) & (sent[fraction:] >= tables.limit)
    m.d.comb += [
        Assert(~continues | ((level == begun_level) & (dut.grant == begun))),
        Assert(continues | (level == (asks[1].any() & ~(due & asks[0].any())))),
        Assert(~(asks[0] | asks[1]).any() | (dut.grant & Mux(level, asks[1], asks[0])).any()),
        # While anybody who asks has share left in the frame, one who has goes.
        Assert(~Mux(level, can[1], can[0]).any() | (dut.grant & Mux(level, can[1], can[0])).any()),
        Assert(state.underway == begun.any()),
        Assert(~begun.any() | ((state.served == begun) & (state.served_high == begun_level))),
        Assert(~begun.any() | (Mux(begun_level, state.mask[1], state.mask[0]) == (~begun + 1)[:VLS])),
        # It has its place in the frame, unless none has begun with these tables.
        *(Assert((begun_level != i) | ~in_frame[i].any() | (begun & ~in_frame[i] == 0)) for i in range(2)),
    ]
    with m.If(goes):
        m.d.sync += sent.eq(Mux(level, sent + ~sent.all(), 0))
    for i in range(2):
        for v in range(VLS):
            begins = ~can[i].any()
            base = Mux(begins, shares[i][v], left[i][v])
            with m.If(tables.swap):
                m.d.sync += [left[i][v].eq(0), in_frame[i][v].eq(0)]
            with m.Elif(goes & asks[i].any() & (level == i)):
                m.d.sync += [
                    left[i][v].eq(Mux(dut.grant[v], charged(base, tail), base)),
                    in_frame[i][v].eq(
                        Mux(begins, sums[i][v] != 0, in_frame[i][v]) & ~(dut.grant[v] & tail & (base <= unit))
                    ),
                ]
            # What ties the arbiter's registers to that account.
            port = state.left.read_port(domain="comb")
            late = state.charge & state.served[v] & (state.served_high == i)
            some, kept = in_frame[i][v], Mux(state.whole[i][v], shares[i][v], port.data)[: len(left[i][v])]
            m.d.comb += [
                port.addr.eq(v + 4 * i),
                Assert((state.has_share[i][v] == some) & (~some | (sums[i][v] != 0))),
                Assert(left[i][v] <= shares[i][v]),
                Assert(~some | ((state.last_unit[i][v] | (late & state.near)) == (left[i][v] <= unit))),
                Assert(~some | (Mux(late, charged(kept, state.served_tail), kept) == left[i][v])),
                Assert(some | (left[i][v] == 0)),
            ]
            if not by_packet:
                m.d.comb += [Assert(~some | (left[i][v] != 0)), Assert(begun == 0)]
    if not by_packet:
        wait(spec, dut, tables, left, in_frame, shares, level, goes)
    m.d.comb += [
        Assert((state.served & (state.served - 1)) == 0),
        Assert(state.sent == sent),
        Cover(tables.swap & (dut.requests == 7) & ~swapped),
    ]
    if by_packet:
        return spec
    low_asks = asks[0].any()
    run = Signal(8)  # flits of high since low began to ask, or had its turn
    with m.If(~low_asks | (goes & ~level) | tables.swap):
        m.d.sync += run.eq(0)
    with m.Elif(goes):
        m.d.sync += run.eq(run + (run != 255))
    limit_before = Signal(8)
    m.d.sync += limit_before.eq(tables.limit)
    m.d.comb += [
        Assume(swapped | (tables.limit == limit_before)),
        Assert(
            (tables.limit == 255)
            | (run <= Mux(tables.limit == 0, 1, tables.limit))
            | (run <= sent) & ~low_asks
        ),
        Assert(run <= sent),
    ]
    return spec


def wait(spec, dut, tables, left, in_frame, shares, level, goes):
    """The bound on waiting, 2 S flits of others of its level, for anyone that keeps asking: while it has share left
    the others can send at most what they have left, and before that at most the rest of their old frame. With weights
    in flits; in InfiniBand's units the induction takes too long."""
    m = spec.m
    who, on_level = spec.constant(VLS, "patient"), spec.constant(1, "patient_level")
    waited = Signal(8)
    with m.If(tables.swap):
        m.d.sync += waited.eq(0)
    with m.Elif(goes & (level == on_level)):
        m.d.sync += waited.eq(Mux((dut.grant & who).any(), 0, waited + 1))
    m.d.comb += [Assume((who & (who - 1)) == 0), Assume(who != 0), Assert(waited < 128)]
    for v in range(VLS):
        for i in range(2):
            with m.If(who[v] & (on_level == i)):
                others = sum((shares[i][u] for u in range(VLS) if u != v), Const(0))
                rest = sum((left[i][u] for u in range(VLS) if u != v), Const(0))
                m.d.comb += [
                    Assume(dut.requests[v] & (shares[i][v] != 0)),
                    Assert(waited + rest <= Mux(in_frame[i][v], 2 * others, others)),
                ]


@pytest.mark.parametrize("pointer", ["fast", "slow"])
def test_frames_and_levels_are_proved(pointer, tmp_path):
    prove(scheduler(TwoLevelArbiter, pointer=pointer), tmp_path, depth=3)


def test_frames_and_levels_in_packets_are_proved(tmp_path):
    prove(scheduler(TwoLevelArbiter, **IBA), tmp_path, depth=2)


def test_tables_can_change_under_full_load(tmp_path):
    prove(scheduler(TwoLevelArbiter), tmp_path, mode="cover", depth=8)


MUTANTS = [
    ("near & (served_high == i)", "near & 0", 12),  # a flit too many when one VL goes back to back
    ("whole[i] & ~Mux(charge & (served_high == i), served, 0)", "whole[i]", 12),  # a share that never shrinks
    (
        "Mux(begins, everyone, whole[i]",
        "Mux(0, everyone, whole[i]",
        16,
    ),  # what an idle VL has left is carried over
    ("~(low_due & any_low)", "~low_due", 12),  # nobody goes
    ("listed.eq(any_high | any_low)", "listed.eq(any_high)", 12),
    ("m.d.sync += [share.eq(0) for share in has_share]", "pass", 12),  # an old frame lasts into new tables
    ("(sent[fraction:] >= tables.limit)", "(sent[fraction:] > tables.limit)", 8),
]


@pytest.mark.parametrize(("old", "new", "depth"), MUTANTS)
def test_proof_catches_mutant(old, new, depth, tmp_path):
    spec = scheduler(mutate(TwoLevelArbiter, old, new))
    prove(spec, tmp_path, mode="bmc", depth=depth, expect="fail")


IBA_MUTANTS = [
    (
        "if self.by_packet:\n            with m.If(underway",
        "if False:\n            with m.If(underway",
    ),  # cut off
    ("grant & base, 0)", "Mux(begins, 0, grant & base), 0)"),  # a short share that never ends
    ("level & tail, grant & base", "level, grant & base"),  # a packet that ends with its share
    ("less[:rounding] & ~tail.replicate(rounding)", "less[:rounding]"),  # charged flit by flit
]


@pytest.mark.parametrize(("old", "new"), IBA_MUTANTS)
def test_proof_in_packets_catches_mutant(old, new, tmp_path):
    spec = scheduler(mutate(TwoLevelArbiter, old, new), **IBA)
    prove(spec, tmp_path, mode="bmc", depth=12, expect="fail")


def tables_spec(component):
    """Writes and commits at any time, to a copy of the entries; after each change the sums are those of the copy at
    the commit."""
    vls = entries = 2
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(vls=vls, entries=entries)
    names = ("write", "high", "entry", "vl", "weight", "limit", "commit")
    spec.inputs(dut, *(f"table.{name}" for name in names), "select_vl", "select_high", "swap")
    m.d.comb += Assume(dut.table.weight[3:-1] == 0)  # values enough, and a proof in seconds
    table = dut.table
    written = [[Signal(9, name=f"written_{i}_{e}") for e in range(entries)] for i in range(2)]
    committed = [[Signal(9, name=f"committed_{i}_{e}") for e in range(entries)] for i in range(2)]
    limit, changed = Signal(8, init=255), Signal()
    for i in range(2):
        for e in range(entries):
            mine = table.ready & table.write & (table.high == i) & (table.entry == e)
            entry = Cat(table.weight, table.vl)
            with m.If(mine):
                m.d.sync += written[i][e].eq(entry)
            with m.If(table.ready & table.commit):
                m.d.sync += committed[i][e].eq(Mux(mine, entry, written[i][e]))
    with m.If(table.ready & table.commit):
        m.d.sync += limit.eq(table.limit)
    with m.If(dut.pending & dut.swap):
        m.d.sync += changed.eq(1)
    for i in range(2):
        for v in range(vls):
            total = Signal(10, name=f"total_{i}_{v}")
            parts = [Mux(entry[8] == v, entry[:8], 0) for entry in committed[i]]
            m.d.comb += total.eq(sum(parts, Const(0)))
            with m.If(changed & table.ready):
                m.d.comb += [
                    Assert(dut.listed[i][v] == (total != 0)),
                    Assert(dut.single[i][v] == (total == 1)),
                    Assert((dut.select_high != i) | (dut.select_vl != v) | (dut.share == total)),
                ]
    with m.If(changed & table.ready):
        m.d.comb += [Assert(dut.limit == limit), Cover(dut.share == 256)]
    return spec


TABLES_DEPTH = 4 + 4 + 4 * 2 + 2 * 2 + 2 + 3
"""The wipe, four writes, the walk, and the change."""


def test_tables_add_up(tmp_path):
    prove(tables_spec(VlTables), tmp_path / "bmc", mode="bmc", depth=TABLES_DEPTH)
    prove(tables_spec(VlTables), tmp_path / "cover", mode="cover", depth=TABLES_DEPTH)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("summed == 1", "summed[0]"),
        ("m.d.sync += walking.eq(1)", "m.d.sync += walking.eq(0)"),
        ("self.limit.eq(limit)", "self.limit.eq(self.table.limit)"),
    ],
)
def test_proof_of_tables_catches_mutant(old, new, tmp_path):
    prove(tables_spec(mutate(VlTables, old, new)), tmp_path, mode="bmc", depth=TABLES_DEPTH, expect="fail")
