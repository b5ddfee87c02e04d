"""Proofs of the adapter's class queues: doorbells are neither lost nor doubled, nor heard from a foreign page; those
that are late have their turns.

Exhaustive for so many cycles after power-on, of small sizes: a doorbell brings two messages at once, a queue holds
two or three, and running indices have 4 bits.
"""

import sys

import pytest
from amaranth import Array, Cat, Signal
from amaranth.hdl import Assert, Assume, Cover
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.class_queues import ClassQueues
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

PAIRS, ENTRIES, BATCH, INDEX_BITS = 2, 2, 2, 4
CONFIG = preset(HcaConfig, "tiny").replace(queue_pairs=PAIRS)
LATE_CYCLES = 3 + 1
"""Cycles of a late entry: one row of queue pairs, looked at from both ends."""
RING_WAIT = (BATCH + 2) + LATE_CYCLES
"""Longest wait of a doorbell: the rest of the one before it, and one late entry."""
ROOM_WAIT = (BATCH + 3) + LATE_CYCLES - 1
"""Longest wait of a late message from the room for it to its entry, with one class: a doorbell, and the search."""


def mutants(*found):
    """Parameters of mutants, of which `make test` has only the first."""
    return [pytest.param(*one, marks=[] if i == 0 else [pytest.mark.full]) for i, one in enumerate(found)]


def small(*change):
    """The class, or a mutant with a `change`, with small batches and indices."""
    found = mutate(ClassQueues, *(change or ("BATCH = 16", "BATCH = 16")))
    vars(sys.modules[found.__module__]).update(BATCH=BATCH, INDEX_BITS=INDEX_BITS)
    return found


class Pair:
    """A queue pair as its owner and the driver know it, with the running indices of its messages."""

    def __init__(self, number):
        def index(name):
            return Signal(INDEX_BITS, name=f"{name}_{number}")

        self.number = number
        self.open, self.owner, self.traffic_class, self.log2 = (
            Signal(size, name=f"{name}_{number}")
            for name, size in (("open", 1), ("owner", 1), ("traffic_class", 1), ("log2", 2))
        )
        self.rung, self.queued, self.taken, self.ended = map(index, ("rung", "queued", "taken", "ended"))


