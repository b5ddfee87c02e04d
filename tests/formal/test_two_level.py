"""Proofs of the two-level arbiter, with weights in flits and in InfiniBand's units: for any tables, any traffic, and
for ever.

The tables are any rows that the proof likes, and come anew whenever it likes (`AnyTables`). A proof of its own shows
that `VlTables` links and adds up its entries.
"""

import pytest
from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.vl_arbiter.base import TableSignature
from lanikai.hdl.vl_arbiter.tables import VlTables
from lanikai.hdl.vl_arbiter.two_level import TwoLevelArbiter
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

# `scheduler` elaborates the arbiter itself, to see what is inside.
pytestmark = pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")

VLS = ENTRIES = 3
WEIGHT_BITS = 2
IBA = {"pointer": "slow", "units": "iba"}


def lowest(flags):
    """The number of the lowest flag that is set; 0 if none is."""
    number = Const(0, 2)
    for e in reversed(range(len(flags))):
        number = Mux(flags[e], Const(e, 2), number)
    return number


class AnyTables(wiring.Component):
    """Tables in the place of `VlTables`.

    The rows of both tables (`vls`, `weights`: low and high, an entry each) and `limit` come from outside. They are free
    to change after a `swap`. A row looked up in the cycle after it is `junk`.
    """

    def __init__(self, *, vls, entries, sums):
        self.sums = sums
        share = {"select_vl": In(2), "select_high": In(1), "share": Out(WEIGHT_BITS + 2)}
        super().__init__(
            {
                "table": Out(TableSignature(vls=vls, entries=entries)),
                "place": In(2),
                "place_high": In(1),
                "following": Out(2),
                "last": Out(1),
                "weight": Out(WEIGHT_BITS),
                "following_single": Out(1),
                "first": Out(data.ArrayLayout(data.ArrayLayout(2, vls), 2)),
                "listed": Out(data.ArrayLayout(vls, 2)),
                "single": Out(data.ArrayLayout(vls, 2)),
                "limit": Out(8),
                "pending": Out(1),
                "overdue": Out(1),
                "swap": In(1),
                "vls": In(2).array(2, ENTRIES),
                "weights": In(WEIGHT_BITS).array(2, ENTRIES),
                "any_limit": In(8),
                "any_pending": In(1),
                "any_overdue": In(1),
                "junk": In(4 + WEIGHT_BITS),
                "looked": Out(3),
            }
            | (share if sums else {})
        )

    def own(self, i, v):
        """Flags of the entries of VL v."""
        return [(self.vls[i][e] == v) & (self.weights[i][e] != 0) for e in range(ENTRIES)]

    def sum(self, i, v):
        parts = (Mux(own, self.weights[i][e], 0) for e, own in enumerate(self.own(i, v)))
        return sum(parts, Const(0))[: WEIGHT_BITS + 2]

    def elaborate(self, platform):
        m = Module()
        changed = Signal()
        m.d.sync += [changed.eq(self.swap), self.looked.eq(Cat(self.place, self.place_high))]
        m.d.comb += [
            self.limit.eq(self.any_limit),
            self.pending.eq(self.any_pending),
            self.overdue.eq(self.any_overdue),
        ]
        answers = []
        for i in range(2):
            weight = Array(self.weights[i])
            for e in range(4):
                later = [Const(0)] * ENTRIES
                if e < ENTRIES:
                    later = [
                        (self.vls[i][n] == self.vls[i][e]) & (self.weights[i][n] != 0) & (n > e)
                        for n in range(ENTRIES)
                    ]
                after = lowest(later)
                answers.append(
                    Cat(after, weight[after] == 1, ~Cat(*later).any(), weight[min(e, ENTRIES - 1)])
                )
            for v in range(VLS):
                own = self.own(i, v)
                first = lowest(own)
                m.d.comb += [
                    self.listed[i][v].eq(Cat(*own).any()),
                    self.first[i][v].eq(first),
                    self.single[i][v].eq(self.sum(i, v) == 1 if self.sums else weight[first] == 1),
                ]
        answer = Mux(changed, self.junk, Array(answers)[self.looked])
        m.d.comb += Cat(self.following, self.following_single, self.last, self.weight).eq(answer)
        if self.sums:
            shares = Array([self.sum(i, v) if v < VLS else Const(0) for i in range(2) for v in range(4)])
            m.d.comb += self.share.eq(shares[Cat(self.select_vl, self.select_high)])
        return m


