"""Proofs of links whose ends are reset one without the other (`link_restart.py`).

Credits are conserved, no two packets are joined, and the link works again in a bounded time. This holds whenever and
however often either end is reset.
"""

import sys

import pytest
from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.link import FlitLayout, LinkSignature
from lanikai.hdl.link_restart import ReceiveRestart, TransmitRestart, settle_cycles
from lanikai.hdl.router.credits import Credits
from lanikai.hdl.router.flit import BufferedFlitLayout
from lanikai.hdl.router.vl_buffer import VlBuffer
from support.formal.harness import Spec, mutate, prove
from support.formal.registry import mutants_of, proof

DEPTH = 2


class Transmitter(wiring.Component):
    """A transmitter that sends what `wants` (in) and `vl`, `tail` (in) say, as far as credits go, packet by packet in
    each VL. `credits` (out): those that it holds. `up` (out)."""

    def __init__(self, config, kind):
        self.config, self.kind = config, kind
        super().__init__(
            {
                "tx": Out(LinkSignature(config)),
                "wants": In(1),
                "vl": In(config.vl_bits),
                "tail": In(1),
                "up": Out(1),
                "held": Out(range(DEPTH + 1)).array(config.vls),
            }
        )

    def elaborate(self, platform):
        m = Module()
        guarded = self.config.guard_cycles > 0
        m.submodules.credits = credits = Credits(
            vls=self.config.vls, depth=DEPTH, restarts=True, guarded=guarded
        )
        m.submodules.restart = restart = self.kind(self.config)
        moved, inside, gone = Signal(), Signal(self.config.vls), Signal()
        m.d.comb += [
            gone.eq(restart.cut.bit_select(self.vl, 1)),
            moved.eq(self.wants & (credits.available.bit_select(self.vl, 1) | gone)),
            self.tx.valid.eq(moved & ~gone),
            self.tx.payload.vl.eq(self.vl),
            self.tx.payload.head.eq(~inside.bit_select(self.vl, 1)),
            self.tx.payload.tail.eq(self.tail),
            credits.spend.eq(self.tx.valid),
            credits.spend_vl.eq(self.vl),
            credits.refund.eq(self.tx.credit_valid),
            credits.refund_vl.eq(self.tx.credit_vl),
            credits.stop.eq(restart.stop),
            restart.peer.eq(self.tx.credit_restart),
            restart.moved.eq(moved),
            restart.vl.eq(self.vl),
            restart.tail.eq(self.tail),
            self.tx.restart.eq(restart.restart),
            self.up.eq(~restart.stop & ~restart.restart),
        ]
        if guarded:
            # A sound link brings no credit too many, however often it begins anew. (So `breach` is left out here.)
            m.d.comb += Assert(~credits.excess | restart.stop)
            here = self.wants & ~credits.available.bit_select(self.vl, 1) & ~gone
            m.d.comb += restart.waiting.eq(Mux(here, 1 << self.vl, 0))
        with m.If(moved):
            m.d.sync += inside.bit_select(self.vl, 1).eq(~self.tail)
        for vl in range(self.config.vls):
            held = Signal(range(DEPTH + 1), init=DEPTH, name=f"held_{vl}")
            spent = self.tx.valid & (self.vl == vl)
            back = self.tx.credit_valid & (self.tx.credit_vl == vl)
            m.d.comb += self.held[vl].eq(held)
            with m.If(restart.stop):
                m.d.sync += held.eq(DEPTH)
            with m.Else():
                m.d.sync += held.eq(held + back - spent)
            m.d.comb += Assert(~credits.available[vl] | (held > 0))
        return m