def queues_spec(component, *, classes, entries=ENTRIES):
    """Any doorbells, set-ups, takers and ends, and what each queue pair may expect."""
    spec = Spec()
    m = spec.m
    dut = component(CONFIG.replace(classes=classes, class_queue_entries=entries))
    dut._MustUse__silence = True
    m.submodules.dut = dut.elaborate(None)
    spec.inputs(dut, "setup.valid", "ring.valid", "take", "ended.valid")
    setup, ring = dut.setup.payload, dut.ring.payload
    m.d.comb += [
        setup.qp.eq(spec.free(1, "setup_qp")),
        setup.open.eq(spec.free(1, "setup_open")),
        setup.owner.eq(spec.free(1, "setup_owner")),
        setup.traffic_class.eq(spec.free(1, "setup_class") if classes > 1 else 0),
        setup.send_log2.eq(spec.free(2, "setup_log2")),
        ring.qp.eq(spec.free(2, "ring_qp")),
        ring.page.eq(spec.free(1, "ring_page")),
        ring.index.eq(spec.free(INDEX_BITS, "ring_index")),
        dut.select.eq(spec.free(1, "select") if classes > 1 else 0),
        dut.ended.payload.eq(spec.free(1, "ended_qp")),
        dut.look.eq(spec.constant(1, "look")),
    ]
    # In a ring of half the running indices, a full one and an empty one are told by the same numbers.
    m.d.comb += Assume(~dut.setup.valid | (setup.send_log2 <= INDEX_BITS - 2))
    pairs = [Pair(i) for i in range(PAIRS)]
    # The taker's side of the contract: the class has stood since the cycle before, in which it had a message.
    chosen, may_take = Signal(), Signal()
    waits = dut.waiting.bit_select(dut.select, 1)
    m.d.sync += [chosen.eq(dut.select), may_take.eq(waits & ~dut.take)]
    m.d.comb += Assume(~dut.take | (may_take & (chosen == dut.select)))
    # What is taken by the block in this cycle acts in the next one.
    rings, page, index, rung_qp = Signal(), Signal(), Signal(INDEX_BITS), Signal(2)
    sets, opened = Signal(), Signal.like(setup)
    m.d.sync += [
        rings.eq(dut.ring.valid & dut.ring.ready),
        page.eq(ring.page),
        index.eq(ring.index),
        rung_qp.eq(ring.qp),
        sets.eq(dut.setup.valid & dut.setup.ready),
        opened.eq(setup),
    ]
    heard, refused = Signal(), Signal(4)
    head = dut.head
    for pair in pairs:
        i = pair.number
        mine, hears = Signal(name=f"mine_{i}"), Signal(name=f"hears_{i}")
        takes, ends = Signal(name=f"takes_{i}"), Signal(name=f"ends_{i}")
        places = 1 << pair.log2
        m.d.comb += [
            mine.eq(rings & (rung_qp == i)),
            hears.eq(
                mine
                & pair.open
                & (page == pair.owner)
                & ((index - pair.rung)[:INDEX_BITS] <= places)
                & ((index - pair.ended)[:INDEX_BITS] <= places)
            ),
            takes.eq(dut.take & (head.qp == i)),
            ends.eq(dut.ended.valid & dut.ended.ready & (dut.ended.payload == i)),
            # The driver opens a queue pair that is closed and not busy. Only what was taken ends.
            Assume(
                ~(dut.setup.valid & setup.open & (setup.qp == i))
                | (~pair.open & (pair.ended == pair.queued) & ~ends & ~(sets & (opened.qp == i)))
            ),
            Assume(~(dut.ended.valid & (dut.ended.payload == i)) | (pair.ended != pair.taken)),
        ]
        with m.If(hears):
            m.d.comb += heard.eq(1)
            m.d.sync += pair.rung.eq(index)
        enters = dut.entered & (dut._qp == i)
        m.d.sync += [
            pair.queued.eq(pair.queued + enters),
            pair.taken.eq(pair.taken + takes),
            pair.ended.eq(pair.ended + ends),
        ]
        m.d.comb += [
            # Each message once, in order, and none that was not rung for.
            Assert(~takes | ((head.index == pair.taken) & (pair.taken != pair.queued))),
            Assert(~enters | (pair.queued != pair.rung)),
            Assert((pair.rung - pair.ended)[:INDEX_BITS] <= 4),
        ]
        with m.If(sets & (opened.qp == i)):
            with m.If(opened.open):
                m.d.sync += [pair.open.eq(1), pair.owner.eq(opened.owner), pair.log2.eq(opened.send_log2)]
                m.d.sync += pair.traffic_class.eq(opened.traffic_class)
                m.d.sync += [one.eq(0) for one in (pair.rung, pair.queued, pair.taken, pair.ended)]
            with m.Else():
                m.d.sync += [pair.open.eq(0), pair.rung.eq(pair.queued)]
        # None is lost: when nothing moves and its queue is empty, all that was rung for has been taken.
        empty = ~dut.waiting.bit_select(pair.traffic_class, 1)[0]
        m.d.comb += [
            Assert(~(dut.quiet & empty) | (pair.taken == pair.rung)),
            Assert(
                ~(dut.quiet & (dut.look == i))
                | (
                    (dut.posted == pair.rung)
                    & (dut.ends == pair.ended)
                    & (dut.busy == (pair.ended != pair.queued))
                )
            ),
        ]
    with m.If(rings & ~heard):
        m.d.sync += refused.eq(refused + 1)
    m.d.comb += [
        Assert(~dut.take | (head.qp < PAIRS)),
        Assert(rings | (dut.refusals == refused)),
    ]
    return spec, dut, pairs


def order_spec(component):
    """The nth message of a class comes out as it came in, and classes are not mixed up.

    The queues hold one more than a batch, so that a doorbell may leave messages behind beside room.
    """
    spec, dut, pairs = queues_spec(component, classes=2, entries=ENTRIES + 1)
    m = spec.m
    nth, traffic_class = spec.constant(2, "nth"), spec.constant(1, "its_class")
    entered, taken = Signal(4), Signal(4)
    known, qp, index = Signal(), Signal(1), Signal(INDEX_BITS)
    enters_class = Array(pair.traffic_class for pair in pairs)[dut._qp[0]]
    enters = dut.entered & (enters_class == traffic_class)
    takes = dut.take & (dut.select == traffic_class)
    m.d.sync += [entered.eq(entered + enters), taken.eq(taken + takes)]
    with m.If(enters & (entered == nth)):
        m.d.sync += [known.eq(1), qp.eq(dut._qp), index.eq(Array(p.queued for p in pairs)[dut._qp[0]])]
    its = Signal()
    m.d.comb += [
        its.eq(takes & (taken == nth)),
        Assert(~its | (known & (dut.head.qp == qp) & (dut.head.index == index))),
        Assert((entered - taken)[:4] <= ENTRIES + 1),
        Cover(its & (nth == 2) & qp & traffic_class & (index == 0)),
        Cover(dut.refusals == 2),
        Cover(dut.busy & ~pairs[0].open & (dut.look == 0) & (pairs[0].log2 == 1)),
    ]
    return spec


@proof(
    block="ClassQueues",
    states="each doorbell of its owner is heard once and in order, and one of a foreign page changes nothing",
)
def test_doorbells_are_heard_once(tmp_path):
    prove(order_spec(small()), tmp_path / "bmc", mode="bmc", depth=16)
    prove(order_spec(small()), tmp_path / "cover", mode="cover", depth=18)