def scheduler(component, **parameters):
    """The arbiter with any tables, and beside it the exact account of what is left of a frame.

    - slow: what is left of each entry.
    - fast: what is left of each VL, and which entries have had their turn in the pass.
    """
    made = []

    class Tables(AnyTables):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            made.append(self)

    module = __import__("sys").modules[component.__module__]
    replaced, module.VlTables = module.VlTables, Tables
    try:
        dut = component(vls=VLS, entries=ENTRIES, **parameters)
        inside = dut.elaborate(None)
    finally:
        module.VlTables = replaced
    spec, tables, state = Spec(), made[0], dut.internals
    slow = dut.pointer == "slow"
    m = spec.m
    m.submodules.dut = inside
    spec.inputs(dut, "requests", "tails", "advance")
    spec.inputs(tables, "any_limit", "any_pending", "any_overdue", "junk")
    swapped = Signal(init=1)
    m.d.sync += swapped.eq(tables.swap)
    for i in range(2):
        for e in range(ENTRIES):
            row = spec.free(2 + WEIGHT_BITS, f"row_{i}_{e}")
            before = Signal.like(row, name=f"row_{i}_{e}_before")
            m.d.sync += before.eq(row)
            m.d.comb += [
                Cat(tables.vls[i][e], tables.weights[i][e]).eq(row),
                Assume(swapped | (row == before)),
                Assume(tables.vls[i][e] < VLS),
            ]

    unit, by_packet = dut.weight_flits, dut.by_packet
    own = [[tables.own(i, v) for v in range(VLS)] for i in range(2)]
    flits = [[tables.weights[i][e] << (unit.bit_length() - 1) for e in range(ENTRIES)] for i in range(2)]
    shares = [[tables.sum(i, v) << (unit.bit_length() - 1) for v in range(VLS)] for i in range(2)]

    def charged(before, tail):
        """Share left after a flit. A packet is charged in whole units; what it takes beyond is forgiven."""
        less = Mux(before == 0, 0, before - 1)
        return Mux(tail, less & ~(unit - 1), less)[: len(before)]

    m.d.comb += [
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~dut.requests) == 0),
        Assert(dut.grant.any() == dut.requests.any()),
    ]
    # A frame is accounted in entries, or in VLs. `in_frame`: those that have something left, or a packet to end.
    accounts = ENTRIES if slow else VLS
    whole = flits if slow else shares
    left = [[Signal(len(whole[i][a]), name=f"left_{i}_{a}") for a in range(accounts)] for i in range(2)]
    in_frame = [Signal(accounts, name=f"in_frame_{i}") for i in range(2)]
    in_pass = [Signal(ENTRIES, name=f"in_pass_{i}") for i in range(2)]  # fast: entries whose turn is to come
    turn = [Signal(VLS, name=f"turn_{i}") for i in range(2)]
    requests = Array([*dut.requests, Const(0)])
    asks_e = [
        Cat(requests[tables.vls[i][e]] & (tables.weights[i][e] != 0) for e in range(ENTRIES))
        for i in range(2)
    ]
    asks = [Cat(dut.requests[v] & Cat(*own[i][v]).any() for v in range(VLS)) for i in range(2)]
    frame_e = [
        in_frame[i]
        if slow
        else Cat(Array([*in_frame[i], Const(0)])[tables.vls[i][e]] for e in range(ENTRIES))
        for i in range(2)
    ]
    can_e = [asks_e[i] & frame_e[i] for i in range(2)]
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
    frame_over = ~Mux(level, can_e[1], can_e[0]).any()
    m.d.comb += [
        Assert(~continues | ((level == begun_level) & (dut.grant == begun))),
        Assert(continues | (level == (asks[1].any() & ~(due & asks[0].any())))),
        Assert(~(asks[0] | asks[1]).any() | (dut.grant & Mux(level, asks[1], asks[0])).any()),
        Assert(state.underway == begun.any()),
        Assert(~begun.any() | ((state.served == begun) & (state.served_high == begun_level))),
        # Tables change at the end of a frame, or when they have waited long enough; and then they do.
        Assert(~tables.swap | (tables.pending & (frame_over | tables.overdue))),
        Assert(~(tables.pending & (frame_over | tables.overdue)) | tables.swap),
    ]
    with m.If(goes):
        m.d.sync += sent.eq(Mux(level, sent + ~sent.all(), 0))
    charged_entry = Signal(3)  # of the last flit
    for i in range(2):
        mine = level == i
        holds = (turn[i] & asks[i]).any()
        frame_begins = ~can_e[i].any()
        open_e = can_e[i] if slow else can_e[i] & in_pass[i]
        pass_begins = frame_begins | (~open_e.any() & ~holds)
        # The first entry of the table that asks and has its turn to come; or whose VL has something left; or that asks.
        choice = lowest(Mux(frame_begins, asks_e[i], Mux(open_e.any(), open_e, can_e[i])))
        goes_vl = Array(tables.vls[i])[choice]
        # The entry that is charged: the earliest one of its VL.
        of_grant = Cat(
            (Cat(*(dut.grant[v] & own[i][v][e] for v in range(VLS)))).any() for e in range(ENTRIES)
        )
        to_come = frame_e[i] if slow else in_pass[i]
        here = of_grant & to_come
        entry = lowest(Mux(here.any() & ~frame_begins, here, of_grant))
        m.d.comb += [
            Assert(~mine | ~asks[i].any() | (dut.grant == Mux(holds, turn[i] & asks[i], 1 << goes_vl))),
            Assert((turn[i] & (turn[i] - 1)) == 0),
            Assert(state.turn[i] == turn[i]),
        ]
        over = Signal(name=f"over_{i}")
        for a in range(accounts):
            target = (entry == a) if slow else dut.grant[a]
            base = Mux(frame_begins, whole[i][a], left[i][a])
            ends = target & tail & (base <= unit)
            with m.If(ends):
                m.d.comb += over.eq(1)
            with m.If(tables.swap):
                m.d.sync += [left[i][a].eq(0), in_frame[i][a].eq(0)]
            with m.Elif(goes & asks[i].any() & mine):
                m.d.sync += [
                    left[i][a].eq(Mux(target, charged(base, tail), base)),
                    in_frame[i][a].eq(Mux(frame_begins, whole[i][a] != 0, in_frame[i][a]) & ~ends),
                ]
        going = goes & asks[i].any() & mine
        next_turn = Mux(over if slow else tail, 0, dut.grant)
        with m.If(going):
            m.d.sync += [
                turn[i].eq(Mux(tables.swap & tail, 0, next_turn)),
                in_pass[i].eq(Mux(pass_begins, 7, in_pass[i]) & ~Mux(tail, 1 << entry, 0)),
                charged_entry.eq(Cat(entry, Const(i, 1))),
            ]
        with m.Elif(tables.swap):
            m.d.sync += turn[i].eq(Mux(goes | (begun_level != i) | ~begun.any(), 0, turn[i]))
        for v in range(VLS):
            # These ties join the arbiter's registers to that account.
            port = state.left.read_port(domain="comb")
            mine_late = state.served[v] & (state.served_high == i)
            late = state.charge & mine_late & (~state.moved if slow else 1)
            rest = Cat(*own[i][v]) & (frame_e[i] if slow else in_pass[i])
            some = rest.any() if slow else in_frame[i][v]
            place = Mux(
                state.now_fresh[i][v],
                tables.first[i][v],
                Mux(state.steps[i][v], tables.following, state.places[i][v]),
            )
            account = lowest(rest) if slow else v
            full, now = Array(whole[i])[account], Array(left[i])[account]
            kept = Mux(state.whole[i][v], full, port.data)[: len(now)]
            m.d.comb += [
                port.addr.eq(v + 4 * i),
                Assert(state.now_has[i][v] == some),
                Assert(~some | Cat(*own[i][v]).any()),
                Assert(some | state.now_fresh[i][v]),
                Assert(~some | (state.now_last[i][v] == (now <= unit))),
                Assert(~some | (Mux(late, charged(kept, state.served_tail), kept) == now)),
                Assert(~(state.charge & mine_late & ~swapped) | (tables.looked == charged_entry)),
                Assert(
                    ~(state.charge & mine_late & ~swapped) | Cat(*own[i][v]).bit_select(charged_entry[:2], 1)
                ),
                Assert(~state.moved | state.charge & ~swapped),
            ]
            if slow:
                m.d.comb += [
                    Assert(~some | (place == lowest(rest))),
                    # New tables leave a packet that was begun its turn, before a frame begins.
                    Assert(~turn[i][v] | some | (~in_frame[i].any() if by_packet else 0)),
                    Assert(~late | ~some | swapped | (charged_entry[:2] == lowest(rest))),
                ]
            else:
                opened = state.opened[i][v] & ~state.wraps[i][v]
                m.d.comb += [
                    Assert(~some | (opened == rest.any())),
                    Assert(~(some & opened) | (place == lowest(rest))),
                    Assert(~some | opened | state.now_fresh[i][v]),
                    Assert(~turn[i][v] | begun[v]),
                ]
            # A VL's entries have their turns in order.
            for e in range(ENTRIES):
                for n in range(e):
                    both = own[i][v][e] & own[i][v][n]
                    m.d.comb += Assert(~both | ~some | rest[e] | ~rest[n])
                if slow:
                    untouched = own[i][v][e] & rest[e] & (lowest(rest) != e)
                    m.d.comb += Assert(~untouched | (left[i][e] == flits[i][e]))
        for a in range(accounts):
            m.d.comb += [
                Assert(left[i][a] <= whole[i][a]),
                Assert(in_frame[i][a] | (left[i][a] == 0)),
                Assert(~in_frame[i][a] | (whole[i][a] != 0)),
            ]
            if not by_packet:
                m.d.comb += [Assert(~in_frame[i][a] | (left[i][a] != 0)), Assert(begun == 0)]
        # A begun packet has its place in the frame, and its turn, unless none has begun with these tables.
        m.d.comb += [
            Assert((begun_level != i) | ~begun.any() | (turn[i] == begun)),
            Assert(
                (begun_level != i)
                | ~in_frame[i].any()
                | ((begun & ~Cat((Cat(*own[i][v]) & frame_e[i]).any() for v in range(VLS))) == 0)
            ),
        ]
    if not by_packet:
        of_vl = left
        if slow:
            of_vl = [
                [
                    sum((Mux(own[i][v][e], left[i][e], 0) for e in range(ENTRIES)), Const(0))
                    for v in range(VLS)
                ]
                for i in range(2)
            ]
        wait(spec, dut, tables, of_vl, shares, level, goes)
    m.d.comb += [
        Assert((state.served & (state.served - 1)) == 0),
        Assert(state.sent == sent),
        Cover(tables.swap & (dut.requests == 7) & ~swapped & ~tables.overdue),
        Cover(tables.swap & ~frame_over),
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


def wait(spec, dut, tables, left, shares, level, goes):
    """The bound on waiting, 2 S flits of others of its level, for anyone that keeps asking.

    While it has share left the others can send at most what they have left. Before that they can send at most the rest
    of their old frame. The proof is with weights in flits; in InfiniBand's units the induction takes too long.
    """
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
                    Assert(waited + rest <= Mux(left[i][v] != 0, 2 * others, others)),
                ]