class Receiver(wiring.Component):
    """A receiver that takes a flit out of its buffer when `takes` (in) says so, of `select` (in, one-hot).

    - `occupied` (out, array): flits of a VL in register, buffer and the register of credits.
    - `oldest` (out): a VL with a flit, if there is one.
    - `bad` (out): a flit finds no place.
    - `joined` (out): a packet begins within another, or one goes on that never began.
    - `closed` (out): a packet that was cut is ended.
    """

    def __init__(self, config, kind):
        self.config, self.kind = config, kind
        super().__init__(
            {
                "rx": In(LinkSignature(config)),
                "takes": In(1),
                "select": In(config.vls),
                "oldest": Out(config.vls),
                "occupied": Out(4).array(config.vls),
                "bad": Out(1),
                "joined": Out(1),
                "closed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = VlBuffer(
            shape=BufferedFlitLayout(self.config), vls=self.config.vls, depth=DEPTH
        )
        arrived, arrival = Signal(), Signal(FlitLayout(self.config))
        register = sys.modules[self.kind.__module__].receive_register
        half = register(m, self.config, self.rx, arrived, arrival, buffer)
        pop, inside = Signal(), Signal(self.config.vls)
        m.d.comb += [
            pop.eq(self.takes & (buffer.non_empty & self.select).any()),
            buffer.write_valid.eq(arrived),
            buffer.write_vl.eq(arrival.vl),
            buffer.write_data.head.eq(arrival.head),
            buffer.write_data.tail.eq(arrival.tail),
            buffer.read_select.eq(self.select),
            buffer.pop.eq(pop),
            self.oldest.eq(Mux(buffer.non_empty[0] | (self.config.vls == 1), 1, 2)),
            self.bad.eq(arrived & buffer.full.bit_select(arrival.vl, 1)),
            self.joined.eq(arrived & (arrival.head == inside.bit_select(arrival.vl, 1))),
            self.closed.eq(half.close),
        ]
        m.d.sync += [self.rx.credit_valid.eq(pop), self.rx.credit_vl.eq(buffer.read_vl)]
        with m.If(arrived):
            m.d.sync += inside.bit_select(arrival.vl, 1).eq(~arrival.tail)
        for vl in range(self.config.vls):
            count = Signal(3, name=f"count_{vl}")
            here, leaves = arrived & (arrival.vl == vl), pop & self.select[vl]
            m.d.sync += count.eq(count + here - leaves)
            back = self.rx.credit_valid & (self.rx.credit_vl == vl)
            m.d.comb += self.occupied[vl].eq(count + here + back)
        return m


def bound(config):
    """Cycles without a reset, and with a receiver that takes a flit a cycle, in which a link works again."""
    return 3 * settle_cycles(config) + 2 * config.delay_cycles + 2 * config.vls * DEPTH + 8


def link_spec(transmitter=TransmitRestart, receiver=ReceiveRestart, *, vls=1, delay=0, guard=0, covers=False):
    """A link of `vls` and `delay`, resets of both ends at any time. `guard`: cycles of its guard."""
    config = LinkConfig(
        flit_bits=32, vls=vls, restart=True, delay_cycles=delay, guard_cycles=guard, guard_packet_flits=4
    )
    spec = Spec()
    m = spec.m
    resets = [spec.free(1, "resets_transmitter"), spec.free(1, "resets_receiver")]
    t, r = Transmitter(config, transmitter), Receiver(config, receiver)
    m.submodules.transmitter = ResetInserter(resets[0])(t)
    m.submodules.receiver = ResetInserter(resets[1])(r)
    spec.inputs(t, "wants", "vl", "tail")
    spec.inputs(r, "takes", "select")

    def wire(value, name):
        for stage in range(delay):
            register = Signal(len(value), name=f"{name}_{stage}")
            m.d.sync += register.eq(value)
            value = register
        return value

    there = wire(Cat(t.tx.valid, t.tx.payload, t.tx.restart), "there")
    back = wire(Cat(r.rx.credit_valid, r.rx.credit_vl, r.rx.credit_restart), "back")
    calm = Signal(range(bound(config) + 1))
    m.d.comb += [
        Cat(r.rx.valid, r.rx.payload, r.rx.restart).eq(there),
        Cat(t.tx.credit_valid, t.tx.credit_vl, t.tx.credit_restart).eq(back),
        Assume((r.select == 1) | ((r.select == 2) & (vls == 2))),
        Assert(~r.bad),
        Assert(~r.joined),
        Assert((calm != bound(config)) | t.up),
    ]
    # With wires the flits and credits on them count, too: there `bad` says that there are not too many credits.
    if not delay:
        m.d.comb += [Assert(~t.up | (t.held[vl] + r.occupied[vl] == DEPTH)) for vl in range(vls)]
    # Cycles without a reset in each of which the receiver takes what there is. A guard is a reset of the link.
    with m.If(Cat(resets).any() | ~r.takes | (r.select != r.oldest) | bool(guard)):
        m.d.sync += calm.eq(0)
    with m.Elif(calm != bound(config)):
        m.d.sync += calm.eq(calm + 1)
    if covers:
        over = [Signal(name=f"over_{i}") for i in range(2)]
        closed = Signal()
        m.d.sync += [flag.eq(flag | reset) for flag, reset in zip(over, resets, strict=True)]
        m.d.sync += closed.eq(closed | r.closed)
        m.d.comb += [
            Cover(over[0] & ~over[1] & t.up & closed),
            Cover(over[1] & ~over[0] & t.up & (r.occupied[0] == 1)),
            Cover(over[0] & over[1] & t.up & t.tx.valid),
        ]
    return spec


@proof(
    block="TransmitRestart, ReceiveRestart",
    states="credits are conserved across resets of either end, and no packets are joined",
)
@pytest.mark.parametrize(
    ("vls", "delay", "depth"),
    [
        (1, 0, 28),
        pytest.param(1, 1, 38, marks=pytest.mark.full),
        pytest.param(2, 0, 30, marks=pytest.mark.full),
    ],
)
def test_credits_are_conserved_and_nothing_is_joined(vls, delay, depth, tmp_path):
    """The proof goes so far from power-on that an end can be reset, once or often, and the link must work again."""
    spec = link_spec(vls=vls, delay=delay)
    prove(spec, tmp_path, mode="bmc", depth=depth, timeout_s=1200)


@proof(
    block="TransmitRestart, ReceiveRestart",
    states="the same beside a guard that begins a sound link anew",
    like=test_credits_are_conserved_and_nothing_is_joined,
)
@pytest.mark.full
def test_a_guard_that_begins_a_sound_link_anew_joins_nothing_and_keeps_the_credits(tmp_path):
    """So short a guard takes a slow receiver, a slow sender and a long packet for faults: it acts at any time."""
    prove(link_spec(guard=2), tmp_path, mode="bmc", depth=24, timeout_s=1200)


MUTANTS = [
    # (component, text, mutant, cycles of the wire).
    # The rest of a packet that was cut is sent on. Flits that come while the receiver is deaf are taken. The end of a
    # cut packet does not wait for room; the buffer is not waited for; the transmitter does not wait a round trip.
    (TransmitRestart, "cut.eq((cut & ~over) | now)", "cut.eq(cut & ~over)", 0),
    (
        ReceiveRestart,
        "self.accept.eq(~self.restart & ~deaf & ~drains & ~first & ~shut)",
        "self.accept.eq(~self.restart)",
        0,
    ),
    (ReceiveRestart, "closing.eq(_lowest(begun & ~self.full))", "closing.eq(_lowest(begun))", 0),
    (ReceiveRestart, "~begun.any() & ~self.non_empty.any()", "~begun.any()", 0),
    (
        ReceiveRestart,
        "self.credit_restart.eq(deaf | empty | first | shut)",
        "self.credit_restart.eq(empty | first | shut)",
        0,
    ),
    (TransmitRestart, "settled.eq(held == settle - 1)", "settled.eq(1)", 1),
]


@mutants_of(test_credits_are_conserved_and_nothing_is_joined)
@pytest.mark.parametrize(
    ("component", "old", "new", "delay"),
    [MUTANTS[0], *(pytest.param(*row, marks=pytest.mark.full) for row in MUTANTS[1:])],
)
def test_proof_catches_mutant(component, old, new, delay, tmp_path):
    broken = mutate(component, old, new)
    ends = {"transmitter": broken} if component is TransmitRestart else {"receiver": broken}
    prove(link_spec(**ends, delay=delay), tmp_path, mode="bmc", depth=26, expect="fail", timeout_s=600)


@proof(
    block="TransmitRestart, ReceiveRestart",
    states="what the proof speaks of is reached",
    like=test_credits_are_conserved_and_nothing_is_joined,
)
@pytest.mark.full
def test_what_the_proof_speaks_of_is_reached(tmp_path):
    prove(link_spec(covers=True), tmp_path, mode="cover", depth=30, timeout_s=600)