@proof(block="ClassQueues", states="the same in more cycles", like=test_doorbells_are_heard_once)
@pytest.mark.full
def test_doorbells_are_heard_once_in_more_cycles(tmp_path):
    prove(order_spec(small()), tmp_path, mode="bmc", depth=20)


@mutants_of(test_doorbells_are_heard_once)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("(self._table.row.owner == page)", "1"),
        ("& (would_hold <= self._entries)", ""),
        ("& (would_hold >= holds)", ""),
        (" | self._full.bit_select(traffic_class, 1)", ""),
        ("with m.If((queued + 1)[:INDEX_BITS] == known):", "with m.If(1):"),
        ("write.data.index.eq(self._queued)", "write.data.index.eq(self._known)"),
        ("write.addr.eq(Cat(tail, self._class))", "write.addr.eq(Cat(tail, 0))"),
        ("self.ended.ready.eq(~self._open)", "self.ended.ready.eq(1)"),
        ("data.eq(Mux(opens.open, 0, queued))", "data.eq(0)"),
        ("with m.Elif(left == 0):\n                    set_late()", "with m.Elif(left == 0):"),
    ),
)
def test_proof_of_doorbells_catches_mutant(old, new, tmp_path):
    prove(order_spec(small(old, new)), tmp_path, mode="bmc", depth=20, expect="fail")


def turns_spec(component):
    """How long doorbells and late messages wait, and who goes before them."""
    spec, dut, pairs = queues_spec(component, classes=1)
    m = spec.m
    setting, started = Signal(), Signal()
    level = Signal(range(ENTRIES + 1))
    m.d.sync += level.eq(level + dut.entered - dut.take)
    with m.If(dut.setup.ready):
        m.d.sync += started.eq(1)
    # Pages and closings are the other proof's. A set-up goes first.
    m.d.comb += [
        Assume(~dut.ring.valid | (dut.ring.payload.page == 0)),
        Assume(
            ~dut.setup.valid
            | (dut.setup.payload.open & (dut.setup.payload.owner == 0) & (dut.setup.payload.send_log2 == 2))
        ),
        setting.eq(~started | dut.setup.valid),
    ]
    ring_waits, room_waits, any_late = Signal(4), Signal(4), Signal()
    late = Cat(pair.queued != pair.rung for pair in pairs)
    m.d.comb += any_late.eq(late.any())
    with m.If(setting | ~dut.ring.valid | dut.ring.ready):
        m.d.sync += ring_waits.eq(0)
    with m.Else():
        m.d.sync += ring_waits.eq(ring_waits + 1)
    with m.If(setting | ~any_late | dut.entered | (level == ENTRIES)):
        m.d.sync += room_waits.eq(0)
    with m.Else():
        m.d.sync += room_waits.eq(room_waits + 1)
    for pair in pairs:
        mine = dut.entered & (dut._qp == pair.number)
        before = Signal(2, name=f"before_{pair.number}")
        with m.If(mine | ~late[pair.number]):
            m.d.sync += before.eq(0)
        with m.Elif(dut.entered):
            m.d.sync += before.eq(before + 1)
        # Each of the other queue pairs has one entry at most before it.
        m.d.comb += Assert(before <= PAIRS - 1)
        if pair.number == 1:
            m.d.comb += Cover(mine & (before == 1))
    m.d.comb += [
        Assert(ring_waits <= RING_WAIT),
        Assert(room_waits <= ROOM_WAIT),
        # In so few cycles no search goes round, which takes a cycle more.
        Cover(ring_waits == RING_WAIT - 1),
    ]
    return spec


@proof(
    block="ClassQueues",
    states="late queue pairs have an entry each in turn, and neither they nor doorbells wait longer than is stated",
)
def test_late_messages_have_their_turns(tmp_path):
    prove(turns_spec(small()), tmp_path / "bmc", mode="bmc", depth=16)
    prove(turns_spec(small()), tmp_path / "cover", mode="cover", depth=24)


@proof(block="ClassQueues", states="the same in more cycles", like=test_late_messages_have_their_turns)
@pytest.mark.full
def test_late_messages_have_their_turns_in_more_cycles(tmp_path):
    prove(turns_spec(small()), tmp_path, mode="bmc", depth=24)


@mutants_of(test_late_messages_have_their_turns)
@pytest.mark.parametrize(
    ("old", "new"),
    mutants(
        ("any_late.bit_select(traffic_class, 1) | ", ""),
        ("Mux(qp == config.queue_pairs - 1, 0, qp + 1)", "0"),
        ("& (rover_turn | ~ring.valid)", "& ~ring.valid"),
        ("rover_turn | ~ring.valid", "1"),
    ),
)
def test_proof_of_turns_catches_mutant(old, new, tmp_path):
    prove(turns_spec(small(old, new)), tmp_path, mode="bmc", depth=24, expect="fail")