@proof(
    block="TwoLevelArbiter", states="frames, levels, limit and order of entries are those of an exact account"
)
@pytest.mark.parametrize("pointer", ["fast", pytest.param("slow", marks=pytest.mark.full)])
def test_frames_and_levels_are_proved(pointer, tmp_path):
    prove(scheduler(TwoLevelArbiter, pointer=pointer), tmp_path, depth=2)


@proof(block="TwoLevelArbiter", states="the same in packets and InfiniBand's units")
def test_frames_and_levels_in_packets_are_proved(tmp_path):
    prove(scheduler(TwoLevelArbiter, **IBA), tmp_path, depth=2)


@proof(
    block="TwoLevelArbiter", states="tables change under full load", like=test_frames_and_levels_are_proved
)
def test_tables_can_change_under_full_load(tmp_path):
    prove(scheduler(TwoLevelArbiter), tmp_path, mode="cover", depth=8)


FAST, SLOW = "fast", "slow"
MUTANTS = [
    # A flit too many when one VL goes back to back; a share that never shrinks.
    (FAST, "now_last[i].eq(last_unit[i] | Mux(near, mine, 0))", "now_last[i].eq(last_unit[i])", 12),
    (SLOW, "Mux(near & ~moved, mine, 0)", "Mux(near, mine, 0)", 12),
    (FAST, "(whole[i] & ~late) |", "whole[i] |", 12),
    # The rest of an idle VL is carried over.
    (FAST, "Mux(begins, everyone, (whole[i]", "Mux(0, everyone, (whole[i]", 16),
    # Nobody goes.
    (FAST, "~(low_due & any_low)", "~low_due", 12),
    (FAST, "listed.eq(any_high | any_low)", "listed.eq(any_high)", 12),
    # An old frame lasts into new tables; one of high too many.
    (FAST, "has_share[i].eq(0),", "", 12),
    (FAST, "(sent[fraction:] >= tables.limit)", "(sent[fraction:] > tables.limit)", 8),
    # Tables change in the midst of a frame; or wait for ever.
    (FAST, "tables.pending & (fresh_frame | tables.overdue)", "tables.pending", 8),
    (SLOW, "tables.pending & (fresh_frame | tables.overdue)", "tables.pending", 8),
    (SLOW, "tables.pending & (fresh_frame | tables.overdue)", "tables.pending & fresh_frame", 8),
    # Entries out of order: by VL number; each VL's first one for ever; a frame or a pass from where the last one ended.
    (SLOW, "place_b < place_a", "0", 8),
    (SLOW, "fresh[i] & ~steps[i]", "fresh[i]", 8),
    (SLOW, "Mux(level & fresh_pass, everyone, now_fresh[i]", "Mux(0, everyone, now_fresh[i]", 12),
    (FAST, "Mux(level & fresh_pass, everyone, opened[i]", "Mux(0, everyone, opened[i]", 12),
    # A turn that ends early, or never.
    (SLOW, "closes.any() if slow else tail", "1 if slow else tail", 8),
    (SLOW, "closes.any() if slow else tail", "0 if slow else tail", 8),
    # A last entry that is used up and stays.
    (SLOW, "now_has[i].eq(has_share[i] & ~wraps[i])", "now_has[i].eq(has_share[i])", 8),
]


# Those of the order and of the change of tables in every run, the others in a full one.
EVERY_RUN = ("place_b < place_a", "tables.pending & (fresh_frame | tables.overdue)", "(whole[i] & ~late) |")


@mutants_of(test_frames_and_levels_are_proved)
@pytest.mark.parametrize(
    ("pointer", "old", "new", "depth"),
    [pytest.param(*one, marks=() if one[1] in EVERY_RUN else pytest.mark.full) for one in MUTANTS],
)
def test_proof_catches_mutant(pointer, old, new, depth, tmp_path):
    spec = scheduler(mutate(TwoLevelArbiter, old, new), pointer=pointer)
    prove(spec, tmp_path, mode="bmc", depth=depth, expect="fail")


IBA_MUTANTS = [
    (
        "if self.by_packet:\n            with m.If(underway",
        "if False:\n            with m.If(underway",
    ),  # cut off
    ("grant & base, 0)", "Mux(begins, 0, grant & base), 0)"),  # a short turn that never ends
    ("level & tail, grant & base", "level, grant & base"),  # a packet that ends with its share
    ("less[:rounding] & ~tail.replicate(rounding)", "less[:rounding]"),  # charged flit by flit
]


@mutants_of(test_frames_and_levels_in_packets_are_proved)
@pytest.mark.parametrize(("old", "new"), IBA_MUTANTS)
def test_proof_in_packets_catches_mutant(old, new, tmp_path):
    spec = scheduler(mutate(TwoLevelArbiter, old, new), **IBA)
    prove(spec, tmp_path, mode="bmc", depth=12, expect="fail")


PATIENCE_CYCLES = 2


def tables_spec(component):
    """Writes and commits come at any time, to a copy of the entries.

    After each change the rows and sums are those of the copy at the commit. Tables that wait are overdue in time, so
    that `ready` is away no longer than so.
    """
    vls = entries = 2
    spec = Spec()
    m = spec.m
    m.submodules.dut = dut = component(vls=vls, entries=entries, patience_cycles=PATIENCE_CYCLES)
    names = ("write", "high", "entry", "vl", "weight", "limit", "commit")
    spec.inputs(dut, *(f"table.{name}" for name in names), "select_vl", "select_high", "place", "place_high")
    any_swap = spec.free(1, "any_swap")
    m.d.comb += [
        dut.swap.eq(dut.pending & (any_swap | dut.overdue)),
        Assume(dut.table.weight[3:-1] == 0),  # values enough, and a proof in seconds
    ]
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
    away = Signal(8)
    m.d.sync += away.eq(Mux(table.ready, 0, away + 1))
    bound = TableSignature.wait_bound(vls=vls, entries=entries)
    bound += PATIENCE_CYCLES - TableSignature.patience_cycles(entries)
    m.d.comb += Assert(away <= bound)
    looked = Signal(2)
    m.d.sync += looked.eq(Cat(dut.place, dut.place_high))
    settled = Signal()  # the row that was looked up is one of the tables in use
    m.d.sync += settled.eq(changed & ~dut.swap)
    for i in range(2):
        used = [entry[:8] != 0 for entry in committed[i]]
        for v in range(vls):
            total = Signal(10, name=f"total_{i}_{v}")
            own = [used[e] & (committed[i][e][8] == v) for e in range(entries)]
            parts = [Mux(own[e], committed[i][e][:8], 0) for e in range(entries)]
            m.d.comb += total.eq(sum(parts, Const(0)))
            with m.If(changed & table.ready):
                m.d.comb += [
                    Assert(dut.listed[i][v] == (total != 0)),
                    Assert(dut.single[i][v] == (total == 1)),
                    Assert(
                        (dut.select_high != i) | (dut.select_vl != v) | (total == 0) | (dut.share == total)
                    ),
                    Assert((total == 0) | (dut.first[i][v] == Mux(own[0], 0, 1))),
                ]
            for e in range(entries):
                more = own[1] if e == 0 else Const(0)
                with m.If(settled & table.ready & own[e] & (looked == e + 2 * i)):
                    m.d.comb += [
                        Assert(dut.weight == committed[i][e][:8]),
                        Assert(dut.last == ~more),
                        Assert(dut.last | (dut.following == 1)),
                        Assert(dut.last | (dut.following_single == (committed[i][1][:8] == 1))),
                    ]
    with m.If(changed & table.ready):
        m.d.comb += Assert(dut.limit == limit)
    return spec


TABLES_DEPTH = 4 + 2 + 4 + 1 + 4 + PATIENCE_CYCLES + 3
"""Cycles of the wipe, two writes, the walk, the chain of first entries, the wait, and a row looked up."""


@proof(block="VlTables", states="rows and sums are those of the last commit")
@pytest.mark.full  # half a minute; tests/hdl/vl_arbiter/test_vl_tables.py is the quick one
def test_tables_are_linked_and_add_up(tmp_path):
    prove(tables_spec(VlTables), tmp_path, mode="bmc", depth=TABLES_DEPTH, timeout_s=300)


@mutants_of(test_tables_are_linked_and_add_up)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return summed == 1", "return summed[0]"),
        ("m.d.sync += reading.eq(1)", "m.d.sync += reading.eq(0)"),
        ("self.limit.eq(limit)", "self.limit.eq(self.table.limit)"),
        ("~seen.bit_select(row, 1), walked_weight", "0, walked_weight"),
        ("entry_read.addr.eq(~count[", "entry_read.addr.eq(count["),
        ("count == self._patience - 1", "count == self._patience"),
    ],
)
def test_proof_of_tables_catches_mutant(old, new, tmp_path):
    prove(tables_spec(mutate(VlTables, old, new)), tmp_path, mode="bmc", depth=TABLES_DEPTH, expect="fail")
